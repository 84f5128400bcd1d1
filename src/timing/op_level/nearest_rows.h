// SPDX-License-Identifier: Apache-2.0
// Choice among measured values of a key column that a model may not meet exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perfdb/table.h"

namespace dynosim::timing {

// Rows whose value in `column` is `wanted`; else those of the only value, else of the largest
// below, else of the smallest. All columns before it must be constant in `rows`.
perfdb::Rows NearestRows(const perfdb::Table& table, perfdb::Rows rows, std::size_t column,
                         std::uint64_t wanted);

}  // namespace dynosim::timing
