// SPDX-License-Identifier: Apache-2.0
// Placements: the routing decisions of an earlier report with per-request rows, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace dynosim::scenario {

// One row: what identifies its request, and the target (scheduler id) that served it in each pool.
struct PlacedRow {
  std::optional<std::string> request_id{};
  std::optional<std::string> session{};
  std::optional<std::uint32_t> turn{};
  double arrival_ms = 0.0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;  // requested
  std::optional<std::uint32_t> aggregated{}, prefill{}, decode{};
};

struct Placements {
  std::vector<PlacedRow> rows;
};

// Reads the per_request rows of a report file.
Result<Placements> LoadPlacements(const std::string& path);

}  // namespace dynosim::scenario
