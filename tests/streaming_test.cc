// SPDX-License-Identifier: Apache-2.0
// A trace that is read while the run goes on gives the report of one that was read before, byte for
// byte, and a run that passes its records on gives the summary of one that keeps them.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cases_for_test.h"
#include "base/json.h"
#include "base/result.h"
#include "random_cases.h"
#include "report/run_report.h"
#include "report/summary.h"
#include "scenario/replay_flags.h"
#include "workload/spec.h"

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

// What the run holds at its largest, as the allocator sees it (nothing under a sanitizer).
struct MeasuredRun {
  std::string summary;
  std::string error;
  std::size_t bytes_max = 0;
};

// `most_bytes`: how long a file that the run writes may become, if there is a limit.
MeasuredRun RunRows(std::uint32_t rows, bool streams, const char* mode,
                    std::optional<rlim_t> most_bytes = {}) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     ("streaming_rows_" + std::to_string(getpid()) + ".jsonl");
  std::ofstream file(path, std::ios::binary);
  for (std::uint32_t i = 0; i < rows; ++i) {
    file << R"({"timestamp":)" << i * 7 / 4 << R"(,"input_length":96,"output_length":)" << 1 + i % 5
         << R"(,"hash_ids":[)" << i % 512 << ',' << 1000 + i << "]}\n";
  }
  file.close();
  scenario::ReplayFlags flags;
  flags.trace_files = {path.string()};
  flags.trace_block_size = "64";
  flags.num_workers = "4";
  flags.router_mode = mode;
  flags.extra_engine_args = R"({"backend":"vllm","block_size":64,"num_gpu_blocks":256,)"
                            R"("timing_model":{"type":"fixed","prefill_ms":1.3,"decode_ms":0.7}})";
  Result<scenario::Replay> replay = scenario::BuildReplay(flags);
  EXPECT_TRUE(replay) << replay.error().Text();
  workload::TraceSpec& trace = *replay->scenario.workload.trace;
  trace.stream_from_bytes = streams ? 0 : std::uint64_t{1} << 40;
  trace.streamed_prefixes = 1024;
  MeasuredRun out;
  report::RunSetup setup;
  setup.hooks.progress = [&](double, std::uint64_t, std::uint64_t) {
    const struct mallinfo2 heap = mallinfo2();
    out.bytes_max = std::max(out.bytes_max, heap.uordblks + heap.hblkhd);
    return true;
  };
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit during = {.rlim_cur = most_bytes.value_or(before.rlim_cur),
                         .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &during);
  const auto run = report::RunScenario(replay->scenario, setup);
  setrlimit(RLIMIT_FSIZE, &before);
  std::filesystem::remove(path);
  if (run) {
    out.summary = DumpJson(report::SummaryJson(run->summary));
  } else {
    out.error = run.error().Text();
  }
  return out;
}

TEST(StreamedRun, MemoryDoesNotGrowWithItsRows) {
  if (kSanitized) {
    GTEST_SKIP() << "the sanitizer's allocator does not tell";
  }
  for (const char* const mode : {"round_robin", "kv_router"}) {
    const MeasuredRun few = RunRows(40'000, true, mode);
    const MeasuredRun many = RunRows(120'000, true, mode);
    EXPECT_EQ(few.error + many.error, "");
    // Samples alone would be 2.5 MB, block names 6.4 MB.
    EXPECT_LT(many.bytes_max, few.bytes_max + 400'000) << mode << ' ' << few.bytes_max;
  }
}

TEST(StreamedRun, SamplesInAFileGiveTheSameBytes) {
  for (const char* const mode : {"round_robin", "kv_router"}) {
    const MeasuredRun streamed = RunRows(40'000, true, mode);
    EXPECT_EQ(streamed.summary, RunRows(40'000, false, mode).summary) << mode;
    EXPECT_GT(streamed.summary.size(), 1000U);
  }
}

// A file that may not grow is what a full disk looks like.
TEST(StreamedRun, AFullDiskIsOneLine) {
  std::signal(SIGXFSZ, SIG_IGN);
  const MeasuredRun run = RunRows(50'000, true, "round_robin", 1 << 20);
  EXPECT_EQ(run.summary, "");
  EXPECT_NE(run.error.find("temporary file for the samples of a long run cannot be written"),
            std::string::npos)
      << run.error;
}

INSTANTIATE_TEST_SUITE_P(Backends, Streaming,
                         ::testing::Values("vllm", "trtllm", "sglang", "vllm_pools",
                                           "sglang_pools"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace dynosim::testing
