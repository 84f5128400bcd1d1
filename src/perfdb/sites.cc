// SPDX-License-Identifier: Apache-2.0
#include "perfdb/sites.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "perfdb/grid.h"
#include "perfdb/table.h"

namespace dynosim::perfdb {
namespace {

constexpr std::size_t kN = 1, kK = 2, kOrder = 3, kM = 4;
constexpr std::size_t kNearestSites = 4;
constexpr double kGate = 2.0;  // on the log2 scale
constexpr std::size_t kTail = 3;

// Middle one of up to three values, or the mean of two.
double Median(std::span<const double> values) {
  if (values.size() < kTail) {
    return values.size() == 1 ? values[0] : (values[0] + values[1]) / 2.0;
  }
  return std::max(std::min(values[0], values[1]),
                  std::min(std::max(values[0], values[1]), values[2]));
}

// Latency of a site at m: linear inside; beyond an end, the median utilization of its last points.
std::optional<double> AtSite(const GemmSites::Site& site, std::uint64_t m, const GemmSol& sol) {
  const std::span<const std::uint64_t> keys = site.curve.keys();
  const std::span<const double> values = site.curve.values();
  const auto above = std::lower_bound(keys.begin(), keys.end(), m);
  const auto at = static_cast<std::size_t>(above - keys.begin());
  if (at < keys.size() && keys[at] == m) {
    return values[at];
  }
  const auto n = static_cast<double>(site.n);
  const auto k = static_cast<double>(site.k);
  if (at > 0 && at < keys.size()) {
    const double weight =
        static_cast<double>(m - keys[at - 1]) / static_cast<double>(keys[at] - keys[at - 1]);
    return values[at - 1] + (values[at] - values[at - 1]) * weight;
  }
  const std::size_t count = std::min(kTail, keys.size());
  const std::size_t first = at == 0 ? 0 : keys.size() - count;
  std::array<double, kTail> utilizations{};
  std::size_t used = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const double least = sol(static_cast<double>(keys[i]), n, k);
    if (values[i] > 0.0 && least > 0.0) {
      utilizations[used++] = least / values[i];
    }
  }
  if (used == 0) {
    return std::nullopt;
  }
  return sol(static_cast<double>(m), n, k) /
         Median(std::span<const double>(utilizations).first(used));
}

double Away(std::uint64_t a, std::uint64_t b) {
  return Log2(static_cast<double>(a)) - Log2(static_cast<double>(b));
}

bool Covers(const GemmSites::Site& site, std::uint64_t m) {
  return site.curve.FirstKey() <= m && m <= site.curve.LastKey();
}

}  // namespace

std::optional<GemmSites> GemmSites::FromTable(const Table& gemm, std::string_view dtype,
                                              const GemmSol& sol) {
  const Rows all = Select(gemm, dtype);
  if (all.empty()) {
    return std::nullopt;
  }
  GemmSites out;
  out.sol_ = sol;
  for (Rows rest = all; !rest.empty();) {
    const Rows of_n = gemm.FirstGroup(rest, kN);
    const Rows group = gemm.FirstGroup(of_n, kK);
    if (group.empty()) {  // rows that are not sorted
      break;
    }
    Site site{.n = gemm.column(kN).At(group.begin),
              .k = gemm.column(kK).At(group.begin),
              .order = gemm.column(kOrder).At(group.begin),
              .curve = {}};
    std::vector<std::uint64_t> keys;
    std::vector<double> values;
    for (std::size_t row = group.begin; row < group.end; ++row) {
      keys.push_back(gemm.column(kM).At(row));
      const double least = sol(static_cast<double>(keys.back()), static_cast<double>(site.n),
                               static_cast<double>(site.k));
      const double measured = gemm.latency().LatencyAt(row);
      values.push_back(least > measured ? least : measured);
    }
    site.curve = Curve(std::move(keys), std::move(values));
    out.sites_.push_back(std::move(site));
    rest.begin = group.end;
  }
  std::sort(out.sites_.begin(), out.sites_.end(), [](const Site& a, const Site& b) {
    return std::tie(a.order, a.n, a.k) < std::tie(b.order, b.n, b.k);
  });
  return out;
}

