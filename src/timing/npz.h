// SPDX-License-Identifier: Apache-2.0
// Reader of NPZ archives (NumPy): named float64 arrays of one or two dimensions, stored or
// deflated. The file is not trusted: every offset, length and checksum is verified, and sizes are
// bounded before anything is allocated.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dynosim::timing {

struct NpyArray {
  std::vector<std::size_t> shape;  // one or two dimensions
  std::vector<double> values;      // row-major, all finite
};

// Array of an .npy file held in memory. The error has no place; the caller adds it.
Result<NpyArray> ParseNpy(std::string_view bytes);

// The named arrays of an archive held in memory, in the order of `names`; other members are
// ignored.
Result<std::vector<NpyArray>> ParseNpz(std::string_view bytes,
                                       std::span<const std::string_view> names);

// The same from a file; errors name the file.
Result<std::vector<NpyArray>> ReadNpz(const std::string& path,
                                      std::span<const std::string_view> names);

}  // namespace dynosim::timing
