// SPDX-License-Identifier: Apache-2.0
// Hand-made records and outcomes for the tests of this module.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/json_writer.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {

// A completed request: tokens at `token_times_ms`, admitted at arrival.
inline sim::RequestRecord Completed(std::uint32_t id, double arrival_ms,
                                    const std::vector<double>& token_times_ms,
                                    std::uint64_t prompt_tokens = 100) {
  sim::RequestRecord record;
  record.id = id;
  record.terminal = true;
  record.status = workload::TerminalStatus::kCompleted;
  record.arrival_ms = arrival_ms;
  record.first_admit_ms = arrival_ms;
  record.prompt_tokens = prompt_tokens;
  record.output_tokens = token_times_ms.size();
  record.requested_output_tokens = token_times_ms.size();
  record.terminal_ms = token_times_ms.empty() ? arrival_ms : token_times_ms.back();
  if (!token_times_ms.empty()) {
    record.first_token_ms = token_times_ms.front();
    record.last_token_ms = token_times_ms.back();
  }
  if (token_times_ms.size() > 1) {
    record.second_token_ms = token_times_ms[1];
  }
  record.admissions = 1;
  record.decode_scheduler = 0;
  return record;
}

// A request that never ran.
inline sim::RequestRecord NotServed(std::uint32_t id, double arrival_ms,
                                    workload::TerminalStatus status, double terminal_ms) {
  sim::RequestRecord record;
  record.id = id;
  record.terminal = true;
  record.status = status;
  record.arrival_ms = arrival_ms;
  record.terminal_ms = terminal_ms;
  record.prompt_tokens = 5000;
  record.requested_output_tokens = 7;
  record.decode_scheduler = 1;
  return record;
}

// Everything a writer wrote.
template <class Write>
std::string TextOf(JsonStyle style, const Write& write) {
  std::string text;
  JsonWriter out(style, [&text](std::string_view part) { text += part; });
  write(out);
  out.Flush();
  return text;
}

}  // namespace dynosim::report