GemmShape::GemmShape(const GemmSites& sites, std::uint64_t n, std::uint64_t k)
    : sites_(&sites), n_(n), k_(k) {
  for (const GemmSites::Site& site : sites.sites()) {
    if (site.n == n && site.k == k) {
      exact_ = &site;
      return;
    }
  }
  for (const GemmSites::Site& site : sites.sites()) {
    const double by_n = Away(site.n, n);
    const double by_k = Away(site.k, k);
    nearest_.push_back({.site = &site, .distance = std::sqrt(by_n * by_n + by_k * by_k)});
  }
  // Sites stand in their order, so the address breaks ties.
  std::sort(nearest_.begin(), nearest_.end(), [](const Neighbour& a, const Neighbour& b) {
    return std::tie(a.distance, a.site) < std::tie(b.distance, b.site);
  });
}

std::optional<double> GemmShape::At(std::uint64_t m) const {
  return exact_ != nullptr ? AtSite(*exact_, m, sites_->sol()) : FromNeighbours(m);
}

std::size_t GemmShape::PickNear(std::uint64_t m, bool covering,
                                std::array<Neighbour, kNearestSites>& out) const {
  std::size_t count = 0;
  for (const Neighbour& candidate : nearest_) {
    if (candidate.distance > kGate || count == kNearestSites) {
      break;
    }
    if (!covering || Covers(*candidate.site, m)) {
      out[count++] = candidate;
    }
  }
  return count;
}

std::optional<double> GemmShape::FromNeighbours(std::uint64_t m) const {
  std::array<Neighbour, kNearestSites> picked{};
  if (const std::size_t count = PickNear(m, true, picked); count > 0) {
    return Average(m, std::span(picked).first(count));
  }
  std::vector<Neighbour> candidates;
  std::copy_if(nearest_.begin(), nearest_.end(), std::back_inserter(candidates),
               [m](const Neighbour& candidate) { return Covers(*candidate.site, m); });
  if (candidates.empty()) {
    if (const std::size_t count = PickNear(m, false, picked); count > 0) {
      return Average(m, std::span(picked).first(count));
    }
    candidates = nearest_;
  }
  const std::vector<Neighbour> near = BeyondOneEdge(candidates);
  return Average(m, std::span(near).first(std::min(near.size(), kNearestSites)));
}

std::optional<double> GemmShape::Average(std::uint64_t m, std::span<const Neighbour> near) const {
  const GemmSol& sol = sites_->sol();
  double weights = 0.0;
  double utilization = 0.0;
  for (const Neighbour& neighbour : near) {
    const auto latency = AtSite(*neighbour.site, m, sol);
    if (!latency) {
      continue;
    }
    const double least = sol(static_cast<double>(m), static_cast<double>(neighbour.site->n),
                             static_cast<double>(neighbour.site->k));
    const double weight = 1.0 / (neighbour.distance * neighbour.distance + 1e-12);
    utilization += weight * least / *latency;
    weights += weight;
  }
  if (!IsPositive(utilization) || weights == 0.0) {
    return std::nullopt;
  }
  return sol(static_cast<double>(m), static_cast<double>(n_), static_cast<double>(k_)) /
         (utilization / weights);
}

std::vector<GemmShape::Neighbour> GemmShape::BeyondOneEdge(
    const std::vector<Neighbour>& candidates) const {
  std::uint64_t n_max = 0, k_max = 0;
  std::uint64_t n_min = std::numeric_limits<std::uint64_t>::max(), k_min = n_min;
  for (const Neighbour& candidate : candidates) {
    n_max = std::max(n_max, candidate.site->n);
    n_min = std::min(n_min, candidate.site->n);
    k_max = std::max(k_max, candidate.site->k);
    k_min = std::min(k_min, candidate.site->k);
  }
  if (n_ < n_min || k_ < k_min || (n_ > n_max) == (k_ > k_max)) {
    return {};
  }
  const bool by_k = n_ > n_max;  // the dimension that must still be near
  std::vector<Neighbour> near;
  std::copy_if(
      candidates.begin(), candidates.end(), std::back_inserter(near),
      [&](const Neighbour& candidate) {
        return std::abs(by_k ? Away(candidate.site->k, k_) : Away(candidate.site->n, n_)) <= kGate;
      });
  return near;
}

}  // namespace dynosim::perfdb
