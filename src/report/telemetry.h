// SPDX-License-Identifier: Apache-2.0
// Telemetry samples (chapter 50, section 6) as JSON objects, in the report and as lines of a file.
#pragma once

#include <string>

#include "base/result.h"
#include "report/json_writer.h"
#include "sim/outcome.h"

namespace dynosim::report {

// Writes one sample as an object.
void WriteSample(JsonWriter& out, const sim::TelemetrySample& sample);

// The object as compact text.
std::string SampleText(const sim::TelemetrySample& sample);

// One compact object a line. The file appears whole or not at all; parent directories are made.
Result<void> WriteTelemetryJsonl(const std::string& path, const sim::Outcome& outcome);

}  // namespace dynosim::report
