// SPDX-License-Identifier: Apache-2.0
// Settings that depend on the measured timing model: its deployment must be that of the engine, and
// it gives the KV capacity when the configuration does not.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "engine/settings_draft.h"
#include "timing/ais.h"
#include "timing/op_level/memory.h"
#include "timing/op_level/pass_model.h"
#include "timing/registry.h"

namespace dynosim::engine {
namespace {

class AisRules {
 public:
  AisRules(SettingsDraft& draft, const timing::AisTiming& ais, std::string_view where)
      : draft_(draft), s_(draft.settings), ais_(ais), where_(where) {}

  Result<void> Apply() {
    const timing::AisConfig& config = ais_.config();
    const timing::Deployment& d = config.deployment;
    DYNO_TRY_VOID(Equal("backend", d.backend, std::string(BackendName(s_.backend))));
    if (config.worker_type) {
      DYNO_TRY_VOID(
          Equal("worker_type", *config.worker_type, std::string(WorkerRoleName(s_.worker_role))));
    }
    if (config.kv_block_size) {
      DYNO_TRY_VOID(Equal("kv_block_size", std::to_string(*config.kv_block_size),
                          std::to_string(s_.block_size)));
    }
    DYNO_TRY_VOID(Equal("nextn", std::to_string(d.nextn), std::to_string(s_.speculative_tokens)));
    DYNO_TRY_VOID(Width("tp", d.tp, draft_.tensor_parallel_given, s_.tensor_parallel_size));
    DYNO_TRY_VOID(Width("pp", d.pp, draft_.pipeline_parallel_given, s_.pipeline_parallel_size));
    DYNO_TRY_VOID(Width("attention_dp", d.attention_dp, draft_.dp_given, s_.dp_size));
    return draft_.num_gpu_blocks_given ? Result<void>() : Capacity();
  }

 private:
  std::unexpected<Error> Wrong(std::string_view field, std::string message) const {
    return UsageError(std::string(where_), draft_.timing_path + ".config." + std::string(field) +
                                               ": " + std::move(message));
  }
  Result<void> Equal(std::string_view field, const std::string& own,
                     const std::string& engine) const {
    if (own == engine) {
      return {};
    }
    return Wrong(field, "must be that of the engine, " + engine + ", got " + own);
  }
  // A width that the configuration leaves out is taken from the timing model.
  Result<void> Width(std::string_view field, std::uint64_t own, bool given,
                     std::uint32_t& engine) const {
    if (!given) {
      engine = static_cast<std::uint32_t>(own);
    }
    return Equal(field, std::to_string(own), std::to_string(engine));
  }

  Result<void> Capacity() {
    if (s_.max_num_batched_tokens == kUnlimited) {
      return UsageError(std::string(where_),
                        "num_gpu_blocks: is required when max_num_batched_tokens is null");
    }
    const auto capacity = timing::FindCapacity(
        ais_.passes(),
        {.block_size = s_.block_size,
         .max_batched_tokens = s_.max_num_batched_tokens,
         .max_requests = s_.max_num_seqs,
         .memory_fraction = draft_.memory_fractions[static_cast<std::size_t>(s_.backend)],
         .cuda_graph_bytes = draft_.cuda_graph_bytes.value_or(0)});
    if (!capacity) {
      return UsageError(std::string(where_), "num_gpu_blocks: " + capacity.error().Text());
    }
    s_.num_gpu_blocks = capacity->blocks;
    return {};
  }

  SettingsDraft& draft_;
  EngineSettings& s_;
  const timing::AisTiming& ais_;
  std::string_view where_;
};

}  // namespace

Result<void> ApplyTiming(SettingsDraft& draft, timing::NamedTiming made, std::string_view where) {
  if (made.ais != nullptr) {
    DYNO_TRY_VOID(AisRules(draft, *made.ais, where).Apply());
  } else if (!draft.needs_model.empty()) {
    return UsageError(std::string(where),
                      draft.needs_model +
                          ": needs a timing_model of the provider \"ais\", which "
                          "derives the KV capacity; give num_gpu_blocks instead");
  }
  draft.settings.timing = std::move(made.model);
  draft.settings.timing_config = std::move(made.config);
  return {};
}

}  // namespace dynosim::engine
