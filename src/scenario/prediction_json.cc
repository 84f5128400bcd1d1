// SPDX-License-Identifier: Apache-2.0
#include "scenario/prediction_json.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "scenario/engine_section.h"
#include "scenario/prediction.h"
#include "scenario/traffic_section.h"
#include "workload/spec.h"

namespace dynosim::scenario {
namespace {

template <class T>
void AddIf(Json& json, std::string_view name, const std::optional<T>& value) {
  if (value) {
    json.Add(std::string(name), Json(*value));
  }
}

// What is absent is found by the run itself, which `keyword` says.
template <class T>
void AddOr(Json& json, std::string_view name, const std::optional<T>& value,
           std::string_view keyword) {
  json.Add(std::string(name), value ? Json(*value) : Json(keyword));
}

Json SessionJson(const SessionSection& s) {
  Json json;
  json.Add("turns", s.turns);
  json.Add("shared_prefix_ratio", s.shared_prefix_ratio);
  json.Add("prefix_groups", s.prefix_groups);
  json.Add("inter_turn_delay_ms", s.inter_turn_delay_ms);
  json.Add("prompts", s.prompts == workload::SessionPrompts::kCumulative ? "cumulative" : "fixed");
  return json;
}

Json SourceJson(const SourceSection& s) {
  Json json;
  switch (s.type) {
    case SourceType::kSynthetic:
      json.Add("type", "synthetic");
      json.Add("input_tokens", s.input_tokens);
      json.Add("output_tokens", s.output_tokens);
      break;
    case SourceType::kSyntheticSession:
      json.Add("type", "synthetic-session");
      json.Add("new_input_tokens_per_turn", s.input_tokens);
      json.Add("output_tokens_per_turn", s.output_tokens);
      json.Add("session", SessionJson(s.session));
      break;
    case SourceType::kTrace:
      json.Add("type", "trace");
      json.Add("paths", Json(Json::Array(s.paths.begin(), s.paths.end())));
      json.Add("format", s.format);
      AddIf(json, "block_size", s.block_size);
      AddIf(json, "nested_timestamp_basis", s.nested_timestamp_basis);
      break;
  }
  return json;
}

Json LoadJson(const LoadSection& l) {
  Json json;
  switch (l.type) {
    case LoadType::kConcurrency:
      json.Add("type", "concurrency");
      json.Add("concurrency", l.concurrency);
      break;
    case LoadType::kPoisson:
    case LoadType::kConstantRate:
      json.Add("type", l.type == LoadType::kPoisson ? "poisson" : "constant_rate");
      AddIf(json, "requests_per_second", l.requests_per_second);
      AddIf(json, "sessions_per_second", l.sessions_per_second);
      if (l.type == LoadType::kPoisson) {
        json.Add("seed", l.seed);
      }
      break;
    case LoadType::kTraceTimestamps:
      json.Add("type", "trace_timestamps");
      json.Add("speedup", l.speedup);
      AddIf(json, "agentic_lanes", l.agentic_lanes);
      break;
  }
  return json;
}

Json TrafficJson(const TrafficSection& t) {
  Json json;
  json.Add("source", SourceJson(t.source));
  json.Add("load", LoadJson(t.load));
  if (!t.stop.empty()) {
    Json stop;
    AddIf(stop, "requests", t.stop.requests);
    AddIf(stop, "sessions", t.stop.sessions);
    AddIf(stop, "requests_per_load_unit", t.stop.requests_per_load_unit);
    AddIf(stop, "sessions_per_load_unit", t.stop.sessions_per_load_unit);
    AddIf(stop, "max_virtual_time_seconds", t.stop.max_virtual_time_seconds);
    json.Add("stop", std::move(stop));
  }
  return json;
}

Json CapacityJson(const CapacitySection& c) {
  Json json;
  json.Add("type", c.type == CapacityType::kFixed ? "fixed" : "default");
  AddIf(json, "memory_fraction", c.memory_fraction);
  AddIf(json, "blocks", c.blocks);
  AddIf(json, "bytes", c.bytes);
  return json;
}

Json TimingJson(const TimingSection& t) {
  Json json;
  switch (t.type) {
    case TimingType::kDefault:
      json.Add("type", "default");
      break;
    case TimingType::kFixed:
      json.Add("type", "fixed");
      json.Add("prefill_ms", t.prefill_ms);
      json.Add("decode_ms", t.decode_ms);
      break;
    case TimingType::kPolynomial:
      json.Add("type", "polynomial");
      break;
  }
  return json;
}

Json ParallelismJson(const ParallelismSection& p) {
  Json json;
  json.Add("replicas", p.replicas);
  json.Add("tensor", p.tensor);
  json.Add("pipeline", p.pipeline);
  json.Add("attention_data", p.attention_data);
  json.Add("moe_tensor", p.moe_tensor);
  json.Add("moe_expert", p.moe_expert);
  return json;
}

Json WorkerJson(const WorkerSection& w, engine::Backend backend) {
  Json scheduler;
  scheduler.Add("max_batched_tokens", w.scheduler.max_batched_tokens);
  scheduler.Add("max_sequences", w.scheduler.max_sequences);
  scheduler.Add("prefill_schedule_interval", w.scheduler.prefill_schedule_interval);
  scheduler.Add("prefill_decode_interval", w.scheduler.prefill_decode_interval);
  Json cache;
  cache.Add("block_size", w.kv_cache.block_size.value_or(DefaultBlockSize(backend)));
  cache.Add("prefix_caching", w.kv_cache.prefix_caching);
  AddOr(cache, "bytes_per_token", w.kv_cache.bytes_per_token, "auto");
  cache.Add("capacity", CapacityJson(w.kv_cache.capacity));
  Json json;
  json.Add("parallelism", ParallelismJson(w.parallelism));
  json.Add("scheduler", std::move(scheduler));
  json.Add("kv_cache", std::move(cache));
  json.Add("timing", TimingJson(w.timing));
  json.Add("startup_seconds", w.startup_seconds);
  return json;
}

Json TransferJson(const TransferSection& t) {
  Json json;
  AddOr(json, "bytes_per_token", t.bytes_per_token, "auto");
  AddIf(json, "bandwidth_gb_per_second", t.bandwidth_gb_per_second);
  json.Add("timing_mode", t.timing_mode == engine::TransferTiming::kFullPrompt
                              ? "full_prompt"
                              : "destination_missing");
  return json;
}

Json EngineJson(const EngineSection& e) {
  Json workers;
  if (e.aggregated) {
    workers.Add("aggregated", WorkerJson(*e.aggregated, e.backend));
  }
  if (e.prefill) {
    workers.Add("prefill", WorkerJson(*e.prefill, e.backend));
  }
  if (e.decode) {
    workers.Add("decode", WorkerJson(*e.decode, e.backend));
  }
  Json json;
  json.Add("mode", e.disaggregated ? "disaggregated" : "aggregated");
  json.Add("model", e.model);
  json.Add("hardware", e.hardware);
  json.Add("backend", engine::BackendName(e.backend));
  AddIf(json, "backend_version", e.backend_version);
  AddOr(json, "context_length", e.context_length, "max");
  json.Add("workers", std::move(workers));
  if (e.kv_transfer) {
    json.Add("kv_transfer", TransferJson(*e.kv_transfer));
  }
  return json;
}

Json RouterJson(const RouterSection& r) {
  Json json;
  json.Add("policy", r.policy);
  json.Add("seed", r.seed);
  if (r.policy == "kv_router") {
    Json load_model;
    load_model.Add("type", r.prefill_load_model);
    json.Add("prefill_load_model", std::move(load_model));
    json.Add("overlap_score_credit", r.overlap_score_credit);
    json.Add("prefill_load_scale", r.prefill_load_scale);
    json.Add("temperature", r.temperature);
  }
  return json;
}

}  // namespace

Json PredictionJson(const PredictionDocument& d, Stack stack) {
  Json json;
  json.Add("traffic", TrafficJson(d.traffic));
  json.Add("engine", EngineJson(d.engine));
  if (d.sla.any()) {
    Json sla;
    AddIf(sla, "ttft_ms", d.sla.ttft_ms);
    AddIf(sla, "itl_ms", d.sla.itl_ms);
    AddIf(sla, "e2e_ms", d.sla.e2e_ms);
    Json evaluation;
    evaluation.Add("sla", std::move(sla));
    json.Add("evaluation", std::move(evaluation));
  }
  if (stack == Stack::kDynamo) {
    json.Add("router", RouterJson(d.router));
  }
  return json;
}

}  // namespace dynosim::scenario
