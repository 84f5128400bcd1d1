// SPDX-License-Identifier: Apache-2.0
#include "search/candidate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/numeric.h"
#include "base/result.h"
#include "config/decode.h"
#include "report/run_report.h"
#include "report/summary.h"
#include "scenario/engine_section.h"
#include "scenario/prediction.h"
#include "scenario/prediction_json.h"
#include "scenario/scenario.h"
#include "scenario/traffic_section.h"
#include "search/paths.h"
#include "search/settings.h"

namespace dynosim::search {
namespace {

using scenario::PredictionDocument;
using scenario::Scenario;

constexpr std::array<std::string_view, kStatuses> kStatusNames = {
    "feasible", "infeasible", "unsupported", "timed_out", "failed"};
constexpr std::string_view kLoad = "traffic.load";

std::uint64_t GpusOf(const std::optional<scenario::WorkerSection>& worker) {
  if (!worker) {
    return 0;
  }
  const scenario::ParallelismSection& p = worker->parallelism;
  return std::uint64_t{p.replicas} * p.tensor * p.pipeline * p.attention_data;
}

std::uint64_t UsedGpus(const PredictionDocument& d) {
  return GpusOf(d.engine.aggregated) + GpusOf(d.engine.prefill) + GpusOf(d.engine.decode);
}

CandidateResult Refused(CandidateResult result, Status status, std::string_view category,
                        std::string reason) {
  result.status = status;
  result.reason_category = category;
  result.reason = std::move(reason);
  return result;
}

// Errors of one document say nothing of the file they come from.
std::string Reason(const Error& error, const std::string& where) {
  const std::string text = error.Text();
  const std::string prefix = where + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Tokens of the KV caches of the role that generates, and how many requests of the mean length half
// way through their output fill the given share of them.
std::uint64_t ConcurrencyOf(double fraction, const PredictionDocument& d, const Scenario& s) {
  const engine::EngineSettings& engine = s.disaggregated() ? *s.decode_engine : s.engine;
  const std::uint64_t replicas = s.disaggregated() ? s.num_decode_workers : s.num_workers;
  const scenario::WorkerSection& worker = d.engine.decode ? *d.engine.decode : *d.engine.aggregated;
  const std::uint64_t rank_tokens = SaturatingMultiply(engine.num_gpu_blocks, engine.block_size);
  const std::uint64_t tokens =
      SaturatingMultiply(rank_tokens, worker.parallelism.attention_data * replicas);
  const std::uint64_t request = d.traffic.source.input_tokens + d.traffic.source.output_tokens / 2;
  const std::uint64_t whole = tokens / request;
  const double count = std::floor(fraction * static_cast<double>(whole));
  return std::max<std::uint64_t>(1, SaturatingCast<std::uint64_t>(count));
}

Result<double> ReadFraction(const Json& load, const std::string& where) {
  config::Decoder v(load, std::string(kLoad));
  double fraction = 0.0;
  v.Raw("type");
  v.Require("fraction");
  v.Field("fraction", fraction, config::kAboveZero);
  DYNO_TRY_VOID(v.Finish(where));
  return fraction;
}

Result<PredictionDocument> ResolveFraction(Json document, const CandidateSetup& setup) {
  DYNO_TRY(const double fraction, ReadFraction(*FindPath(document, kLoad), setup.where));
  Json load;
  load.Add("type", "concurrency");
  load.Add("concurrency", 1);
  SetPath(document, kLoad, load);
  DYNO_TRY(PredictionDocument probe,
           scenario::DecodePrediction(document, setup.stack, setup.where));
  if (probe.traffic.source.type != scenario::SourceType::kSynthetic) {
    return UsageError(setup.where,
                      "traffic.load.type: kv_capacity_fraction needs a source of type synthetic, "
                      "whose requests have one length");
  }
  DYNO_TRY(const Scenario built, scenario::MakeScenario(probe, setup.where));
  probe.traffic.load.concurrency = ConcurrencyOf(fraction, probe, built);
  return probe;
}

bool IsFraction(const Json& document) {
  const Json* type = FindPath(document, "traffic.load.type");
  return type != nullptr && *type == Json("kv_capacity_fraction");
}

// What the run could not start with.
CandidateResult NotBuilt(CandidateResult result, const Error& error, const std::string& where) {
  std::string reason = Reason(error, where);
  const bool memory = reason.find(".kv_cache.capacity") != std::string::npos;
  return Refused(std::move(result), memory ? Status::kInfeasible : Status::kUnsupported,
                 memory ? "kv_capacity" : "candidate_materialization", std::move(reason));
}

// Everything of the summary but real time.
Json MetricsJson(const report::Summary& summary) {
  Json json = report::SummaryJson(summary);
  std::erase_if(json.object(), [](const Json::Member& m) {
    return m.first == "runtime" || m.first == "wall_time_ms" ||
           m.first == "processed_tokens_per_s" || m.first == "processed_output_tokens_per_s";
  });
  return json;
}

// `value` by the mean number of GPUs over the run.
double PerGpu(double value, const report::Summary& s) {
  constexpr double kMsPerHour = 3.6e6;
  const double gpus = s.duration_ms > 0.0 ? s.gpu_hours / (s.duration_ms / kMsPerHour) : 0.0;
  return gpus > 0.0 ? value / gpus : 0.0;
}

double ScoreOf(Target target, const report::Summary& s, std::uint64_t gpus) {
  const double goodput = s.goodput ? s.goodput->output_throughput_tok_s : 0.0;
  switch (target) {
    case Target::kThroughput:
      return s.output_throughput_tok_s;
    case Target::kThroughputPerGpu:
    case Target::kPareto:
      return PerGpu(s.output_throughput_tok_s, s);
    case Target::kThroughputPerUser:
      return s.gaps.tokens_per_second.mean;
    case Target::kGoodput:
      return goodput;
    case Target::kGoodputPerGpu:
      return PerGpu(goodput, s);
    case Target::kTtft:
      return -s.ttft_ms.mean;
    case Target::kE2eLatency:
      return -s.e2e_latency_ms.mean;
    case Target::kMinGpus:
      return -static_cast<double>(gpus);
  }
  return 0.0;
}

// The first bound that does not hold; empty when all do.
std::string BrokenBound(const SearchSettings& settings, const scenario::Goodput& sla,
                        const report::Summary& s) {
  struct Bound {
    std::string_view name;
    double mean;
    std::optional<double> bound;
  };
  if (settings.strict_sla) {
    for (const Bound& b :
         {Bound{"TTFT", s.ttft_ms.mean, sla.ttft_ms}, Bound{"ITL", s.gaps.gap_ms.mean, sla.itl_ms},
          Bound{"request latency", s.e2e_latency_ms.mean, sla.e2e_ms}}) {
      if (b.bound && b.mean > *b.bound) {
        return fmt::format("mean {} is {:.6g} ms, more than the bound of {:.6g} ms", b.name, b.mean,
                           *b.bound);
      }
    }
  }
  const double rate = s.goodput ? s.goodput->request_throughput_rps : 0.0;
  if (settings.constraints.min_goodput_rps && rate < *settings.constraints.min_goodput_rps) {
    return fmt::format("goodput is {:.4g} requests/s, less than min_goodput_rps {:.4g}", rate,
                       *settings.constraints.min_goodput_rps);
  }
  return "";
}

CandidateResult Judge(CandidateResult result, const SearchSettings& settings,
                      const scenario::Goodput& sla, const report::Summary& summary) {
  result.metrics = MetricsJson(summary);
  if (summary.e2e_latency_ms.samples == 0) {
    std::string reason = "no request was completed with output";
    if (!summary.first_rejection_reason.empty()) {
      reason += ": " + summary.first_rejection_reason;
    }
    return Refused(std::move(result), Status::kInfeasible, "no_samples", std::move(reason));
  }
  result.objectives = {
      {"throughput_per_gpu", ScoreOf(Target::kThroughputPerGpu, summary, result.used_gpus)},
      {"throughput_per_user", ScoreOf(Target::kThroughputPerUser, summary, result.used_gpus)}};
  if (std::string broken = BrokenBound(settings, sla, summary); !broken.empty()) {
    return Refused(std::move(result), Status::kInfeasible, "sla_constraint", std::move(broken));
  }
  const double score = ScoreOf(settings.target, summary, result.used_gpus);
  if (!std::isfinite(score)) {
    return Refused(std::move(result), Status::kFailed, "invalid_metrics",
                   std::string(TargetName(settings.target)) + " is not finite");
  }
  result.status = Status::kFeasible;
  result.score = score;
  return result;
}

// Empty when the number of GPUs is allowed.
std::string BrokenBudget(const Constraints& limits, std::uint64_t gpus) {
  if (gpus > limits.max_candidate_gpus) {
    return fmt::format("uses {} GPUs, more than max_candidate_gpus {}", gpus,
                       limits.max_candidate_gpus);
  }
  if (limits.min_candidate_gpus && gpus < *limits.min_candidate_gpus) {
    return fmt::format("uses {} GPUs, less than min_candidate_gpus {}", gpus,
                       *limits.min_candidate_gpus);
  }
  return "";
}

bool Asked(const std::function<bool()>& question) { return question && question(); }

CandidateResult RunCandidate(CandidateResult result, const Scenario& scenario,
                             const CandidateSetup& setup) {
  bool timed_out = false;
  report::RunSetup run_setup;
  run_setup.warn = setup.warn;
  run_setup.hooks.progress = [&](double, std::uint64_t, std::uint64_t) {
    timed_out = Asked(setup.timed_out);
    return !timed_out && !Asked(setup.stopped);
  };
  const auto run = report::RunScenario(scenario, run_setup);
  if (timed_out) {
    return Refused(std::move(result), Status::kTimedOut, "runtime_timeout",
                   fmt::format("took more than candidate_timeout_seconds {:.4g}",
                               setup.settings->candidate_timeout_seconds));
  }
  if (!run) {
    return Refused(std::move(result), Status::kFailed, "replay_runtime",
                   Reason(scenario::InTermsOfDocument(run.error()), setup.where));
  }
  return Judge(std::move(result), *setup.settings, scenario.goodput, run->summary);
}

}  // namespace

std::string_view StatusName(Status status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

Result<PredictionDocument> ReadCandidate(const Json& document, const CandidateSetup& setup) {
  if (IsFraction(document)) {
    return ResolveFraction(document, setup);
  }
  return scenario::DecodePrediction(document, setup.stack, setup.where);
}

CandidateResult Evaluate(const Json& document, const CandidateSetup& setup) {
  CandidateResult result;
  const auto read = ReadCandidate(document, setup);
  if (!read) {
    return NotBuilt(std::move(result), read.error(), setup.where);
  }
  result.prediction_config = scenario::PredictionJson(*read, setup.stack);
  result.used_gpus = UsedGpus(*read);
  if (std::string broken = BrokenBudget(setup.settings->constraints, result.used_gpus);
      !broken.empty()) {
    return Refused(std::move(result), Status::kInfeasible, "gpu_budget", std::move(broken));
  }
  const auto scenario = scenario::MakeScenario(*read, setup.where);
  if (!scenario) {
    return NotBuilt(std::move(result), scenario.error(), setup.where);
  }
  return RunCandidate(std::move(result), *scenario, setup);
}

Json CandidateResult::ToJson() const {
  Json json;
  json.Add("status", StatusName(status));
  json.Add("reason_category", reason_category.empty() ? Json() : Json(reason_category));
  json.Add("reason", reason.empty() ? Json() : Json(reason));
  json.Add("used_gpus", used_gpus);
  json.Add("score", score ? Json(*score) : Json());
  Json values;
  for (const auto& [name, value] : objectives) {
    values.Add(name, value);
  }
  json.Add("objectives", std::move(values));
  json.Add("metrics", metrics);
  json.Add("prediction_config", prediction_config);
  return json;
}

Result<CandidateResult> CandidateResult::FromJson(const Json& json, const std::string& where) {
  CandidateResult result;
  config::Decoder v(json, "");
  std::string status;
  v.Field("status", status, kStatusNames);
  std::optional<std::string> category;
  std::optional<std::string> reason;
  v.Field("reason_category", category);
  v.Field("reason", reason);
  v.Field("used_gpus", result.used_gpus);
  v.Field("score", result.score, config::NumberRange{});
  for (const auto& [name, out] :
       {std::pair{"metrics", &result.metrics}, {"prediction_config", &result.prediction_config}}) {
    if (const Json* value = v.Raw(name)) {
      *out = *value;
    }
  }
  if (const Json* values = v.Raw("objectives"); values != nullptr && values->is_object()) {
    for (const Json::Member& member : values->object()) {
      if (member.second.is_number()) {
        result.objectives.emplace_back(member.first, member.second.number());
      }
    }
  }
  DYNO_TRY_VOID(v.Finish(where));
  const auto* const name = std::ranges::find(kStatusNames, status);
  if (name == kStatusNames.end()) {
    return UsageError(where, "has no status");
  }
  result.status = static_cast<Status>(name - kStatusNames.begin());
  result.reason_category = category.value_or("");
  result.reason = reason.value_or("");
  if (result.status == Status::kFeasible &&
      (!result.score || result.objectives.size() != 2 || !result.prediction_config.is_object())) {
    return UsageError(where, "is feasible without score, both objectives and document");
  }
  return result;
}

}  // namespace dynosim::search
