// SPDX-License-Identifier: Apache-2.0
// The two forms of an engine configuration and the fields they have in common.
#include "engine/settings_decode.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "engine/settings.h"
#include "engine/settings_draft.h"
#include "timing/registry.h"

namespace dynosim::engine {
namespace {

using config::Choice;
using config::Decoder;

constexpr std::array kBackends = {Choice<Backend>{"vllm", Backend::kVllm},
                                  Choice<Backend>{"sglang", Backend::kSglang},
                                  Choice<Backend>{"trtllm", Backend::kTrtllm}};
constexpr std::array kRoles = {Choice<WorkerRole>{"aggregated", WorkerRole::kAggregated},
                               Choice<WorkerRole>{"prefill", WorkerRole::kPrefill},
                               Choice<WorkerRole>{"decode", WorkerRole::kDecode}};
constexpr std::array kPreemptionModes = {Choice<PreemptionMode>{"lifo", PreemptionMode::kLifo},
                                         Choice<PreemptionMode>{"fifo", PreemptionMode::kFifo}};
constexpr std::array kTransferTimings = {
    Choice<TransferTiming>{"full_prompt", TransferTiming::kFullPrompt},
    Choice<TransferTiming>{"destination_missing", TransferTiming::kDestinationMissing}};
constexpr std::array kSglangPolicies = {Choice<SglangPolicy>{"fifo", SglangPolicy::kFifo},
                                        Choice<SglangPolicy>{"lpm", SglangPolicy::kLpm}};

enum class TrtllmPolicy : std::uint8_t { kGuaranteedNoEvict };
constexpr std::array kTrtllmPolicies = {
    Choice<TrtllmPolicy>{"guaranteed_no_evict", TrtllmPolicy::kGuaranteedNoEvict}};

// Blocks are numbered with 32 bits.
constexpr config::IntegerRange kBlockCount{.min = 1, .max = 4'294'967'294};
constexpr config::IntegerRange kBlockSize{.min = 1, .max = 2'147'483'647};
constexpr config::IntegerRange kRankCount{.min = 1, .max = 65'536};

template <class E, std::size_t N>
std::string_view NameOf(const std::array<Choice<E>, N>& choices, E value) {
  return std::ranges::find(choices, value, &Choice<E>::value)->name;
}

// Values are checked in CheckEngine: only the SGLang backend looks at them.
void SglangFields(Decoder& v, SettingsDraft& draft, bool allow_page_size) {
  SglangSettings& s = draft.settings.sglang;
  v.Field("schedule_policy", s.schedule_policy, kSglangPolicies);
  v.Field("max_prefill_tokens", s.max_prefill_tokens);
  v.Field("chunked_prefill_size", s.chunked_prefill_size);
  v.Field("clip_max_new_tokens", s.clip_max_new_tokens);
  v.Field("schedule_conservativeness", s.schedule_conservativeness, config::NumberRange{});
  if (!allow_page_size) {
    v.Refuse("page_size", "is no field here; block_size is the page size");
    return;
  }
  std::optional<std::uint64_t> page_size;
  v.Field("page_size", page_size, kBlockSize);
  if (page_size && draft.block_size) {
    v.Fail("page_size", "is another name of block_size; give one of them");
  } else if (page_size) {
    draft.block_size = page_size;
  }
}

// The object of timing_model is decoded after everything else, because it may read a file.
Result<void> MakeTimingOf(SettingsDraft& draft, std::string_view where) {
  timing::NamedTiming made = timing::DefaultTiming();
  if (draft.timing_model != nullptr) {
    DYNO_TRY(made, timing::MakeTiming(*draft.timing_model, draft.timing_path, where));
  }
  return ApplyTiming(draft, std::move(made), where);
}

// A name of the flat form beside "engine", empty if there is none.
std::string FlatNameBeside(const Json& value) {
  static const Json empty = Json::Object();
  Decoder names(empty, "");
  SettingsDraft unused;
  EngineFields(names, unused, true);
  LegacyFields(names, unused);
  for (const Json::Member& member : value.object()) {
    if (std::ranges::find(names.names(), member.first) != names.names().end()) {
      return member.first;
    }
  }
  return "";
}

Result<void> DecodeNested(const Json& value, std::string_view where, SettingsDraft& draft) {
  if (const std::string flat = FlatNameBeside(value); !flat.empty()) {
    return UsageError(std::string(where),
                      "\"engine\" and \"" + flat + "\" cannot be combined: give " + flat +
                          " inside \"engine\", or use the flat form without \"engine\"");
  }
  Decoder v(value, "");
  v.Object("engine", [&](Decoder& engine) {
    EngineFields(engine, draft, false);
    CheckEngine(engine, draft);
  });
  LaunchFields(v, draft);
  CheckLaunch(v, draft, "engine.");
  return v.Finish(where);
}

Result<void> DecodeFlat(const Json& value, std::string_view where, SettingsDraft& draft) {
  Decoder v(value, "");
  EngineFields(v, draft, true);
  LegacyFields(v, draft);
  LaunchFields(v, draft);
  CheckEngine(v, draft);
  CheckLaunch(v, draft, "");
  return v.Finish(where);
}

}  // namespace

std::string_view BackendName(Backend backend) { return NameOf(kBackends, backend); }
std::string_view WorkerRoleName(WorkerRole role) { return NameOf(kRoles, role); }

void EngineFields(Decoder& v, SettingsDraft& draft, bool allow_page_size) {
  EngineSettings& s = draft.settings;
  v.Field("backend", s.backend, kBackends);
  v.Field("num_gpu_blocks", s.num_gpu_blocks, kBlockCount);
  v.Field("block_size", draft.block_size, kBlockSize);
  v.Field("max_model_len", s.max_model_len, config::kPositive);
  v.Limit("max_num_seqs", s.max_num_seqs, config::kPositive, kUnlimited);
  v.Limit("max_num_batched_tokens", s.max_num_batched_tokens, config::kPositive, kUnlimited);
  v.Field("prefill_schedule_interval", s.prefill_schedule_interval, config::kPositive);
  v.Field("prefill_decode_interval", s.prefill_decode_interval);
  v.Field("enable_prefix_caching", s.enable_prefix_caching);
  v.Field("enable_chunked_prefill", s.enable_chunked_prefill);
  v.Field("speedup_ratio", s.speedup_ratio, config::kNonNegative);
  v.Field("decode_speedup_ratio", s.decode_speedup_ratio, config::kNonNegative);
  v.Field("aic_nextn", draft.draft_tokens, {.min = 1, .max = 5});
  v.Field("aic_nextn_accept_rates", draft.accept_rates);
  v.Field("aic_mtp_seed", s.speculative_seed);
  v.Field("worker_type", s.worker_role, kRoles);
  v.Field("preemption_mode", s.preemption_mode, kPreemptionModes);
  v.Field("emit_kv_events", s.emit_kv_events);
  v.Field("emit_kv_token_ids", s.emit_kv_token_ids);
  v.Field("kv_transfer_bytes_per_token", s.kv_transfer_bytes_per_token, config::kPositive);
  v.Field("kv_bytes_per_token", draft.kv_bytes_per_token, config::kPositive);
  v.Field("kv_cache_bytes_per_token", s.kv_cache_bytes_per_token, config::kPositive);
  v.Field("kv_transfer_bandwidth", s.kv_transfer_bandwidth_gbps, config::kNonNegative);
  v.Field("kv_transfer_timing_mode", s.kv_transfer_timing, kTransferTimings);
  draft.timing_model = v.Raw("timing_model");
  draft.timing_path = v.PathOf("timing_model");
  v.Object("sglang", [&](Decoder& inner) { SglangFields(inner, draft, allow_page_size); });
  v.Object("trtllm", [](Decoder& inner) {
    TrtllmPolicy policy = TrtllmPolicy::kGuaranteedNoEvict;
    inner.Field("capacity_scheduler_policy", policy, kTrtllmPolicies);
  });
  v.Refuse("native_host_offload", "is refused: offload of KV blocks is not modelled");
  v.Refuse("g3_offload", "is refused: offload of KV blocks is not modelled");
  v.Refuse("state_cache", "is refused: per-request state caches are not modelled");
  draft.num_gpu_blocks_given = v.Has("num_gpu_blocks");
  s.num_gpu_blocks_is_explicit = draft.num_gpu_blocks_given;
}

void LaunchFields(Decoder& v, SettingsDraft& draft) {
  EngineSettings& s = draft.settings;
  v.Field("dp_size", s.dp_size, kRankCount);
  v.Field("tensor_parallel_size", s.tensor_parallel_size, config::kPositive);
  v.Field("pipeline_parallel_size", s.pipeline_parallel_size, config::kPositive);
  v.Field("startup_time", s.startup_time_s, config::kNonNegative);
  v.Field("num_gpu_blocks_is_explicit", s.num_gpu_blocks_is_explicit);
  draft.dp_given = v.Has("dp_size");
  draft.tensor_parallel_given = v.Has("tensor_parallel_size");
  draft.pipeline_parallel_given = v.Has("pipeline_parallel_size");
  // One per backend, in the order of Backend; those of other backends are ignored.
  constexpr std::array<std::string_view, 3> kShares = {
      "gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"};
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    v.Field(kShares[i], draft.memory_fractions[i], config::kShare);
    if (draft.memory_fractions[i]) {
      draft.needs_model = kShares[i];
    }
  }
  v.Field("cuda_graph_reserved_bytes", draft.cuda_graph_bytes);
  if (draft.cuda_graph_bytes) {
    draft.needs_model = "cuda_graph_reserved_bytes";
  }
  v.Object("dynamo", [&](Decoder& inner) { DynamoFields(inner, draft); });
}

Result<EngineSettings> DecodeEngineSettings(const Json& value, std::string_view where) {
  SettingsDraft draft;
  const bool nested = value.Find("engine") != nullptr;
  DYNO_TRY_VOID(nested ? DecodeNested(value, where, draft) : DecodeFlat(value, where, draft));
  DYNO_TRY_VOID(MakeTimingOf(draft, where));
  return std::move(draft.settings);
}

}  // namespace dynosim::engine
