// SPDX-License-Identifier: Apache-2.0
#include "search/settings.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "search/paths.h"

namespace dynosim::search {
namespace {

using config::Choice;
using config::Decoder;

constexpr std::array kTargets = {Choice<Target>{"throughput", Target::kThroughput},
                                 Choice<Target>{"throughput_per_gpu", Target::kThroughputPerGpu},
                                 Choice<Target>{"throughput_per_user", Target::kThroughputPerUser},
                                 Choice<Target>{"goodput", Target::kGoodput},
                                 Choice<Target>{"goodput_per_gpu", Target::kGoodputPerGpu},
                                 Choice<Target>{"ttft", Target::kTtft},
                                 Choice<Target>{"e2e_latency", Target::kE2eLatency},
                                 Choice<Target>{"min_gpus", Target::kMinGpus},
                                 Choice<Target>{"pareto", Target::kPareto}};
constexpr std::array kAlgorithms = {Choice<Algorithm>{"auto", Algorithm::kAuto},
                                    Choice<Algorithm>{"grid", Algorithm::kGrid},
                                    Choice<Algorithm>{"random", Algorithm::kRandom},
                                    Choice<Algorithm>{"bayesian", Algorithm::kBayesian}};
constexpr config::IntegerRange kTrials{.min = 1, .max = 1'000'000};
constexpr config::IntegerRange kGpus{.min = 1, .max = 65'536};

void ConstraintFields(Decoder& v, Constraints& c) {
  v.Doc("Fewest GPUs of a candidate.").Field("min_candidate_gpus", c.min_candidate_gpus, kGpus);
  v.Doc("Most GPUs of a candidate.").Field("max_candidate_gpus", c.max_candidate_gpus, kGpus);
  v.Doc("Least requests/s within the latency bounds.")
      .Field("min_goodput_rps", c.min_goodput_rps, config::kNonNegative);
  if (c.min_candidate_gpus && *c.min_candidate_gpus > c.max_candidate_gpus) {
    v.Fail("min_candidate_gpus", "must be <= max_candidate_gpus " +
                                     std::to_string(c.max_candidate_gpus) + ", got " +
                                     std::to_string(*c.min_candidate_gpus));
  }
}

void OptimizationFields(Decoder& v, SearchSettings& s) {
  v.Doc("What is best.").Field("target", s.target, kTargets);
  v.Doc("Also refuse candidates whose mean latencies exceed the bounds of evaluation.sla.")
      .Field("strict_sla", s.strict_sla);
  v.Doc("System for engine.hardware auto.").Field("hardware", s.hardware);
  v.Doc("What a candidate must keep.").Object("constraints", [&](Decoder& constraints) {
    ConstraintFields(constraints, s.constraints);
  });
}

void OptimizerFields(Decoder& v, SearchSettings& s) {
  v.Doc(
       "grid: every point; random: seeded draws; bayesian: guided by what was found, with the "
       "Python package; auto: random. bayesian and auto try every point when that fits into "
       "max_trials.")
      .Field("algorithm", s.algorithm, kAlgorithms);
  v.Doc("Most candidates that are tried.").Field("max_trials", s.max_trials, kTrials);
  v.Doc("Candidates at a time; never more than there are cores.")
      .Field("parallelism", s.parallelism, config::kPositive);
  v.Doc("Real time that one candidate may take.")
      .Field("candidate_timeout_seconds", s.candidate_timeout_seconds, config::kAboveZero);
  v.Doc("Seed of the random draws.").Field("seed", s.seed);
}

void SearchFields(Decoder& v, SearchSettings& s) {
  v.Require("optimization");
  v.Doc("What the search is after.").Object("optimization", [&](Decoder& section) {
    OptimizationFields(section, s);
  });
  v.Doc("How it goes on.").Object("optimizer", [&](Decoder& section) {
    OptimizerFields(section, s);
  });
}

bool HasLatencyBound(const Json& document) {
  const Json* sla = FindPath(document, "evaluation.sla");
  return sla != nullptr && sla->is_object() &&
         std::ranges::any_of(sla->object(),
                             [](const Json::Member& bound) { return !bound.second.is_null(); });
}

void CheckGoodput(Decoder& v, const Json& document, const SearchSettings& s) {
  if (HasLatencyBound(document)) {
    return;
  }
  if (s.target == Target::kGoodput || s.target == Target::kGoodputPerGpu) {
    v.Fail("optimization.target",
           std::string(TargetName(s.target)) + " requires an evaluation.sla bound");
  }
  if (s.constraints.min_goodput_rps) {
    v.Fail("optimization.constraints.min_goodput_rps", "requires an evaluation.sla bound");
  }
}

}  // namespace

std::string_view TargetName(Target target) {
  return kTargets[static_cast<std::size_t>(target)].name;
}

std::string_view AlgorithmName(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].name;
}

Json SearchSettingsSchema() {
  SearchSettings settings;
  return config::DescribeFields([&](Decoder& v) { SearchFields(v, settings); });
}

Result<SearchSettings> DecodeSearchSettings(const Json& document, const std::string& where) {
  SearchSettings settings;
  Decoder v(document, "");
  SearchFields(v, settings);
  CheckGoodput(v, document, settings);
  DYNO_TRY_VOID(v.FinishOpen(where));
  return settings;
}

}  // namespace dynosim::search
