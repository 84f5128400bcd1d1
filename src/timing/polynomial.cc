// SPDX-License-Identifier: Apache-2.0
// The polynomials, evaluated exactly in the order written: plain doubles, no contraction.
#include "timing/polynomial.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "timing/model.h"
#include "timing/pair.h"

namespace dynosim::timing {
namespace {

// Sums of tokens below this are exact doubles, so a run may count them in doubles.
constexpr std::uint64_t kExactTokens = std::uint64_t{1} << 52;

double DecodeOf(double context, double capacity) {
  const double used = std::min(context / capacity, 1.0);
  return std::max(-25.74 * (used * used) + 54.01 * used + 5.74, 1.0);
}

// The share of the pool is context / capacity. When the capacity is a power of two its reciprocal
// is exact and a multiplication gives the same bits.
template <bool kReciprocal>
void DecodeRun(double context, double step, double capacity, std::span<double> out) {
  const Pair factor = Both(kReciprocal ? 1.0 / capacity : capacity);
  Pair tokens = {context, context + step};
  const Pair two_steps = Both(step + step);
  std::size_t i = 0;
  for (; i + 2 <= out.size(); i += 2) {
    Pair used = kReciprocal ? tokens * factor : tokens / factor;
    used = used < Both(1.0) ? used : Both(1.0);
    Pair raw = Both(-25.74) * (used * used) + Both(54.01) * used + Both(5.74);
    raw = raw > Both(1.0) ? raw : Both(1.0);
    std::memcpy(out.data() + i, &raw, sizeof raw);
    tokens += two_steps;
  }
  if (i < out.size()) {
    out[i] = DecodeOf(tokens[0], capacity);
  }
}

}  // namespace

double PolynomialTiming::PrefillMs(const PrefillBatch& batch) const {
  const auto tokens = static_cast<double>(batch.requests * batch.mean_new);
  return 4.209989e-07 * (tokens * tokens) + 1.518344e-02 * tokens + 1.650142e+01;
}

double PolynomialTiming::DecodeMs(const DecodeBatch& batch) const {
  return DecodeOf(static_cast<double>(batch.context_tokens),
                  static_cast<double>(batch.capacity_tokens));
}

void PolynomialTiming::DecodeRunMs(const DecodeBatch& first, std::span<double> out) const {
  if (first.context_tokens + first.requests * out.size() >= kExactTokens) {
    std::uint64_t tokens = first.context_tokens;
    for (double& value : out) {
      value = DecodeMs({.requests = first.requests,
                        .context_tokens = tokens,
                        .capacity_tokens = first.capacity_tokens});
      tokens += first.requests;
    }
    return;
  }
  const auto context = static_cast<double>(first.context_tokens);
  const auto step = static_cast<double>(first.requests);
  const auto capacity = static_cast<double>(first.capacity_tokens);
  if (std::has_single_bit(first.capacity_tokens)) {
    DecodeRun<true>(context, step, capacity, out);
  } else {
    DecodeRun<false>(context, step, capacity, out);
  }
}

}  // namespace dynosim::timing
