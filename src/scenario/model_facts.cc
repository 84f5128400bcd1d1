// SPDX-License-Identifier: Apache-2.0
#include "scenario/model_facts.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/numeric.h"
#include "base/result.h"
#include "config/decode.h"
#include "perfdb/catalog.h"
#include "timing/op_level/kv_bytes.h"
#include "timing/op_level/memory.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::scenario {

ModelFacts::ModelFacts(std::string model)
    : model_(std::move(model)), catalog_(perfdb::DefaultDataFolders()) {}

Result<const perfdb::ModelFile*> ModelFacts::File() {
  if (!file_) {
    DYNO_TRY(file_, catalog_.OpenModel(model_));
  }
  return &*file_;
}

// Read from the file itself: a model of a family that has no timing still has a length.
Result<std::uint64_t> ModelFacts::MaxContextLength() {
  DYNO_TRY(const perfdb::ModelFile* const file, File());
  const Json& config = file->config;
  const Json* text = config.is_object() ? config.Find("text_config") : nullptr;
  for (const Json* at : {&config, text}) {
    if (at == nullptr || !at->is_object()) {
      continue;
    }
    config::Decoder v(*at, "");
    std::optional<std::uint64_t> positions;
    v.Field("max_position_embeddings", positions, config::kPositive);
    DYNO_TRY_VOID(v.FinishOpen("config.json"));
    if (positions) {
      return *positions;
    }
  }
  return FailedError("", "config.json of " + model_ +
                             " has no max_position_embeddings; give engine.context_length");
}

Result<std::uint64_t> ModelFacts::TransferBytesPerToken(std::uint64_t tensor) {
  DYNO_TRY(const perfdb::ModelFile* const file, File());
  DYNO_TRY(const timing::ModelSpec spec, timing::ReadModelSpec(*file));
  return timing::TransferBytesPerToken(spec, tensor, std::nullopt);
}

Result<std::uint64_t> ModelFacts::CacheBytesPerToken(const timing::Deployment& deployment) const {
  DYNO_TRY(const std::unique_ptr<timing::PassModel> model,
           timing::PassModel::Make(deployment, catalog_));
  DYNO_TRY(const timing::KvBytes bytes, timing::FindKvBytes(*model));
  return SaturatingCast<std::uint64_t>(std::ceil(bytes.OfSequence(1)));
}

}  // namespace dynosim::scenario
