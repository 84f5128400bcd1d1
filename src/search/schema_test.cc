// SPDX-License-Identifier: Apache-2.0
#include "search/schema.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"
#include "scenario/prediction.h"
#include "search/domain.h"

namespace dynosim::search {
namespace {

// Text of the schema of a field: properties by dotted path, through the forms of an object.
std::string FieldText(const Json& schema, std::string_view path) {
  if (path.empty()) {
    return DumpJson(schema);
  }
  for (const char* forms : {"anyOf", "oneOf"}) {
    if (const Json* list = schema.Find(forms)) {
      for (const Json& form : list->array()) {
        if (std::string text = FieldText(form, path); !text.empty()) {
          return text;
        }
      }
    }
  }
  const Json* properties = schema.Find("properties");
  const std::string_view name = path.substr(0, path.find('.'));
  const Json* field = properties == nullptr ? nullptr : properties->Find(name);
  return field == nullptr ? ""
                          : FieldText(*field, path.substr(std::min(path.size(), name.size() + 1)));
}

TEST(RecommendationSchema, HasDomainsExactlyWhereTheDocumentTakesThem) {
  const Json schema = RecommendationSchema(scenario::Stack::kDynamo);
  for (const char* path : {"engine.mode", "engine.backend", "traffic.load.concurrency",
                           "engine.workers.aggregated.scheduler.max_sequences",
                           "engine.workers.decode.parallelism.tensor", "router.temperature",
                           "traffic.load.requests_per_second", "traffic.load.fraction"}) {
    EXPECT_NE(FieldText(schema, path).find("\"choices\""), std::string::npos) << path;
  }
  for (const char* path : {"engine.model", "engine.hardware", "traffic.source.input_tokens",
                           "traffic.stop.requests", "evaluation.sla.ttft_ms"}) {
    EXPECT_EQ(FieldText(schema, path).find("\"choices\""), std::string::npos) << path;
    EXPECT_NE(FieldText(schema, path), "") << path;
  }
  EXPECT_EQ(FieldText(schema, "engine.backend").find("\"range\""), std::string::npos);
  EXPECT_NE(FieldText(schema, "router.temperature").find("\"range\""), std::string::npos);
}

TEST(RecommendationSchema, HasTheSectionsOfTheSearchAndThePresets) {
  const Json schema = RecommendationSchema(scenario::Stack::kEngine);
  EXPECT_EQ(DumpJson(*schema.Find("required")), R"(["engine","optimization"])");
  EXPECT_NE(FieldText(schema, "optimizer.algorithm").find("bayesian"), std::string::npos);
  EXPECT_NE(FieldText(schema, "optimizer.max_trials").find("\"default\":320"), std::string::npos);
  EXPECT_NE(FieldText(schema, "optimization.constraints.max_candidate_gpus").find("32"),
            std::string::npos);
  EXPECT_NE(FieldText(schema, "engine.workers.prefill.parallelism.preset").find("moe_expert"),
            std::string::npos);
  // What is left out is searched, so it has no default.
  EXPECT_EQ(FieldText(schema, "engine.mode").find("\"default\""), std::string::npos);
}

}  // namespace
}  // namespace dynosim::search
