// SPDX-License-Identifier: Apache-2.0
#include "search/space.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "config/yaml_to_json.h"
#include "search/domain.h"
#include "search/paths.h"
#include "search/settings.h"
#include "search/shapes.h"
#include "search/trials.h"

namespace dynosim::search {
namespace {

Json Yaml(const std::string& text) {
  auto json = config::ParseYaml(text, "test");
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

std::vector<Json> Values(const std::string& text, FieldKind kind = FieldKind::kInteger) {
  const auto domain = ReadDomain(Yaml(text), "p", kind, "f");
  EXPECT_TRUE(domain) << domain.error().Text();
  return domain ? domain->values : std::vector<Json>();
}

std::string DomainError(const std::string& text, const std::string& path = "p") {
  const auto domain = ReadDomain(Yaml(text), path, FieldKind::kInteger, "f");
  return domain ? "" : domain.error().Text();
}

// A document whose shapes need no model.
Json Document(const std::string& engine) {
  return Yaml("engine:\n  model: some/model\n  hardware: h200_sxm\n" + engine +
              "optimization: {target: throughput}\n");
}

constexpr const char* kOneWorker =
    "  mode: aggregated\n  backend: {choices: [vllm, sglang]}\n"
    "  workers: {aggregated: {parallelism: {tensor: {choices: [1, 2]}}, scheduler: "
    "{max_batched_tokens: 8192, max_sequences: {range: {min: 1, max: 4, step: 1}}}}}\n";

TEST(Domain, RangesCountFromMinInSteps) {
  EXPECT_EQ(Values("{range: {min: 1, max: 8, step: 3}}"),
            (std::vector<Json>{std::int64_t{1}, std::int64_t{4}, std::int64_t{7}}));
  EXPECT_EQ(Values("{range: {min: 0.1, max: 0.3, step: 0.1}}", FieldKind::kNumber),
            (std::vector<Json>{0.1, 0.2, 0.3}));
}

TEST(Domain, RefusesWhatIsNoDomain) {
  EXPECT_EQ(DomainError("{choices: []}"),
            "f: p: choices must be a list with at least one value, got an array");
  EXPECT_EQ(DomainError("{choices: [1, 2, 1]}"), "f: p: choices must differ, got 1 twice");
  EXPECT_NE(DomainError("{range: {min: 2, max: 1, step: 1}}").find("must be <= max"),
            std::string::npos);
  EXPECT_NE(DomainError("{range: {min: 1, max: 2}}").find("step"), std::string::npos);
  EXPECT_NE(DomainError("{range: {min: 1, max: 2, step: 1, scale: log}}").find("scale log"),
            std::string::npos);
  EXPECT_NE(DomainError("{range: {min: 0, max: 2, step: 1}}", "traffic.load.concurrency")
                .find("must be > 0"),
            std::string::npos);
}

TEST(Domain, LogRangesDrawWithinTheirEnds) {
  const OpenRange range{.min = 1.0, .max = 1000.0, .log = true, .integer = true};
  ChaCha12 random(1);
  int below_32 = 0;
  for (int i = 0; i < 1000; ++i) {
    const double value = range.Draw(random).number();
    ASSERT_GE(value, 1.0);
    ASSERT_LE(value, 1000.0);
    below_32 += value < 32.0 ? 1 : 0;
  }
  EXPECT_NEAR(below_32, 500, 60);
}

TEST(Space, IsTheProductOfItsDimensions) {
  const auto space = BuildSpace(Document(kOneWorker), {}, "f");
  ASSERT_TRUE(space) << space.error().Text();
  ASSERT_EQ(space->size(), 1U);
  const Branch& branch = space->front();
  ASSERT_EQ(branch.size(), 16U);
  std::set<std::string> documents;
  for (std::uint64_t i = 0; i < 16; ++i) {
    documents.insert(DumpJson(branch.Document(branch.At(i))));
  }
  EXPECT_EQ(documents.size(), 16U);
  const Json last = branch.Document(branch.At(15));
  EXPECT_EQ(FindPath(last, "engine.backend")->string(), "sglang");
  EXPECT_EQ(FindPath(last, "engine.workers.aggregated.parallelism.tensor")->number(), 2.0);
  EXPECT_EQ(FindPath(last, "engine.workers.aggregated.scheduler.max_sequences")->number(), 4.0);
  EXPECT_EQ(FindPath(last, "optimization"), nullptr);
}

TEST(Space, AnOmittedModeGivesBothTopologies) {
  const auto space =
      BuildSpace(Document("  backend: {choices: [vllm, trtllm]}\n  kv_transfer: {}\n  workers:\n"
                          "    aggregated: {parallelism: {tensor: 1}}\n"
                          "    prefill: {parallelism: {tensor: 1}}\n"
                          "    decode: {parallelism: {tensor: 1}}\n"),
                 {}, "f");
  ASSERT_TRUE(space) << space.error().Text();
  ASSERT_EQ(space->size(), 2U);
  // 2 backends x 3 token budgets x 3 sequence limits.
  EXPECT_EQ((*space)[0].size(), 18U);
  // trtllm is dropped: 3 token budgets x 9 x 3 sequence limits.
  EXPECT_EQ((*space)[1].size(), 81U);
  const Json aggregated = (*space)[0].Document((*space)[0].At(0));
  EXPECT_EQ(FindPath(aggregated, "engine.workers.prefill"), nullptr);
  EXPECT_EQ(FindPath(aggregated, "engine.kv_transfer"), nullptr);
  const Json disaggregated = (*space)[1].Document((*space)[1].At(0));
  EXPECT_EQ(FindPath(disaggregated, "engine.workers.aggregated"), nullptr);
  EXPECT_NE(FindPath(disaggregated, "engine.kv_transfer"), nullptr);
}

TEST(Shapes, DenseModelsSplitTheirHeads) {
  const std::vector<Shape> shapes = LegalShapes({.heads = 40}, 8);
  // 1, 2, 4 and 8 divide 40: 8 + 4 + 2 + 1 counts of replicas.
  EXPECT_EQ(shapes.size(), 15U);
  for (const Shape& shape : shapes) {
    EXPECT_LE(shape.gpus(), 8U);
    EXPECT_EQ(shape.attention_data * shape.moe_tensor * shape.moe_expert, 1U);
  }
}

TEST(Shapes, ExpertsUseTheSameGpusAsAttention) {
  const std::vector<Shape> shapes =
      LegalShapes({.heads = 64, .experts = 128, .expert_inter = 1536}, 4);
  // 4 workers of 1 GPU, 2 counts of 4 shapes on 2 GPUs, 4 shapes on 4 GPUs.
  EXPECT_EQ(shapes.size(), 4U + 8U + 4U);
  for (const Shape& shape : shapes) {
    EXPECT_EQ(shape.tensor * shape.attention_data, shape.moe_tensor * shape.moe_expert);
  }
}

TEST(Trials, RandomTakesEveryPointOfASmallSpaceOnce) {
  const auto space = BuildSpace(Document(kOneWorker), {}, "f");
  ASSERT_TRUE(space);
  const SearchSettings settings{.algorithm = Algorithm::kRandom, .max_trials = 100, .seed = 7};
  const auto plan = PlanTrials(*space, settings, "f");
  ASSERT_TRUE(plan);
  std::set<std::string> documents;
  for (const Trial& trial : plan->trials) {
    documents.insert(DumpJson((*space)[0].Document(trial.point)));
  }
  EXPECT_EQ(plan->trials.size(), 16U);
  EXPECT_EQ(documents.size(), 16U);
}

TEST(Trials, TheSeedDecidesWhichPointsAreDrawn) {
  const auto space = BuildSpace(Document(kOneWorker), {}, "f");
  ASSERT_TRUE(space);
  const auto drawn = [&](std::uint64_t seed) {
    std::string all;
    const SearchSettings settings{.algorithm = Algorithm::kRandom, .max_trials = 5, .seed = seed};
    const auto plan = PlanTrials(*space, settings, "f");
    for (const Trial& trial : plan->trials) {
      all += DumpJson((*space)[0].Document(trial.point)) + "\n";
    }
    return all;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(Trials, AGuideOrDrawsAreForSpacesThatDoNotFit) {
  const auto space = BuildSpace(Document(kOneWorker), {}, "f");
  ASSERT_TRUE(space);
  const auto plan = [&](Algorithm algorithm, std::uint64_t max_trials) {
    return PlanTrials(*space, {.algorithm = algorithm, .max_trials = max_trials}, "f");
  };
  EXPECT_EQ(SearchSettings{}.algorithm, Algorithm::kBayesian);
  for (const Algorithm algorithm : {Algorithm::kBayesian, Algorithm::kAuto}) {
    EXPECT_EQ(plan(algorithm, 16)->algorithm, Algorithm::kGrid);
    EXPECT_EQ(plan(algorithm, 16)->trials.size(), 16U);
  }
  EXPECT_EQ(plan(Algorithm::kAuto, 15)->algorithm, Algorithm::kRandom);
  EXPECT_EQ(plan(Algorithm::kAuto, 15)->trials.size(), 15U);
  EXPECT_EQ(plan(Algorithm::kBayesian, 15)->algorithm, Algorithm::kBayesian);
  EXPECT_TRUE(plan(Algorithm::kBayesian, 15)->trials.empty());
  EXPECT_FALSE(plan(Algorithm::kGrid, 15));
}

}  // namespace
}  // namespace dynosim::search
