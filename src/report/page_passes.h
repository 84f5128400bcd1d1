// SPDX-License-Identifier: Apache-2.0
// Parts of the page's data that are about workers: passes and gauges, thinned to what a browser can
// draw, and the columns that all data travels in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "report/json_writer.h"
#include "sim/outcome.h"

namespace dynosim::report {

// A column of little-endian numbers: {"type": "f64", "base64": "..."}.
void WriteColumn(JsonWriter& out, std::span<const double> values);
void WriteColumn(JsonWriter& out, std::span<const float> values);
void WriteColumn(JsonWriter& out, std::span<const std::uint32_t> values);
void WriteColumn(JsonWriter& out, std::span<const std::uint8_t> values);

// Passes worker by worker. Where there are more than `limit`, neighbours become one bar, with the
// time that the worker was busy in it.
void WritePagePasses(JsonWriter& out, const sim::Outcome& outcome, std::size_t limit);

// Gauges of every rank by time, at most `limit` of each kind; null without samples.
void WritePageGauges(JsonWriter& out, const sim::Outcome& outcome, std::size_t limit);

}  // namespace dynosim::report
