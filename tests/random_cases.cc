// SPDX-License-Identifier: Apache-2.0
#include "random_cases.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "report/json_writer.h"
#include "report/per_request.h"
#include "report/summary.h"
#include "report/telemetry.h"
#include "router/config.h"
#include "router/policy_profile.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/load.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::testing {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  bool Chance(double p) { return random_.NextUniform() < p; }
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) {
    return low + random_.NextBelow(static_cast<std::uint32_t>(high - low + 1));
  }
  template <class T>
  T Pick(std::initializer_list<T> values) {
    return *(values.begin() + random_.NextBelow(static_cast<std::uint32_t>(values.size())));
  }

 private:
  ChaCha12 random_;
};

struct Shape {
  std::uint64_t block;
  std::uint64_t blocks;
  std::uint64_t tokens() const { return block * blocks; }
};

std::string VllmOptions(Dice& dice, const std::string& backend) {
  std::string out;
  if (dice.Chance(0.6)) {
    out += fmt::format(",\"max_num_batched_tokens\":{}",
                       dice.Pick({"1", "2", "3", "5", "8", "16", "24", "64", "null"}));
  }
  if (dice.Chance(0.2)) {
    out += ",\"enable_chunked_prefill\":false";
  }
  if (backend == "vllm" && dice.Chance(0.4)) {
    out += ",\"preemption_mode\":\"fifo\"";
  }
  if (backend == "vllm" && dice.Chance(0.2)) {
    out += fmt::format(",\"prefill_schedule_interval\":{}", dice.Between(2, 4));
  }
  return out;
}

std::string SglangOptions(Dice& dice, const Shape& shape) {
  std::string out;
  if (dice.Chance(0.2)) {
    out += fmt::format(",\"prefill_decode_interval\":{}", dice.Between(1, 3));
  }
  out += fmt::format(
      ",\"sglang\":{{\"chunked_prefill_size\":{},\"schedule_policy\":\"{}\",\"clip_max_new_"
      "tokens\":{},\"schedule_conservativeness\":{}}}",
      shape.block * dice.Between(3, 9), dice.Pick({"fifo", "lpm"}), dice.Pick({4, 16, 4096}),
      dice.Pick({"0.1", "0.5", "1.0"}));
  return out;
}

