// SPDX-License-Identifier: Apache-2.0
#include "field_replay.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/result.h"
#include "report/json_report.h"
#include "report/json_writer.h"
#include "report/per_request.h"
#include "report/summary.h"
#include "scenario/replay_flags.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/load.h"
#include "workload/memory_file_for_test.h"

namespace dynosim::testing {
namespace {

constexpr std::string_view kEngine =
    R"({"backend":"vllm","block_size":64,"num_gpu_blocks":1024,)"
    R"("timing_model":{"type":"fixed","prefill_ms":10,"decode_ms":2}})";

// Ids with their ranges written out: "1 4..6" becomes "1,4,5,6".
std::string IdList(std::string_view ids) {
  std::string out;
  while (!ids.empty()) {
    const std::string_view word = ids.substr(0, ids.find(' '));
    ids.remove_prefix(std::min(word.size() + 1, ids.size()));
    std::uint64_t first = 0;
    const auto [dots, error] = std::from_chars(word.data(), word.data() + word.size(), first);
    EXPECT_EQ(error, std::errc()) << word;
    std::uint64_t last = first;
    if (const auto at = static_cast<std::size_t>(dots - word.data()); at < word.size()) {
      std::from_chars(dots + 2, word.data() + word.size(), last);
    }
    for (std::uint64_t id = first; id <= last; ++id) {
      out += fmt::format("{}{}", out.empty() ? "" : ",", id);
    }
  }
  return out;
}

std::string Line(std::string_view row) {
  if (row.starts_with('{')) {
    return std::string(row) + "\n";
  }
  const std::size_t input = row.find('/') + 1;
  const std::size_t output = row.find('/', input) + 1;
  const std::size_t ids = row.find('[', output) + 1;
  return fmt::format(R"({{"timestamp":{},"input_length":{},"output_length":{},"hash_ids":[{}]}})"
                     "\n",
                     row.substr(0, input - 1), row.substr(input, output - 1 - input),
                     row.substr(output, ids - 1 - output),
                     IdList(row.substr(ids, row.size() - 1 - ids)));
}

// The base engine with the members of `texts`; later ones replace earlier ones.
std::string EngineText(std::span<const std::string> texts) {
  Json engine = *ParseJson(kEngine, "base");
  for (const std::string& text : texts) {
    const Result<Json> members = ParseJson("{" + text + "}", "members");
    EXPECT_TRUE(members) << text;
    for (const Json::Member& member : members->object()) {
      std::erase_if(engine.object(), [&](const auto& old) { return old.first == member.first; });
      engine.Add(member.first, member.second);
    }
  }
  return DumpJson(engine);
}

std::string Text(const Json& value) {
  if (value.is_string()) {
    return value.string();
  }
  return value.is_number() ? fmt::format("{}", value.number()) : DumpJson(value);
}

Result<void> RunInto(const scenario::ReplayFlags& flags, FieldResult& result) {
  DYNO_TRY(const scenario::Replay replay, scenario::BuildReplay(flags));
  const scenario::Scenario& scenario = replay.scenario;
  DYNO_TRY(workload::LoadedWorkload loaded,
           workload::LoadWorkload(scenario.workload, scenario.block_size()));
  result.warnings = loaded.warnings;
  DYNO_TRY(const sim::Outcome outcome, sim::RunOffline(scenario, *loaded.source));
  const report::Summary summary = report::Summarize(outcome, scenario, {.wall_time_ms = 1.0});
  const report::SessionNames names = [&](std::uint32_t session) {
    return loaded.source->SessionName(session);
  };
  std::string text;
  report::JsonWriter writer({}, [&](std::string_view part) { text += part; });
  report::WriteReport(
      writer,
      {.summary = summary, .outcome = outcome, .scenario = scenario, .session_names = names});
  writer.Flush();
  DYNO_TRY(result.report, ParseJson(text, "report"));
  return {};
}

FieldResult RunWith(const FieldReplay& replay, const std::string& more, bool pass_by_pass) {
  std::string trace = replay.file;
  for (const std::string& row : replay.rows) {
    trace += Line(row);
  }
  workload::MemoryFile file;
  file.Write(trace);
  scenario::ReplayFlags flags;
  flags.trace_files = {file.Path()};
  if (replay.trace_format) {
    flags.trace_format = replay.trace_format;
  } else {
    flags.trace_block_size = replay.trace_block;
  }
  flags.replay_concurrency = replay.concurrency;
  flags.max_sim_time_ms = replay.max_sim_time_ms;
  if (replay.disaggregated) {
    const std::string prefill[] = {replay.engine, more, R"("worker_type":"prefill")"};
    const std::string decode[] = {replay.engine, more, R"("worker_type":"decode")"};
    flags.prefill_engine_args = EngineText(prefill);
    flags.decode_engine_args = EngineText(decode);
  } else {
    const std::string engine[] = {replay.engine, more};
    flags.extra_engine_args = EngineText(engine);
    flags.num_workers = replay.workers;
  }
  flags.router_mode = replay.router_mode;
  flags.router_config = replay.router_config;
  flags.router_seed = replay.router_seed;
  flags.kv_event_lag_ms = replay.kv_event_lag_ms;
  flags.capture_per_request = true;
  flags.pass_by_pass = pass_by_pass;
  return Replayed(flags);
}

}  // namespace

std::string FieldResult::Of(std::string_view name) const {
  if (!report.is_object()) {
    return "no report";
  }
  if (const Json* member = report.Find(name)) {
    return Text(*member);
  }
  std::string out;
  for (const Json& row : report.Find("per_request")->array()) {
    const Json* value = row.Find(name);
    out += (out.empty() ? "" : " ") + (value == nullptr ? "-" : Text(*value));
  }
  return out;
}

std::string FieldResult::OfRouting(std::string_view name) const {
  if (!report.is_object()) {
    return "no report";
  }
  std::string out;
  for (const Json& row : report.Find("per_request")->array()) {
    const Json::Array& history = row.Find("routing_history")->array();
    out += (out.empty() ? "" : " ") + (history.empty() ? "-" : Text(*history.front().Find(name)));
  }
  return out;
}

FieldResult Replayed(const scenario::ReplayFlags& flags) {
  FieldResult result;
  if (const Result<void> done = RunInto(flags, result); !done) {
    result.error = done.error().Text();
  }
  return result;
}

FieldResult Replayed(const FieldReplay& replay) { return RunWith(replay, "", false); }

void ExpectResults(const std::vector<FieldCase>& cases, const std::vector<std::string>& backends) {
  for (const FieldCase& c : cases) {
    for (const std::string& backend : backends) {
      const std::string more = backend.empty() ? "" : R"("backend":")" + backend + '"';
      for (const bool pass_by_pass : {false, true}) {
        const FieldResult result = RunWith(c.replay, more, pass_by_pass);
        const std::string run =
            fmt::format("{} {}{}", c.what, backend, pass_by_pass ? ", pass by pass" : "");
        EXPECT_EQ(result.error, "") << run;
        for (const auto& [name, text] : c.expected) {
          EXPECT_EQ(result.Of(name), text) << run << ": " << name;
        }
      }
    }
  }
}

}  // namespace dynosim::testing
