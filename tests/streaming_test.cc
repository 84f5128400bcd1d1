// SPDX-License-Identifier: Apache-2.0
// A trace that is read while the run goes on gives the report of one that was read before, byte for
// byte, and a run that passes its records on gives the summary of one that keeps them.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "base/json.h"
#include "random_cases.h"
#include "report/run_report.h"
#include "report/summary.h"

namespace dynosim::testing {
namespace {

class Streaming : public ::testing::TestWithParam<std::string> {};

RandomCase Streamed(RandomCase c) {
  if (c.scenario.workload.trace) {
    c.scenario.workload.trace->stream_from_bytes = 0;
    c.scenario.workload.trace->streamed_prefixes = 4;  // forgets all the time
  }
  return c;
}

TEST_P(Streaming, GivesTheSameBytesWithCachesUnderPressure) {
  for (std::uint64_t seed = 20'000; seed < 20'000 + Cases(500); ++seed) {
    const RandomCase c = MakeRandomCase(seed, GetParam());
    ASSERT_TRUE(ReportOf(c, false) == ReportOf(Streamed(c), false)) << "seed " << seed << "\n"
                                                                    << c.engine << "\n"
                                                                    << c.trace;
  }
}

TEST_P(Streaming, GivesTheSameBytesBehindAKvRouter) {
  for (std::uint64_t seed = 21'000; seed < 21'000 + Cases(100); ++seed) {
    const RandomCase c = MakeRoutedCase(seed, GetParam());
    ASSERT_TRUE(ReportOf(c, false) == ReportOf(Streamed(c), false)) << "seed " << seed;
  }
}

TEST_P(Streaming, SummaryDoesNotDependOnKeptRecords) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("streaming_" + GetParam() + ".jsonl");
  for (std::uint64_t seed = 22'000; seed < 22'000 + Cases(300); ++seed) {
    RandomCase c = Streamed(MakeRandomCase(seed, GetParam()));
    if (c.scenario.workload.trace) {
      std::ofstream(path, std::ios::binary) << c.trace;
      c.scenario.workload.trace->files = {path.string()};
    }
    c.scenario.goodput.ttft_ms = 30.0;
    std::string texts[2];
    std::size_t kept[2] = {};
    for (const bool keeps : {false, true}) {
      c.scenario.capture_per_request = keeps;
      const auto run = report::RunScenario(c.scenario);
      ASSERT_TRUE(run) << run.error().Text();
      texts[keeps ? 1 : 0] = DumpJson(report::SummaryJson(run->summary), {.indent = 1});
      kept[keeps ? 1 : 0] = run->outcome.records.size();
    }
    ASSERT_TRUE(texts[0] == texts[1]) << "seed " << seed << texts[0] << texts[1];
    const bool in_order = !c.scenario.workload.replay_concurrency && c.scenario.workload.trace &&
                          !c.trace.contains("session_id");
    EXPECT_TRUE(!in_order || kept[0] == 0) << "seed " << seed;
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Backends, Streaming,
                         ::testing::Values("vllm", "trtllm", "sglang", "vllm_pools",
                                           "sglang_pools"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace dynosim::testing