std::string HandoffOptions(Dice& dice, engine::WorkerRole role) {
  std::string out = fmt::format(",\"worker_type\":\"{}\"", engine::WorkerRoleName(role));
  if (dice.Chance(0.7)) {
    out += fmt::format(",\"kv_transfer_bandwidth\":{},\"kv_transfer_bytes_per_token\":{}",
                       dice.Pick({"0.5", "1.0", "4.0"}), dice.Pick({1'000'000, 131'072}));
  }
  if (dice.Chance(0.5)) {
    out += fmt::format(",\"kv_transfer_timing_mode\":\"{}\"",
                       dice.Pick({"full_prompt", "destination_missing"}));
  }
  return out;
}

std::string EngineJson(Dice& dice, const std::string& backend, const Shape& shape,
                       engine::WorkerRole role) {
  std::string e = fmt::format("\"backend\":\"{}\",\"block_size\":{},\"num_gpu_blocks\":{}", backend,
                              shape.block, shape.blocks);
  if (dice.Chance(0.5)) {
    e += fmt::format(",\"max_num_seqs\":{}", dice.Pick({"1", "2", "3", "4", "8", "null"}));
  }
  if (dice.Chance(0.2)) {
    e += ",\"enable_prefix_caching\":false";
  }
  if (dice.Chance(0.2)) {
    e +=
        fmt::format(",\"max_model_len\":{}",
                    dice.Pick<std::uint64_t>({shape.tokens() / 2 + 1, shape.tokens(), 10, 20, 41}));
  }
  if (dice.Chance(0.3)) {
    e += fmt::format(",\"speedup_ratio\":{}", dice.Pick({"0.0", "0.7", "3.0", "1000.0"}));
  }
  if (dice.Chance(0.5)) {
    e += fmt::format(",\"timing_model\":{{\"type\":\"fixed\",\"prefill_ms\":{},\"decode_ms\":{}}}",
                     dice.Pick({"10.0", "3.7", "0.0", "0.0001"}),
                     dice.Pick({"2.0", "1.3", "0.0", "1.0"}));
  }
  e += backend == "sglang" ? SglangOptions(dice, shape) : VllmOptions(dice, backend);
  const bool aggregated = role == engine::WorkerRole::kAggregated;
  if (!aggregated) {
    e += HandoffOptions(dice, role);
  }
  if (aggregated && dice.Chance(0.2)) {
    e += fmt::format(",\"aic_nextn\":{},\"aic_mtp_seed\":{}", dice.Between(1, 5),
                     dice.Between(0, 999));
  } else if (dice.Chance(0.2)) {
    e += fmt::format(",\"decode_speedup_ratio\":{}", dice.Pick({"0.0", "2.0", "0.3"}));
  }
  std::string out = fmt::format("{{\"engine\":{{{}}}", e);
  if (dice.Chance(0.25)) {
    out += fmt::format(",\"dp_size\":{}", dice.Between(2, 3));
  }
  return out + "}";
}

std::string TraceRows(Dice& dice, const Shape& shape, std::uint64_t block) {
  std::string rows;
  std::uint64_t at_ms = 0;
  const bool sessions = dice.Chance(0.3);
  const std::uint64_t step = dice.Pick<std::uint64_t>({1, 5, 10});
  const std::uint64_t count = dice.Pick<std::uint64_t>({3, 10, 25, 60});
  for (std::uint64_t k = 0; k < count; ++k) {
    at_ms +=
        dice.Pick<std::uint64_t>({0, 0, dice.Between(0, 5) * step, dice.Between(0, 60) * step});
    const std::uint64_t most = std::max<std::uint64_t>(1, (shape.tokens() - 1) / block);
    const std::uint64_t ids = std::min(most, dice.Between(1, 8));
    const std::uint64_t shared = dice.Between(0, ids);
    std::string list;
    for (std::uint64_t i = 0; i < ids; ++i) {
      list += fmt::format("{}{}", i == 0 ? "" : ",",
                          i < shared ? 100 * dice.Between(1, 2) + i : 1000 + k * 10 + i);
    }
    const std::uint64_t length = (ids - 1) * block + dice.Between(1, block);
    const std::uint64_t output =
        dice.Pick<std::uint64_t>({0, 1, 2, dice.Between(1, 12), dice.Between(1, 40)});
    rows +=
        fmt::format("{{\"timestamp\":{},\"input_length\":{},\"output_length\":{},\"hash_ids\":[{}]",
                    at_ms, length, output, list);
    if (sessions) {
      rows += fmt::format(",\"session_id\":\"s{}\"", dice.Between(0, 4));
    }
    rows += "}\n";
  }
  return rows;
}

workload::SyntheticSpec Synthetic(Dice& dice, const Shape& shape, workload::WorkloadSpec& spec) {
  workload::SyntheticSpec s;
  s.input_tokens =
      static_cast<std::int64_t>(dice.Between(1, std::max<std::uint64_t>(1, shape.tokens() - 2)));
  s.output_tokens = static_cast<std::int64_t>(dice.Between(1, 40));
  s.request_count = dice.Pick<std::int64_t>({1, 5, 20, 50});
  switch (dice.Between(0, 2)) {
    case 0:
      spec.replay_concurrency = dice.Pick<std::int64_t>({1, 2, 5, 16});
      break;
    case 1:
      s.arrival_interval_ms = dice.Pick({0.0, 1.0, 10.0, 7.3});
      break;
    default:
      s.request_rate = static_cast<double>(dice.Between(1, 200));
  }
  if (dice.Chance(0.5)) {
    s.turns_per_session = dice.Pick<std::int64_t>({2, 3});
    s.inter_turn_delay_ms = dice.Pick({0.0, 10.0, 3.3});
  }
  if (dice.Chance(0.5)) {
    s.shared_prefix_ratio = dice.Pick({0.3, 0.5, 1.0});
    s.num_prefix_groups = dice.Pick<std::int64_t>({1, 2, 5});
  }
  return s;
}

// A file that lives as long as the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(::testing::TempDir() + "dynosim_case_XXXXXX") {
    const int fd = mkstemp(path_.data());
    if (fd >= 0) {
      close(fd);
    }
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <class Use>
auto WithRun(const RandomCase& random_case, bool pass_by_pass, const Use& use) {
  scenario::Scenario scenario = random_case.scenario;
  scenario.pass_by_pass = pass_by_pass;
  const TemporaryFile file(random_case.trace);
  if (scenario.workload.trace) {
    scenario.workload.trace->files = {file.path()};
  }
  auto loaded = workload::LoadWorkload(scenario.workload, scenario.block_size());
  EXPECT_TRUE(loaded) << loaded.error().Text();
  auto outcome = sim::RunOffline(scenario, *loaded->source);
  EXPECT_TRUE(outcome) << outcome.error().Text() << "\n" << random_case.engine;
  return use(scenario, *loaded->source, *outcome);
}

}  // namespace

RandomCase MakeRandomCase(std::uint64_t seed, const std::string& kind) {
  const std::string backend = kind.substr(0, kind.find('_'));
  const bool pools = kind != backend;
  Dice dice(seed);
  RandomCase out;
  Shape shape{dice.Pick<std::uint64_t>({2, 3, 4, 4, 8, 16}),
              dice.Pick<std::uint64_t>({4, 6, 8, 10, 14, 20, 40, 80})};
  if (backend == "sglang") {
    shape = {dice.Pick<std::uint64_t>({1, 2, 4, 8}),
             dice.Pick<std::uint64_t>({40, 64, 100, 200, 400})};
  }
  const auto read = [&](engine::WorkerRole role) {
    const std::string text = EngineJson(dice, backend, shape, role);
    out.engine += text;
    auto json = ParseJson(text, "engine");
    EXPECT_TRUE(json) << text;
    auto settings = engine::DecodeEngineSettings(*json, "engine");
    EXPECT_TRUE(settings) << settings.error().Text() << "\n" << text;
    return *settings;
  };
  const auto workers = [&] {
    return static_cast<std::uint32_t>(dice.Pick<std::uint64_t>({1, 1, 1, 2, 3}));
  };
  if (pools) {
    out.scenario.prefill_engine = read(engine::WorkerRole::kPrefill);
    out.scenario.decode_engine = read(engine::WorkerRole::kDecode);
    out.scenario.num_prefill_workers = workers();
    out.scenario.num_decode_workers = workers();
  } else {
    out.scenario.engine = read(engine::WorkerRole::kAggregated);
    out.scenario.num_workers = workers();
  }
  out.scenario.capture_per_request = true;
  out.scenario.telemetry.capture = dice.Chance(0.3);
  out.scenario.telemetry.sample_interval_ms = dice.Pick({3.0, 10.0, 33.3});
  if (dice.Chance(0.1)) {
    out.scenario.max_sim_time_ms = dice.Pick({15.0, 40.0, 123.0});
  }
  if (dice.Chance(0.75)) {
    const std::uint64_t block = dice.Pick<std::uint64_t>({shape.block, shape.block * 2, 5, 7});
    out.trace = TraceRows(dice, shape, block);
    out.scenario.workload.trace = workload::TraceSpec{};
    out.scenario.workload.trace->block_size = static_cast<std::int64_t>(block);
    if (dice.Chance(0.3)) {
      out.scenario.workload.replay_concurrency = dice.Pick<std::int64_t>({1, 2, 3, 8});
    }
  } else {
    out.scenario.workload.synthetic = Synthetic(dice, shape, out.scenario.workload);
  }
  return out;
}

RandomCase MakeRoutedCase(std::uint64_t seed, const std::string& backend) {
  RandomCase out = MakeRandomCase(seed, backend);
  Dice dice(seed + 1'000'000);
  out.scenario.num_workers = static_cast<std::uint32_t>(dice.Between(2, 4));
  router::RouterSettings& router = out.scenario.router;
  router.mode = "kv_router";
  router.seed = seed;
  if (dice.Chance(0.3)) {
    router.kv_event_lag_ms = dice.Pick({0.5, 3.0, 20.0});
  }
  router::KvRouterConfig& kv = router.kv;
  if (dice.Chance(0.5)) {
    kv.queue_threshold = dice.Pick({0.0, 0.02, 1.0});
    kv.queue_policy = dice.Pick(
        {router::QueuePolicy::kFcfs, router::QueuePolicy::kLcfs, router::QueuePolicy::kWspt});
  }
  kv.overlap_score_credit = dice.Pick({0.0, 1.0, 1.0, 2.5});
  kv.overlap_score_credit_decay = dice.Pick({0.0, 0.0, 0.7});
  kv.decode_active_request_weight = dice.Pick({0.0, 0.0, 1.5});
  kv.temperature = dice.Pick({0.0, 0.0, 0.5});
  kv.track_active_blocks = dice.Chance(0.8);
  kv.assume_kv_reuse = dice.Chance(0.8);
  kv.track_prefill_tokens = dice.Chance(0.8);
  return out;
}

std::string ReportOf(const RandomCase& random_case, bool pass_by_pass) {
  return WithRun(
      random_case, pass_by_pass,
      [](const auto& scenario, const auto& source, const sim::Outcome& outcome) {
        std::string text = DumpJson(
            report::SummaryJson(report::Summarize(outcome, scenario, {.wall_time_ms = 1.0})),
            {.indent = 1});
        report::JsonWriter writer({.indent = 1}, [&](std::string_view part) { text += part; });
        const report::SessionNames names = [&](std::uint32_t session) {
          return source.SessionName(session);
        };
        writer.BeginArray();
        for (std::size_t i = 0; i < outcome.records.size(); ++i) {
          if (outcome.records[i].terminal) {
            report::WriteRow(writer, outcome, i, names);
          }
        }
        for (const sim::TelemetrySample& sample : outcome.telemetry) {
          report::WriteSample(writer, sample);
        }
        writer.EndArray();
        writer.Flush();
        return text;
      });
}

sim::Outcome OutcomeOf(const RandomCase& random_case) {
  return WithRun(random_case, false,
                 [](const auto&, const auto&, const sim::Outcome& outcome) { return outcome; });
}

std::unique_ptr<workload::RequestSource> SourceOf(const RandomCase& random_case) {
  workload::WorkloadSpec spec = random_case.scenario.workload;
  const TemporaryFile file(random_case.trace);
  if (spec.trace) {
    spec.trace->files = {file.path()};
  }
  auto loaded = workload::LoadWorkload(spec, random_case.scenario.block_size());
  EXPECT_TRUE(loaded) << loaded.error().Text();
  return std::move(loaded->source);
}

}  // namespace dynosim::testing
