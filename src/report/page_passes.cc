// SPDX-License-Identifier: Apache-2.0
#include "report/page_passes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include "report/json_writer.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

// The page reads the bytes as they are.
static_assert(std::endian::native == std::endian::little);

template <class T>
void Column(JsonWriter& out, std::string_view type, std::span<const T> values) {
  out.BeginObject();
  out.Key("type");
  out.String(type);
  out.Key("base64");
  const std::span<const std::byte> bytes = std::as_bytes(values);
  out.String(absl::Base64Escape({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  out.EndObject();
}

std::uint32_t Narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

std::string WorkerName(sim::Pool pool, std::uint32_t worker) {
  constexpr std::array<std::string_view, 3> kPrefix = {"", "prefill ", "decode "};
  return fmt::format("{}worker {}", kPrefix[static_cast<std::size_t>(pool)], worker);
}

// A bar of the page: neighbouring passes of one worker.
struct Bars {
  std::vector<double> start;
  std::vector<float> duration, busy;
  std::vector<std::uint32_t> worker, prefill, requests, passes;
  std::vector<std::string> names;

  void Begin(const sim::PassRecord& pass) {
    start.push_back(pass.start_ms);
    duration.push_back(0.0F);
    busy.push_back(0.0F);
    worker.push_back(static_cast<std::uint32_t>(names.size() - 1));
    prefill.push_back(0);
    requests.push_back(0);
    passes.push_back(0);
  }
  void Add(const sim::PassRecord& pass) {
    duration.back() = static_cast<float>(pass.end_ms - start.back());
    busy.back() += static_cast<float>(pass.end_ms - pass.start_ms);
    prefill.back() = Narrow(prefill.back() + pass.prefill_tokens);
    requests.back() = Narrow(std::uint64_t{requests.back()} + pass.requests);
    ++passes.back();
  }
};

// Samples that stay, evenly.
std::vector<const sim::TelemetrySample*> Thinned(const std::vector<sim::TelemetrySample>& samples,
                                                 std::size_t most) {
  std::vector<const sim::TelemetrySample*> kept;
  const std::size_t step = most == 0 ? 1 : (samples.size() + most - 1) / most;
  for (std::size_t i = 0; i < samples.size(); i += std::max<std::size_t>(step, 1)) {
    kept.push_back(&samples[i]);
  }
  return kept;
}

struct Rank {
  std::string name;
  bool prefill = false;
  std::size_t row = 0;  // in the sample's list
  std::uint64_t total_blocks = 0;
};

std::vector<Rank> RanksOf(const sim::TelemetrySample& sample, bool disaggregated) {
  std::vector<Rank> ranks;
  const auto add = [&](const std::vector<sim::SchedulerSample>& rows, sim::Pool pool) {
    const bool one_rank =
        std::ranges::all_of(rows, [](const sim::SchedulerSample& row) { return row.dp_rank == 0; });
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ranks.push_back({.name = WorkerName(pool, rows[i].worker) +
                               (one_rank ? "" : fmt::format(" rank {}", rows[i].dp_rank)),
                       .prefill = pool == sim::Pool::kPrefill,
                       .row = i,
                       .total_blocks = rows[i].total_blocks});
    }
  };
  add(sample.prefill_schedulers, sim::Pool::kPrefill);
  add(sample.decode_schedulers, disaggregated ? sim::Pool::kDecode : sim::Pool::kAggregated);
  return ranks;
}

}  // namespace

void WriteColumn(JsonWriter& out, std::span<const double> values) { Column(out, "f64", values); }
void WriteColumn(JsonWriter& out, std::span<const float> values) { Column(out, "f32", values); }
void WriteColumn(JsonWriter& out, std::span<const std::uint32_t> values) {
  Column(out, "u32", values);
}
void WriteColumn(JsonWriter& out, std::span<const std::uint8_t> values) {
  Column(out, "u8", values);
}

void WritePagePasses(JsonWriter& out, const sim::Outcome& outcome, std::size_t limit) {
  const std::size_t total = outcome.passes.size();
  const std::size_t merged =
      std::max<std::size_t>(1, (total + limit - 1) / std::max<std::size_t>(limit, 1));
  Bars bars;
  const sim::PassRecord* last = nullptr;
  for (const sim::PassRecord& pass : outcome.passes) {
    const bool same = last != nullptr && last->pool == pass.pool && last->worker == pass.worker;
    if (!same) {
      bars.names.push_back(WorkerName(pass.pool, pass.worker));
    }
    if (!same || bars.passes.back() == merged) {
      bars.Begin(pass);
    }
    bars.Add(pass);
    last = &pass;
  }
  out.BeginObject();
  out.Key("total");
  out.Integer(total);
  out.Key("merged");
  out.Integer(merged);
  out.Key("workers");
  out.BeginArray();
  for (const std::string& name : bars.names) {
    out.String(name);
  }
  out.EndArray();
  out.Key("columns");
  out.BeginObject();
  const auto column = [&out](std::string_view name, const auto& values) {
    out.Key(name);
    WriteColumn(out, std::span(values));
  };
  column("worker", bars.worker);
  column("start", bars.start);
  column("duration", bars.duration);
  column("busy", bars.busy);
  column("prefill", bars.prefill);
  column("requests", bars.requests);
  column("passes", bars.passes);
  out.EndObject();
  out.EndObject();
}

void WritePageGauges(JsonWriter& out, const sim::Outcome& outcome, std::size_t limit) {
  if (outcome.telemetry.empty()) {
    out.Null();
    return;
  }
  const bool disaggregated = !outcome.telemetry.front().prefill_schedulers.empty();
  const std::vector<Rank> ranks = RanksOf(outcome.telemetry.front(), disaggregated);
  const auto samples = Thinned(
      outcome.telemetry, std::max<std::size_t>(2, limit / std::max<std::size_t>(ranks.size(), 1)));
  std::vector<double> time;
  std::vector<std::uint32_t> waiting, running, active;
  for (const sim::TelemetrySample* sample : samples) {
    time.push_back(sample->sampled_at_ms);
  }
  static const sim::SchedulerSample gone;  // a worker that has left
  for (const Rank& rank : ranks) {
    for (const sim::TelemetrySample* sample : samples) {
      const auto& rows = rank.prefill ? sample->prefill_schedulers : sample->decode_schedulers;
      const sim::SchedulerSample& row = rank.row < rows.size() ? rows[rank.row] : gone;
      waiting.push_back(Narrow(row.waiting_requests));
      running.push_back(Narrow(row.running_requests));
      active.push_back(Narrow(row.active_blocks));
    }
  }
  out.BeginObject();
  out.Key("ranks");
  out.BeginArray();
  for (const Rank& rank : ranks) {
    out.BeginObject();
    out.Key("name");
    out.String(rank.name);
    out.Key("total_blocks");
    out.Integer(rank.total_blocks);
    out.EndObject();
  }
  out.EndArray();
  out.Key("time");
  WriteColumn(out, std::span<const double>(time));
  out.Key("gauges");
  out.BeginObject();
  for (const auto& [name, values] :
       {std::pair<std::string_view, const std::vector<std::uint32_t>*>("waiting", &waiting),
        {"running", &running},
        {"active", &active}}) {
    out.Key(name);
    WriteColumn(out, std::span<const std::uint32_t>(*values));
  }
  out.EndObject();
  out.EndObject();
}

}  // namespace dynosim::report
