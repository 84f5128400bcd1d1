// SPDX-License-Identifier: Apache-2.0
#include "report/time_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "report/latency.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

// Stamps of one request as offsets from its arrival, on the grid of `total_ms` and in order: no
// offset is below an earlier one or above the total.
class Offsets {
 public:
  Offsets(double arrival_ms, double total_ms)
      : arrival_ms_(arrival_ms), total_ms_(total_ms), unit_ms_(LastDigit(total_ms)) {}

  double Next(double at_ms) {
    const double on_grid = std::nearbyint((at_ms - arrival_ms_) / unit_ms_) * unit_ms_;
    last_ms_ = std::clamp(on_grid, last_ms_, total_ms_);
    return last_ms_;
  }

 private:
  // Value of the last binary digit of a number.
  static double LastDigit(double value) {
    return std::nextafter(value, std::numeric_limits<double>::infinity()) - value;
  }

  double arrival_ms_;
  double total_ms_;
  double unit_ms_;
  double last_ms_ = 0.0;
};

// A decode pool admitted it, after a handoff.
bool HandedOff(const sim::RequestRecord& record) { return record.decode_admissions > 0; }

bool StampsComplete(const sim::RequestDetail& detail) {
  return detail.prefill_admit_ms && detail.source_held_ms && detail.transfer_start_ms &&
         detail.transfer_end_ms && detail.decode_admit_ms;
}

std::optional<TimeParts> PartsOf(const sim::RequestRecord& record, const sim::RequestDetail& detail,
                                 std::optional<double> total_ms) {
  const bool known = HandedOff(record) ? StampsComplete(detail) : record.first_admit_ms.has_value();
  if (!total_ms || !known) {
    return std::nullopt;
  }
  std::array<double, kPhases> parts{};
  Offsets offsets(record.arrival_ms, *total_ms);
  double from_ms = 0.0;
  const std::vector<PhaseSpan> spans = PhasesOf(record, detail);
  for (const PhaseSpan& span : spans) {
    const double to_ms = &span == &spans.back() ? *total_ms : offsets.Next(span.to_ms);
    parts[static_cast<std::size_t>(span.phase)] += to_ms - from_ms;
    from_ms = to_ms;
  }
  return TimeParts{.queue_ms = parts[0],
                   .prefill_ms = parts[1],
                   .transfer_ms = parts[2],
                   .first_decode_wait_ms = parts[3],
                   .decode_ms = parts[4]};
}

}  // namespace

std::string_view PhaseName(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames = {"queue", "prefill", "transfer",
                                                            "first_decode_wait", "decode"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::vector<PhaseSpan> PhasesOf(const sim::RequestRecord& record,
                                const sim::RequestDetail& detail) {
  std::vector<PhaseSpan> spans;
  double from_ms = record.arrival_ms;
  const double end_ms = record.output_tokens > 0 ? record.last_token_ms : record.terminal_ms;
  Phase phase = Phase::kQueue;
  // Ends the current phase at `to_ms`, unless it is not known.
  const auto then = [&](std::optional<double> to_ms, Phase next) {
    if (to_ms) {
      spans.push_back({.phase = phase, .from_ms = from_ms, .to_ms = *to_ms});
      from_ms = *to_ms;
      phase = next;
    }
  };
  then(record.first_admit_ms, Phase::kPrefill);
  if (detail.source_held_ms) {
    then(detail.source_held_ms, Phase::kFirstDecodeWait);
    then(detail.transfer_start_ms, Phase::kTransfer);
    then(detail.transfer_end_ms, Phase::kFirstDecodeWait);
    then(detail.decode_admit_ms, Phase::kDecode);
  } else if (record.output_tokens > 0 && !HandedOff(record)) {
    then(record.first_token_ms, Phase::kDecode);
  }
  spans.push_back({.phase = phase, .from_ms = from_ms, .to_ms = std::max(from_ms, end_ms)});
  return spans;
}

std::optional<TimeParts> TtftParts(const sim::RequestRecord& record,
                                   const sim::RequestDetail& detail) {
  return PartsOf(record, detail, TtftMs(record));
}

std::optional<TimeParts> EndToEndParts(const sim::RequestRecord& record,
                                       const sim::RequestDetail& detail) {
  return PartsOf(record, detail, EndToEndMs(record));
}

}  // namespace dynosim::report
