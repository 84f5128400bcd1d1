// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace file, plain or packed, in each request format: a workload or an error of the
// file, never a crash. A small workload is then replayed, on the fast path and pass by pass: every
// request must end, and both must give the same report.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file_descriptor.h"
#include "base/json.h"
#include "base/text_file.h"
#include "engine/settings_decode.h"
#include "report/summary.h"
#include "scenario/scenario.h"
#include "sim/run.h"
#include "workload/load.h"
#include "workload/spec.h"

namespace dynosim {
namespace {

// What a run may cost. A packed file of a few bytes could unpack to millions of rows.
constexpr TextLimits kLimits{.floor = 1U << 18, .ratio = 1, .pipe = 1U << 18};
constexpr std::uint32_t kMaxRequests = 200;

// Small blocks, pools and context limits make short runs with evictions, preemptions and
// rejections, whatever lengths the trace asks for.
struct Setup {
  std::string_view format;
  std::string_view engine;
  std::int64_t trace_block = 0;
  std::optional<std::int64_t> concurrency{};
};
constexpr std::array kSetups = {
    Setup{.format = "mooncake",
          .engine = R"({"backend":"vllm","block_size":4,"num_gpu_blocks":16,"max_model_len":60,)"
                    R"("max_num_batched_tokens":24,"timing_model":{"type":"fixed","prefill_ms":10,)"
                    R"("decode_ms":2}})",
          .trace_block = 8},
    Setup{.format = "mooncake",
          .engine = R"({"backend":"trtllm","block_size":3,"num_gpu_blocks":20})",
          .trace_block = 5,
          .concurrency = 3},
    Setup{.format = "mooncake-delta",
          .engine = R"({"backend":"sglang","block_size":2,"num_gpu_blocks":40,"max_model_len":70,)"
                    R"("sglang":{"chunked_prefill_size":16,"schedule_policy":"lpm"}})",
          .trace_block = 7,
          .concurrency = 2},
    Setup{.format = "mooncake-delta",
          .engine = R"({"backend":"vllm","block_size":8,"num_gpu_blocks":9,"aic_nextn":2})",
          .trace_block = 6},
};

scenario::Scenario MakeScenario(const Setup& setup, const std::string& path) {
  const auto json = ParseJson(setup.engine, "engine");
  DYNO_CHECK(json);
  const auto settings = engine::DecodeEngineSettings(*json, "engine");
  DYNO_CHECK(settings);
  scenario::Scenario scenario;
  scenario.engine = *settings;
  scenario.workload.trace = workload::TraceSpec{
      .files = {path}, .format = std::string(setup.format), .block_size = setup.trace_block};
  scenario.workload.replay_concurrency = setup.concurrency;
  return scenario;
}

// The report of one run; empty when the trace is refused or has too many requests.
std::string Report(const scenario::Scenario& scenario) {
  const auto loaded = workload::LoadWorkload(scenario.workload, scenario.engine.block_size);
  if (!loaded) {
    DYNO_CHECK(!loaded.error().message.empty());
    DYNO_CHECK(loaded.error().where.starts_with(scenario.workload.trace->files.front()));
    return "";
  }
  const std::uint32_t requests = loaded->source->RequestCount();
  DYNO_CHECK(requests > 0);
  if (requests > kMaxRequests) {
    return "";
  }
  const auto outcome = sim::RunOffline(scenario, *loaded->source);
  DYNO_CHECK(outcome);
  const report::Summary summary = report::Summarize(*outcome, scenario, {});
  DYNO_CHECK(summary.num_requests == requests);
  DYNO_CHECK(summary.completed_requests + summary.rejected_requests == requests);
  std::string text = DumpJson(report::SummaryJson(summary));
  DYNO_CHECK(ParseJson(text, "report"));
  return text;
}

void ReplayFile(const std::string& path) {
  if (!TextFile::Read(path, kLimits)) {
    return;
  }
  for (const Setup& setup : kSetups) {
    scenario::Scenario scenario = MakeScenario(setup, path);
    const std::string report = Report(scenario);
    scenario.pass_by_pass = true;
    DYNO_CHECK(Report(scenario) == report);
  }
}

}  // namespace
}  // namespace dynosim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const dynosim::FileDescriptor file(memfd_create("trace", 0));
  DYNO_CHECK(ftruncate(file.value(), 0) == 0);
  DYNO_CHECK(pwrite(file.value(), data, size, 0) == static_cast<ssize_t>(size));
  dynosim::ReplayFile(fmt::format("/proc/self/fd/{}", file.value()));
  return 0;
}
