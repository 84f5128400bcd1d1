// SPDX-License-Identifier: Apache-2.0
// Two doubles in one register of the x86-64 baseline, for sums over many passes. Each half is
// rounded as a plain double is.
#pragma once

namespace dynosim::timing {

using Pair = double __attribute__((vector_size(16)));

constexpr Pair Both(double v) { return Pair{v, v}; }

}  // namespace dynosim::timing
