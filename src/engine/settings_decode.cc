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
  v.Doc("Order of waiting requests: arrival, or the longest cached prefix first.")
      .Field("schedule_policy", s.schedule_policy, kSglangPolicies);
  v.Doc("Prompt tokens of a pass.").Field("max_prefill_tokens", s.max_prefill_tokens);
  v.Doc("Prompt tokens of one request in a pass; a multiple of block_size.")
      .Field("chunked_prefill_size", s.chunked_prefill_size);
  v.Doc("Output tokens that admission reserves for a request at most.")
      .Field("clip_max_new_tokens", s.clip_max_new_tokens);
  v.Doc("Scales the output that admission reserves for running requests, 0 or more.")
      .Field("schedule_conservativeness", s.schedule_conservativeness, config::NumberRange{});
  if (!allow_page_size) {
    v.Refuse("page_size", "is no field here; block_size is the page size");
    return;
  }
  std::optional<std::uint64_t> page_size;
  v.Doc("Another name of block_size, in the flat form alone.")
      .Field("page_size", page_size, kBlockSize);
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
  v.Doc("The engine whose scheduler and cache are simulated.")
      .Field("backend", s.backend, kBackends);
  v.Doc("KV blocks of a rank; with measured kernels (ais) by default what the GPU memory leaves.")
      .Field("num_gpu_blocks", s.num_gpu_blocks, kBlockCount);
  v.Doc("Tokens of a KV block; null: vllm 64, sglang 1, trtllm 32.")
      .Field("block_size", draft.block_size, kBlockSize);
  v.Doc("Longest sequence in tokens, prompt and output; null: no limit.")
      .Field("max_model_len", s.max_model_len, config::kPositive);
  v.Doc("Running requests of a rank; null: no limit.")
      .Limit("max_num_seqs", s.max_num_seqs, config::kPositive, kUnlimited);
  v.Doc("Tokens of a pass; null: no limit.")
      .Limit("max_num_batched_tokens", s.max_num_batched_tokens, config::kPositive, kUnlimited);
  v.Doc("Prompts are scheduled in every n-th pass (vllm).")
      .Field("prefill_schedule_interval", s.prefill_schedule_interval, config::kPositive);
  v.Doc("Decode passes between two prefill passes (sglang).")
      .Field("prefill_decode_interval", s.prefill_decode_interval);
  v.Doc("Prompts reuse the KV blocks of equal prefixes.")
      .Field("enable_prefix_caching", s.enable_prefix_caching);
  v.Doc("Prompts may be computed in several passes.")
      .Field("enable_chunked_prefill", s.enable_chunked_prefill);
  v.Doc("Divides all pass times; 0: not scaled.")
      .Field("speedup_ratio", s.speedup_ratio, config::kNonNegative);
  v.Doc("Divides decode times; 0: not scaled.")
      .Field("decode_speedup_ratio", s.decode_speedup_ratio, config::kNonNegative);
  v.Doc("Tokens drafted by speculative decoding in a step; null: none.")
      .Field("aic_nextn", draft.draft_tokens, {.min = 1, .max = 5});
  v.Doc(
       "Comma list: probability that each draft is accepted after those before it (default "
       "0.85,0.3,0,0,0).")
      .Field("aic_nextn_accept_rates", draft.accept_rates);
  v.Doc("Seed of the accepted drafts.").Field("aic_mtp_seed", s.speculative_seed);
  v.Doc("Whole requests, or one half of prefill/decode disaggregation.")
      .Field("worker_type", s.worker_role, kRoles);
  v.Doc("Which running request gives way when KV blocks run out: the last one or the first one.")
      .Field("preemption_mode", s.preemption_mode, kPreemptionModes);
  v.Doc("Reports stored and removed blocks, also without a KV router.")
      .Field("emit_kv_events", s.emit_kv_events);
  v.Doc("Events carry token ids; needs emit_kv_events.")
      .Field("emit_kv_token_ids", s.emit_kv_token_ids);
  v.Doc("Bytes of KV cache that a handoff moves for a token.")
      .Field("kv_transfer_bytes_per_token", s.kv_transfer_bytes_per_token, config::kPositive);
  v.Doc("Another name of kv_transfer_bytes_per_token.")
      .Field("kv_bytes_per_token", draft.kv_bytes_per_token, config::kPositive);
  v.Doc("Bytes of KV cache of a token on a rank.")
      .Field("kv_cache_bytes_per_token", s.kv_cache_bytes_per_token, config::kPositive);
  v.Doc("Bandwidth of the handoff in 10^9 bytes/s; null: no delay.")
      .Field("kv_transfer_bandwidth", s.kv_transfer_bandwidth_gbps, config::kNonNegative);
  v.Doc("A handoff moves the whole prompt, or what the decode worker has not cached.")
      .Field("kv_transfer_timing_mode", s.kv_transfer_timing, kTransferTimings);
  v.Doc("How long a pass takes; see the timing models (default polynomial).");
  draft.timing_model = v.Raw("timing_model");
  draft.timing_path = v.PathOf("timing_model");
  v.Doc("Settings of the SGLang scheduler.").Object("sglang", [&](Decoder& inner) {
    SglangFields(inner, draft, allow_page_size);
  });
  v.Doc("Settings of the TensorRT-LLM scheduler.").Object("trtllm", [](Decoder& inner) {
    TrtllmPolicy policy = TrtllmPolicy::kGuaranteedNoEvict;
    inner.Doc("Requests start when their whole sequence fits.");
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
  v.Doc("Data-parallel ranks of a worker, each with its own scheduler and cache.")
      .Field("dp_size", s.dp_size, kRankCount);
  v.Doc("GPUs of a rank by tensor parallelism; counts GPU hours.")
      .Field("tensor_parallel_size", s.tensor_parallel_size, config::kPositive);
  v.Doc("Pipeline stages; counts GPU hours.")
      .Field("pipeline_parallel_size", s.pipeline_parallel_size, config::kPositive);
  v.Doc("Seconds until a worker that is added later works.")
      .Field("startup_time", s.startup_time_s, config::kNonNegative);
  v.Doc("Whether num_gpu_blocks is meant; true when it is given.")
      .Field("num_gpu_blocks_is_explicit", s.num_gpu_blocks_is_explicit);
  draft.dp_given = v.Has("dp_size");
  draft.tensor_parallel_given = v.Has("tensor_parallel_size");
  draft.pipeline_parallel_given = v.Has("pipeline_parallel_size");
  // One per backend, in the order of Backend; those of other backends are ignored.
  constexpr std::array<std::string_view, 3> kShares = {
      "gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"};
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    v.Doc("Share of the GPU memory for weights and KV cache; needs measured kernels (ais).");
    v.Field(kShares[i], draft.memory_fractions[i], config::kShare);
    if (draft.memory_fractions[i]) {
      draft.needs_model = kShares[i];
    }
  }
  v.Doc("Bytes of GPU memory set aside for captured graphs; needs measured kernels (ais).")
      .Field("cuda_graph_reserved_bytes", draft.cuda_graph_bytes);
  if (draft.cuda_graph_bytes) {
    draft.needs_model = "cuda_graph_reserved_bytes";
  }
  v.Doc("Settings of live workers; other values than the default are refused here.")
      .Object("dynamo", [&](Decoder& inner) { DynamoFields(inner, draft); });
}

Json EngineSettingsSchema() {
  return config::DescribeFields([](Decoder& v) {
    SettingsDraft draft;
    v.Object("engine", [&draft](Decoder& engine) { EngineFields(engine, draft, false); });
    LaunchFields(v, draft);
  });
}

Result<EngineSettings> DecodeEngineSettings(const Json& value, std::string_view where) {
  SettingsDraft draft;
  const bool nested = value.Find("engine") != nullptr;
  DYNO_TRY_VOID(nested ? DecodeNested(value, where, draft) : DecodeFlat(value, where, draft));
  DYNO_TRY_VOID(MakeTimingOf(draft, where));
  return std::move(draft.settings);
}

}  // namespace dynosim::engine
