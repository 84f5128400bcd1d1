// SPDX-License-Identifier: Apache-2.0
#include "scenario/model_limits.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "config/decode.h"

namespace dynosim::scenario {

Result<std::uint64_t> MaxContextLength(const std::string& model) {
  const std::filesystem::path file = std::filesystem::path(model) / "config.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return FailedError("", "the model " + config::Shown(Json(model)) +
                               " is not known, and is no directory with config.json");
  }
  DYNO_TRY(const MappedFile mapped, MappedFile::Open(file.string()));
  DYNO_TRY(const Json json, ParseJson(mapped.Text(), file.string()));
  const Json* text = json.is_object() ? json.Find("text_config") : nullptr;
  for (const Json* at : {&json, text}) {
    if (at == nullptr || !at->is_object()) {
      continue;
    }
    config::Decoder v(*at, "");
    std::optional<std::uint64_t> positions;
    v.Field("max_position_embeddings", positions, config::kPositive);
    DYNO_TRY_VOID(v.FinishOpen(file.string()));
    if (positions) {
      return *positions;
    }
  }
  return FailedError(file.string(), "has no max_position_embeddings; give engine.context_length");
}

}  // namespace dynosim::scenario
