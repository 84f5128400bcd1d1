// SPDX-License-Identifier: Apache-2.0
// Interpolation as y1 + slope * (x - x1), evaluated in this order; first along the active tokens,
// then along the context.
#include "timing/profile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "timing/model.h"
#include "timing/npz.h"

namespace dynosim::timing {
namespace {

constexpr std::array<std::string_view, 5> kArrays = {"prefill_isl", "prefill_ttft_ms",
                                                     "decode_active_kv_tokens",
                                                     "decode_context_length", "decode_itl"};

// Index of the segment for `x`: the last one that starts at or before it, within the axis.
std::size_t SegmentOf(const std::vector<double>& axis, double x) {
  const auto after = static_cast<std::size_t>(
      std::upper_bound(axis.begin() + 1, axis.end() - 1, x) - axis.begin());
  return after - 1;
}

double Line(double x1, double y1, double x2, double y2, double x) {
  const double slope = (y2 - y1) / (x2 - x1);
  return slope * (x - x1) + y1;
}

Result<void> CheckAxis(std::string_view name, const std::vector<double>& axis) {
  if (axis.size() < 2) {
    return FailedError("", "array " + std::string(name) + " must have at least 2 points");
  }
  for (std::size_t i = 1; i < axis.size(); ++i) {
    if (!(axis[i - 1] < axis[i])) {
      return FailedError("", "array " + std::string(name) + " must rise strictly (element " +
                                 std::to_string(i) + ")");
    }
  }
  return {};
}

std::string Sizes(std::size_t a, std::size_t b) {
  return std::to_string(a) + " and " + std::to_string(b);
}

}  // namespace

Result<void> CheckProfile(const Profile& p) {
  if (p.prefill_isl.size() != p.prefill_ttft_ms.size()) {
    return FailedError("", "arrays prefill_isl and prefill_ttft_ms must have one length, got " +
                               Sizes(p.prefill_isl.size(), p.prefill_ttft_ms.size()));
  }
  DYNO_TRY_VOID(CheckAxis(kArrays[0], p.prefill_isl));
  DYNO_TRY_VOID(CheckAxis(kArrays[2], p.decode_active_kv_tokens));
  DYNO_TRY_VOID(CheckAxis(kArrays[3], p.decode_context_length));
  const std::size_t points = p.decode_active_kv_tokens.size() * p.decode_context_length.size();
  if (p.decode_itl.size() != points) {
    return FailedError("", "array decode_itl must have " + std::to_string(points) +
                               " values, got " + std::to_string(p.decode_itl.size()));
  }
  return {};
}

Result<Profile> LoadProfile(const std::string& path) {
  DYNO_TRY(std::vector<NpyArray> arrays, ReadNpz(path, kArrays));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::size_t dimensions = i == 4 ? 2 : 1;
    if (arrays[i].shape.size() != dimensions) {
      return FailedError("", path + ": array " + std::string(kArrays[i]) + " must have " +
                                 std::to_string(dimensions) + " dimension(s), got " +
                                 std::to_string(arrays[i].shape.size()));
    }
  }
  const std::vector<std::size_t>& shape = arrays[4].shape;
  if (shape[0] != arrays[2].values.size() || shape[1] != arrays[3].values.size()) {
    return FailedError("", path + ": array decode_itl must be decode_active_kv_tokens by " +
                               "decode_context_length (" +
                               Sizes(arrays[2].values.size(), arrays[3].values.size()) + "), got " +
                               Sizes(shape[0], shape[1]));
  }
  Profile profile{.prefill_isl = std::move(arrays[0].values),
                  .prefill_ttft_ms = std::move(arrays[1].values),
                  .decode_active_kv_tokens = std::move(arrays[2].values),
                  .decode_context_length = std::move(arrays[3].values),
                  .decode_itl = std::move(arrays[4].values)};
  if (auto checked = CheckProfile(profile); !checked) {
    return FailedError("", path + ": " + checked.error().message);
  }
  return profile;
}

double ProfileTiming::PrefillMs(const PrefillBatch& batch) const {
  const std::vector<double>& x = profile_.prefill_isl;
  const std::vector<double>& y = profile_.prefill_ttft_ms;
  const auto tokens = static_cast<double>(batch.requests * batch.mean_new);
  const std::size_t i = SegmentOf(x, tokens);
  return std::max(Line(x[i], y[i], x[i + 1], y[i + 1], tokens), 0.0);
}

double ProfileTiming::DecodeMs(const DecodeBatch& batch) const {
  const std::vector<double>& active = profile_.decode_active_kv_tokens;
  const std::vector<double>& context = profile_.decode_context_length;
  const auto total = static_cast<double>(batch.context_tokens);
  const auto whole_mean = batch.context_tokens / batch.requests;
  const auto mean = static_cast<double>(whole_mean);
  const std::size_t i = SegmentOf(active, total);
  const std::size_t j = SegmentOf(context, mean);
  const double* low = profile_.decode_itl.data() + i * context.size() + j;
  const double* high = low + context.size();
  const double near = Line(active[i], low[0], active[i + 1], high[0], total);
  const double far = Line(active[i], low[1], active[i + 1], high[1], total);
  return std::max(Line(context[j], near, context[j + 1], far, mean), 1.0);
}

void ProfileTiming::DecodeRunMs(const DecodeBatch& first, std::span<double> out) const {
  DecodeBatch batch = first;
  for (double& value : out) {
    value = DecodeMs(batch);
    batch.context_tokens += batch.requests;
  }
}

}  // namespace dynosim::timing
