// SPDX-License-Identifier: Apache-2.0
#include "scenario/engine_section.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/decode.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "scenario/limits.h"

namespace dynosim::scenario {
namespace {

using config::Choice;
using config::Decoder;
using config::IntegerRange;
using config::Variant;
using engine::Backend;
using engine::TransferTiming;
using engine::WorkerRole;

constexpr std::string_view kLater = "is not available in this version";
constexpr std::string_view kOffload = "is refused: offload of KV blocks is not modelled";
constexpr IntegerRange kReplicas{.min = 1, .max = kMaxWorkers};
constexpr IntegerRange kWidth{.min = 1, .max = 65'536};
// Blocks are numbered with 32 bits.
constexpr IntegerRange kBlockCount{.min = 1, .max = 4'294'967'294};
constexpr IntegerRange kBlockSize{.min = 1, .max = 2'147'483'647};

constexpr std::array kModes = {Choice<bool>{"aggregated", false},
                               Choice<bool>{"disaggregated", true}};
constexpr std::array kBackends = {Choice<Backend>{"vllm", Backend::kVllm},
                                  Choice<Backend>{"sglang", Backend::kSglang},
                                  Choice<Backend>{"trtllm", Backend::kTrtllm}};
constexpr std::array kTransferTimings = {
    Choice<TransferTiming>{"full_prompt", TransferTiming::kFullPrompt},
    Choice<TransferTiming>{"destination_missing", TransferTiming::kDestinationMissing}};

void ParallelismFields(Decoder& v, ParallelismSection& p) {
  v.Doc("Workers of this role.").Field("replicas", p.replicas, kReplicas);
  v.Doc("Tensor-parallel width of a worker.").Field("tensor", p.tensor, kWidth);
  v.Doc("Pipeline stages of a worker.").Field("pipeline", p.pipeline, kWidth);
  v.Doc("Attention data parallelism: ranks of a worker.")
      .Field("attention_data", p.attention_data, kWidth);
  v.Doc("Tensor-parallel width of the experts.").Field("moe_tensor", p.moe_tensor, kWidth);
  v.Doc("Expert-parallel width.").Field("moe_expert", p.moe_expert, kWidth);
  v.Refuse("preset", "is for recommendations only");
  if (std::uint64_t{p.replicas} * p.attention_data > kMaxRanks) {
    v.Fail("replicas", "times attention_data must be at most " + std::to_string(kMaxRanks) +
                           " ranks, got " + std::to_string(p.replicas) + " workers of " +
                           std::to_string(p.attention_data));
  }
}

void SchedulerFields(Decoder& v, SchedulerSection& s) {
  v.Doc("Token budget of one pass.")
      .Field("max_batched_tokens", s.max_batched_tokens, config::kPositive);
  v.Doc("Sequences that run at a time on a rank.")
      .Field("max_sequences", s.max_sequences, config::kPositive);
  v.Doc("vLLM: passes from one admission of prompts to the next.")
      .Field("prefill_schedule_interval", s.prefill_schedule_interval, config::kPositive);
  v.Doc("SGLang: decode passes between prefill passes.")
      .Field("prefill_decode_interval", s.prefill_decode_interval);
}

void CapacityFields(Decoder& v, CapacitySection& c) {
  const std::array forms = {
      Variant{"default", "What the memory of the GPUs leaves for the KV cache.",
              [&](Decoder& form) {
                form.Doc("Share of the memory that may be used; 0.9, and 0.88 for sglang.")
                    .Field("memory_fraction", c.memory_fraction,
                           config::NumberRange{.min = 0.0, .max = 1.0, .above_min = true});
              }},
      Variant{"fixed", "A given size.", [&](Decoder& form) {
                form.Doc("KV blocks of a rank.").Field("blocks", c.blocks, kBlockCount);
                form.Doc("Bytes of KV cache of a rank, instead of blocks.")
                    .Field("bytes", c.bytes, config::kPositive);
              }}};
  c.type = static_cast<CapacityType>(v.Variants("type", forms));
  if (c.type == CapacityType::kFixed && !c.blocks && !c.bytes) {
    v.Fail("", "type fixed requires blocks or bytes");
  }
  if (c.blocks && c.bytes) {
    v.Fail("", "takes blocks or bytes, not both");
  }
}

void KvCacheFields(Decoder& v, KvCacheSection& k) {
  v.Doc("Tokens of a KV block (SGLang: page); 64 for vllm, 1 for sglang, 32 for trtllm.")
      .Field("block_size", k.block_size, kBlockSize);
  v.Doc("Reuse of cached prompt blocks.").Field("prefix_caching", k.prefix_caching);
  v.Doc("KV bytes of a token on a rank; auto: of the model.")
      .Field("bytes_per_token", k.bytes_per_token, config::kPositive, "auto");
  v.Doc("Size of the KV cache of a rank.").Object("capacity", [&](Decoder& capacity) {
    CapacityFields(capacity, k.capacity);
  });
}

void TimingFields(Decoder& v, TimingSection& t) {
  const std::array forms = {
      Variant{"default", "Measured kernels of the model on this hardware.", [](Decoder&) {}},
      Variant{"fixed", "Constant times.",
              [&](Decoder& form) {
                form.Require("prefill_ms");
                form.Require("decode_ms");
                form.Doc("Time of the prefill part of a pass.")
                    .Field("prefill_ms", t.prefill_ms, config::kNonNegative);
                form.Doc("Time of the decode part of a pass.")
                    .Field("decode_ms", t.decode_ms, config::kNonNegative);
              }},
      Variant{"polynomial", "A generic curve that needs no data.", [](Decoder&) {}}};
  t.type = static_cast<TimingType>(v.Variants("type", forms));
  v.Refuse("forward_model", kLater);
}

void WorkerFields(Decoder& v, WorkerSection& w) {
  v.Doc("How many GPUs, and how the model is split over them.")
      .Object("parallelism", [&](Decoder& inner) { ParallelismFields(inner, w.parallelism); });
  v.Doc("Limits of a pass.").Object("scheduler", [&](Decoder& inner) {
    SchedulerFields(inner, w.scheduler);
  });
  v.Doc("The KV cache of a rank.").Object("kv_cache", [&](Decoder& inner) {
    KvCacheFields(inner, w.kv_cache);
  });
  v.Doc("How long a pass takes.").Object("timing", [&](Decoder& inner) {
    TimingFields(inner, w.timing);
  });
  v.Doc("Start-up time of a worker that is added later.")
      .Field("startup_seconds", w.startup_seconds, config::kNonNegative);
  for (const std::string_view name : {"host_offload", "g3_offload", "state_cache"}) {
    v.Refuse(name, kOffload);
  }
}

void ReadWorker(Decoder& v, std::string_view role, std::string_view doc,
                std::uint64_t max_sequences, std::optional<WorkerSection>& out) {
  WorkerSection worker;
  worker.scheduler.max_sequences = max_sequences;
  if (v.Doc(doc).OptionalObject(role, [&](Decoder& inner) { WorkerFields(inner, worker); })) {
    out = worker;
  }
}

void TransferFields(Decoder& v, TransferSection& t) {
  v.Doc("KV bytes of a token that are sent; auto: of the model.")
      .Field("bytes_per_token", t.bytes_per_token, config::kPositive, "auto");
  v.Doc("Bandwidth in 10^9 bytes per second; null: no delay.")
      .Field("bandwidth_gb_per_second", t.bandwidth_gb_per_second, config::kAboveZero);
  v.Doc("What is sent: the whole prompt, or what the decode worker has not cached.")
      .Field("timing_mode", t.timing_mode, kTransferTimings);
}

void CheckRoles(Decoder& v, const EngineSection& e) {
  if (e.disaggregated && e.backend == Backend::kTrtllm) {
    v.Fail("mode", "disaggregated is not supported with backend trtllm; use vllm or sglang");
  }
  if (!e.disaggregated && !e.aggregated) {
    v.Fail("workers", "mode aggregated requires workers.aggregated");
  }
  if (e.disaggregated && (!e.prefill || !e.decode)) {
    v.Fail("workers", "mode disaggregated requires workers.prefill and workers.decode");
  }
  if (!e.disaggregated && (e.prefill || e.decode)) {
    v.Fail(e.prefill ? "workers.prefill" : "workers.decode", "is not accepted in mode aggregated");
  }
  if (e.disaggregated && e.aggregated) {
    v.Fail("workers.aggregated", "is not accepted in mode disaggregated");
  }
  if (!e.disaggregated && e.kv_transfer) {
    v.Fail("kv_transfer", "is not accepted in mode aggregated");
  }
}

void CheckWorker(Decoder& v, const EngineSection& e, const std::string& role,
                 const std::optional<WorkerSection>& worker) {
  if (!worker) {
    return;
  }
  const std::string path = "workers." + role + ".";
  const std::string backend(engine::BackendName(e.backend));
  if (e.backend != Backend::kSglang && worker->kv_cache.block_size == 1) {
    v.Fail(path + "kv_cache.block_size",
           "must be an integer >= 2 with backend " + backend + ", got 1");
  }
  if (e.backend != Backend::kVllm && worker->scheduler.prefill_schedule_interval != 1) {
    v.Fail(path + "scheduler.prefill_schedule_interval",
           "is supported only with backend vllm, got backend " + backend);
  }
  if (e.backend != Backend::kSglang && worker->scheduler.prefill_decode_interval != 0) {
    v.Fail(path + "scheduler.prefill_decode_interval",
           "is supported only with backend sglang, got backend " + backend);
  }
}

}  // namespace

std::uint64_t DefaultBlockSize(Backend backend) {
  switch (backend) {
    case Backend::kVllm:
      return 64;
    case Backend::kSglang:
      return 1;
    case Backend::kTrtllm:
      return 32;
  }
  return 64;
}

void EngineSectionFields(Decoder& v, EngineSection& e) {
  v.Doc("One pool of workers, or prefill and decode pools.").Field("mode", e.disaggregated, kModes);
  v.Require("model");
  v.Doc("Hugging Face id, or a local directory with config.json.").Field("model", e.model);
  v.Require("hardware");
  v.Doc("System, such as h200_sxm.").Field("hardware", e.hardware);
  v.Doc("Serving engine.").Field("backend", e.backend, kBackends);
  v.Doc("Version of the serving engine; null: the current one.")
      .Field("backend_version", e.backend_version);
  v.Doc("Longest sequence in tokens; max: of the model.")
      .Field("context_length", e.context_length, config::kPositive, "max");
  v.Require("workers");
  v.Doc("Workers by role.").Object("workers", [&](Decoder& workers) {
    const WorkerSection defaults;
    ReadWorker(workers, "aggregated", "Workers that do both.", defaults.scheduler.max_sequences,
               e.aggregated);
    ReadWorker(workers, "prefill", "Workers that compute prompts.", 1, e.prefill);
    ReadWorker(workers, "decode", "Workers that generate tokens.", defaults.scheduler.max_sequences,
               e.decode);
    workers.Refuse("encoder", kLater);
  });
  TransferSection transfer;
  if (v.Doc("Transfer of KV from prefill to decode workers.")
          .OptionalObject("kv_transfer",
                          [&](Decoder& inner) { TransferFields(inner, transfer); })) {
    e.kv_transfer = transfer;
  }
  v.Refuse("speculation", kLater);
  v.Refuse("afd", kLater);
  if (e.hardware == "auto") {
    v.Fail("hardware", "auto is for recommendations only; name a system such as h200_sxm");
  }
  if (e.model.empty() && v.Has("model")) {
    v.Fail("model", "must not be empty");
  }
  CheckRoles(v, e);
  CheckWorker(v, e, "aggregated", e.aggregated);
  CheckWorker(v, e, "prefill", e.prefill);
  CheckWorker(v, e, "decode", e.decode);
}

}  // namespace dynosim::scenario
