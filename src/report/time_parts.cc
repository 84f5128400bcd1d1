// SPDX-License-Identifier: Apache-2.0
#include "report/time_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

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

struct HandoffStamps {
  double prefill_admit_ms, source_held_ms, transfer_start_ms, transfer_end_ms, decode_admit_ms;
};

std::optional<HandoffStamps> HandoffOf(const sim::RequestDetail& detail) {
  if (!detail.prefill_admit_ms || !detail.source_held_ms || !detail.transfer_start_ms ||
      !detail.transfer_end_ms || !detail.decode_admit_ms) {
    return std::nullopt;
  }
  return HandoffStamps{.prefill_admit_ms = *detail.prefill_admit_ms,
                       .source_held_ms = *detail.source_held_ms,
                       .transfer_start_ms = *detail.transfer_start_ms,
                       .transfer_end_ms = *detail.transfer_end_ms,
                       .decode_admit_ms = *detail.decode_admit_ms};
}

// One pool served the request: no decode pool has admitted it.
bool Aggregated(const sim::RequestRecord& record) { return record.decode_admissions == 0; }

std::optional<TimeParts> PartsOf(const sim::RequestRecord& record, const sim::RequestDetail& detail,
                                 double total_ms) {
  Offsets offsets(record.arrival_ms, total_ms);
  if (Aggregated(record)) {
    if (!record.first_admit_ms) {
      return std::nullopt;
    }
    const double admitted = offsets.Next(*record.first_admit_ms);
    const double first_token = offsets.Next(record.first_token_ms);
    return TimeParts{.queue_ms = admitted,
                     .prefill_ms = first_token - admitted,
                     .decode_ms = total_ms - first_token};
  }
  const std::optional<HandoffStamps> handoff = HandoffOf(detail);
  if (!handoff) {
    return std::nullopt;
  }
  const double admitted = offsets.Next(handoff->prefill_admit_ms);
  const double held = offsets.Next(handoff->source_held_ms);
  const double started = offsets.Next(handoff->transfer_start_ms);
  const double ended = offsets.Next(handoff->transfer_end_ms);
  const double decoding = offsets.Next(handoff->decode_admit_ms);
  return TimeParts{.queue_ms = admitted,
                   .prefill_ms = held - admitted,
                   .transfer_ms = ended - started,
                   .first_decode_wait_ms = (started - held) + (decoding - ended),
                   .decode_ms = total_ms - decoding};
}

}  // namespace

std::optional<TimeParts> TtftParts(const sim::RequestRecord& record,
                                   const sim::RequestDetail& detail) {
  const std::optional<double> total = TtftMs(record);
  return total ? PartsOf(record, detail, *total) : std::nullopt;
}

std::optional<TimeParts> EndToEndParts(const sim::RequestRecord& record,
                                       const sim::RequestDetail& detail) {
  const std::optional<double> total = EndToEndMs(record);
  return total ? PartsOf(record, detail, *total) : std::nullopt;
}

}  // namespace dynosim::report
