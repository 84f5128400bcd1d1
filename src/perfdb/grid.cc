// SPDX-License-Identifier: Apache-2.0
#include "perfdb/grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "perfdb/table.h"

namespace dynosim::perfdb {
namespace {

constexpr std::size_t kNoAxis = kMaxAxes;
constexpr std::size_t kNeighbours = 4;
constexpr double kTiny = 1e-12;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Least time over latency; NaN when one of them cannot be worked with.
double Utilization(double least, double latency) {
  return IsPositive(latency) && IsPositive(least) ? least / latency : kNone;
}

}  // namespace

double Log2(double key) { return std::log2(std::max(key, kTiny)); }

Grid Grid::FromRows(const Table& table, Rows rows, std::span<const std::size_t> columns,
                    const std::function<double(double, const Coordinates&)>& latency) {
  Grid grid;
  grid.axes_ = columns.size();
  Coordinates last{};
  for (std::size_t row = rows.begin; row < rows.end; ++row) {
    bool fresh = row == rows.begin;  // a new node on every axis from the first that changes
    for (std::size_t axis = 0; axis < grid.axes_; ++axis) {
      Level& level = grid.levels_[axis];
      const std::uint64_t key = table.column(columns[axis]).At(row);
      fresh = fresh || key != last[axis];
      if (fresh || axis + 1 == grid.axes_) {
        level.keys.push_back(key);
        level.log2_keys.push_back(Log2(static_cast<double>(key)));
        if (axis > 0) {
          level.parent.push_back(
              static_cast<std::uint32_t>(grid.levels_[axis - 1].keys.size() - 1));
        }
        if (axis + 1 < grid.axes_) {
          level.child.push_back(static_cast<std::uint32_t>(grid.levels_[axis + 1].keys.size()));
        }
      }
      last[axis] = key;
    }
    const double measured = table.latency().LatencyAt(row);
    grid.values_.push_back(latency ? latency(measured, last) : measured);
  }
  for (std::size_t axis = 0; axis + 1 < grid.axes_; ++axis) {
    grid.levels_[axis].child.push_back(
        static_cast<std::uint32_t>(grid.levels_[axis + 1].keys.size()));
  }
  grid.Enclose();
  return grid;
}

void Grid::Enclose() {
  for (std::size_t axis = axes_; axis-- > 1;) {
    Level& level = levels_[axis - 1];
    const Level& below = levels_[axis];
    level.box.resize(level.keys.size());
    for (std::size_t node = 0; node < level.keys.size(); ++node) {
      Box& box = level.box[node];
      box.low.fill(std::numeric_limits<double>::infinity());
      box.high.fill(-std::numeric_limits<double>::infinity());
      for (std::uint32_t child = level.child[node]; child < level.child[node + 1]; ++child) {
        box.low[axis] = std::min(box.low[axis], below.log2_keys[child]);
        box.high[axis] = std::max(box.high[axis], below.log2_keys[child]);
        for (std::size_t deeper = axis + 1; deeper < axes_; ++deeper) {
          box.low[deeper] = std::min(box.low[deeper], below.box[child].low[deeper]);
          box.high[deeper] = std::max(box.high[deeper], below.box[child].high[deeper]);
        }
      }
    }
  }
}

bool Grid::HasFirst(std::uint64_t key) const {
  return std::binary_search(levels_[0].keys.begin(), levels_[0].keys.end(), key);
}

void Grid::Rate(const GridSol& sol) {
  utilizations_.resize(values_.size());
  for (std::uint32_t leaf = 0; leaf < values_.size(); ++leaf) {
    Coordinates key{};
    std::uint32_t node = leaf;
    for (std::size_t axis = axes_; axis-- > 0;) {
      key[axis] = levels_[axis].keys[node];
      node = axis > 0 ? levels_[axis].parent[node] : 0;
    }
    utilizations_[leaf] = Utilization(sol(key), values_[leaf]);
  }
}

std::optional<double> Grid::At(const Coordinates& point, const GridSol& sol,
                               std::optional<std::size_t> sqrt_axis) const {
  Nearby nearby;
  return At({.point = point, .sol = sol, .sqrt_axis = sqrt_axis.value_or(kNoAxis)}, nearby);
}

std::optional<double> Grid::At(const Coordinates& point, const GridSol& sol, Nearby& nearby) const {
  return At({.point = point, .sol = sol, .sqrt_axis = kNoAxis}, nearby);
}

std::optional<double> Grid::At(const Query& query, Nearby& nearby) const {
  if (empty()) {
    return std::nullopt;
  }
  const Found found = Inside(query, 0, 0, static_cast<std::uint32_t>(levels_[0].keys.size()));
  if (found) {
    return *found;
  }
  if (found.error() == Lack::kMissing) {
    return std::nullopt;
  }
  return axes_ == 1 ? OutsideOneAxis(query.point, query.sol)
                    : Outside(query.point, query.sol, nearby);
}

Grid::Found Grid::Inside(const Query& query, std::size_t axis, std::uint32_t begin,
                         std::uint32_t end) const {
  const Level& level = levels_[axis];
  const auto child = [&](std::uint32_t node) -> Found {
    return axis + 1 == axes_ ? Found(values_[node])
                             : Inside(query, axis + 1, level.child[node], level.child[node + 1]);
  };
  const std::uint64_t at = query.point[axis];
  const auto first = level.keys.begin() + begin;
  const auto last = level.keys.begin() + end;
  const auto above = std::lower_bound(first, last, at);
  const auto node = static_cast<std::uint32_t>(above - level.keys.begin());
  if (above != last && *above == at) {
    return child(node);
  }
  if (above == last || above == first) {
    return std::unexpected(Lack::kOutOfRange);
  }
  const Found low = child(node - 1);
  const Found high = child(node);
  if (low && high) {
    return Blend(query, axis, {level.keys[node - 1], level.keys[node]}, {*low, *high});
  }
  if (low || high) {
    return OneBranch(query, axis, level.keys[low ? node - 1 : node], low ? *low : *high);
  }
  const bool outside = low.error() == Lack::kOutOfRange || high.error() == Lack::kOutOfRange;
  return std::unexpected(outside ? Lack::kOutOfRange : Lack::kMissing);
}

double Grid::Blend(const Query& query, std::size_t axis, std::array<std::uint64_t, 2> keys,
                   std::array<double, 2> values) const {
  const double weight =
      static_cast<double>(query.point[axis] - keys[0]) / static_cast<double>(keys[1] - keys[0]);
  if (axis == query.sqrt_axis) {
    const double low = std::sqrt(std::max(values[0], 0.0));
    const double high = std::sqrt(std::max(values[1], 0.0));
    const double root = low + (high - low) * weight;
    return root * root;
  }
  return values[0] + (values[1] - values[0]) * weight;
}

double Grid::OneBranch(const Query& query, std::size_t axis, std::uint64_t key,
                       double value) const {
  Coordinates moved = query.point;
  moved[axis] = key;
  const double here = query.sol(query.point);
  const double there = query.sol(moved);
  return IsPositive(here) && IsPositive(there) ? value * (here / there) : value;
}

std::optional<double> Grid::OutsideOneAxis(const Coordinates& point, const GridSol& sol) const {
  const std::vector<std::uint64_t>& keys = levels_[0].keys;
  const std::size_t end = point[0] > keys.back() ? keys.size() - 1 : 0;
  const double utilization = sol({keys[end]}) / values_[end];
  return sol(point) / utilization;
}

// The nearest usable leaves so far, by (squared distance, leaf). One more than is averaged: its
// distance is the radius at which weights fall to zero.
struct Grid::Anchors {
  struct Anchor {
    double distance = 0.0;  // squared
    std::uint32_t leaf = 0;
    double utilization = 0.0;

    bool Before(double other, std::uint32_t other_leaf) const {
      return distance < other || (distance == other && leaf < other_leaf);
    }
  };
  const GridSol& sol;
  std::array<double, kMaxAxes> log2_point{};
  Coordinates key{};
  std::array<Anchor, kNeighbours + 1> nearest{};
  std::size_t count = 0;
  double bound = std::numeric_limits<double>::infinity();  // the farthest is not beyond it
  bool near = false;                                       // `bound` comes from a question nearby

  // True when nothing at this distance or farther can be among the nearest.
  bool Beyond(double distance) const { return distance > bound; }

  // Places a leaf that is not beyond; a NaN utilization is of no use.
  void Place(double distance, std::uint32_t leaf, double utilization) {
    const bool full = count == nearest.size();
    if (std::isnan(utilization) || (full && nearest.back().Before(distance, leaf))) {
      return;
    }
    std::size_t at = full ? count - 1 : count++;
    while (at > 0 && !nearest[at - 1].Before(distance, leaf)) {
      nearest[at] = nearest[at - 1];
      --at;
    }
    nearest[at] = {.distance = distance, .leaf = leaf, .utilization = utilization};
    if (count == nearest.size()) {
      bound = std::min(bound, nearest.back().distance);
    }
  }
};

// Nothing below a node is nearer: rounding keeps the order of differences, squares and sums.
double Grid::LeastDistance(const Box& box, std::size_t axis, double distance,
                           const std::array<double, kMaxAxes>& log2_point) const {
  for (std::size_t deeper = axis + 1; deeper < axes_; ++deeper) {
    const double at = log2_point[deeper];
    const double off = std::max({box.low[deeper] - at, at - box.high[deeper], 0.0});
    distance += off * off;
  }
  return distance;
}

// Looks at a node and at what is below it; false when it is too far away along this axis alone.
inline bool Grid::Visit(Anchors& anchors, std::size_t axis, std::uint32_t node,
                        double distance) const {
  const Level& level = levels_[axis];
  const double off = level.log2_keys[node] - anchors.log2_point[axis];
  const double sum = distance + off * off;
  if (anchors.Beyond(sum)) {
    return false;
  }
  if (axis + 1 == axes_ && !utilizations_.empty()) {
    anchors.Place(sum, node, utilizations_[node]);
    return true;
  }
  anchors.key[axis] = level.keys[node];
  if (axis + 1 == axes_) {
    anchors.Place(sum, node, Utilization(anchors.sol(anchors.key), values_[node]));
  } else if (!anchors.Beyond(LeastDistance(level.box[node], axis, sum, anchors.log2_point))) {
    Collect(anchors, axis + 1, level.child[node], level.child[node + 1], sum);
  }
  return true;
}

// Takes the keys of the axis from the nearest to the farthest, and stops where the distance along
// this axis alone is too large. Sums of squares only grow, so nothing is missed. With a good bound
// from the start the order does not matter, and going straight from the first key that is near
// enough to the last is quicker.
void Grid::Collect(Anchors& anchors, std::size_t axis, std::uint32_t begin, std::uint32_t end,
                   double distance) const {
  const double at = anchors.log2_point[axis];
  const std::vector<double>& keys = levels_[axis].log2_keys;
  if (anchors.near) {
    const auto first = std::partition_point(
        keys.begin() + begin, keys.begin() + end,
        [&](double key) { return key < at && anchors.Beyond(distance + (key - at) * (key - at)); });
    for (auto node = static_cast<std::uint32_t>(first - keys.begin()); node < end; ++node) {
      if (!Visit(anchors, axis, node, distance) && keys[node] > at) {
        return;
      }
    }
    return;
  }
  auto up = static_cast<std::uint32_t>(
      std::lower_bound(keys.begin() + begin, keys.begin() + end, at) - keys.begin());
  std::uint32_t down = up;
  while (down > begin || up < end) {
    const bool rise = down == begin || (up < end && keys[up] - at <= at - keys[down - 1]);
    if (!Visit(anchors, axis, rise ? up++ : --down, distance)) {
      return;
    }
  }
}

// The squared distance of a leaf, summed in the order of Collect.
double Grid::DistanceOf(std::uint32_t leaf, const std::array<double, kMaxAxes>& log2_point) const {
  std::array<double, kMaxAxes> squares{};
  std::uint32_t node = leaf;
  for (std::size_t axis = axes_; axis-- > 0;) {
    const double off = levels_[axis].log2_keys[node] - log2_point[axis];
    squares[axis] = off * off;
    node = axis > 0 ? levels_[axis].parent[node] : 0;
  }
  double sum = 0.0;
  for (std::size_t axis = 0; axis < axes_; ++axis) {
    sum += squares[axis];
  }
  return sum;
}

std::optional<double> Grid::Outside(const Coordinates& point, const GridSol& sol,
                                    Nearby& nearby) const {
  static_assert(Nearby::kCount == kNeighbours + 1);
  Anchors anchors{.sol = sol};
  for (std::size_t axis = 0; axis < axes_; ++axis) {
    anchors.log2_point[axis] = Log2(static_cast<double>(point[axis]));
  }
  if (nearby.count == Nearby::kCount) {
    anchors.near = true;
    anchors.bound = 0.0;
    for (const std::uint32_t leaf : nearby.leaves) {
      anchors.bound = std::max(anchors.bound, DistanceOf(leaf, anchors.log2_point));
    }
  }
  Collect(anchors, 0, 0, static_cast<std::uint32_t>(levels_[0].keys.size()), 0.0);
  nearby.count = anchors.count;
  for (std::size_t i = 0; i < anchors.count; ++i) {
    nearby.leaves[i] = anchors.nearest[i].leaf;
  }
  const double least = sol(point);
  if (anchors.count == 0 || !(least > 0.0)) {
    return std::nullopt;
  }
  const std::size_t used = std::min(anchors.count, kNeighbours);
  const bool bounded = anchors.count > kNeighbours;
  const double radius = bounded ? std::sqrt(anchors.nearest[kNeighbours].distance) : 0.0;
  std::array<double, kNeighbours> weights{};
  double total = 0.0;
  for (std::size_t i = 0; i < used; ++i) {
    const double d = std::sqrt(anchors.nearest[i].distance);
    const double share = std::max(radius - d, 0.0) / (radius * d + kTiny);
    weights[i] = bounded ? share * share : 1.0 / (d * d + kTiny);
    total += weights[i];
  }
  if (total <= 0.0) {
    weights.fill(1.0);
    total = static_cast<double>(used);
  }
  double utilization = 0.0;
  for (std::size_t i = 0; i < used; ++i) {
    utilization += weights[i] * anchors.nearest[i].utilization;
  }
  return least / (utilization / total);
}

Curve Curve::FromRows(const Table& table, Rows rows, std::size_t column) {
  std::vector<std::uint64_t> keys;
  std::vector<double> values;
  for (std::size_t row = rows.begin; row < rows.end; ++row) {
    keys.push_back(table.column(column).At(row));
    values.push_back(table.latency().LatencyAt(row));
  }
  return {std::move(keys), std::move(values)};
}

Curve::Curve(std::vector<std::uint64_t> keys, std::vector<double> values)
    : keys_(std::move(keys)), values_(std::move(values)) {}

std::optional<double> Curve::At(double x, const CurveSol& sol) const {
  if (empty()) {
    return std::nullopt;
  }
  const auto above = std::lower_bound(
      keys_.begin(), keys_.end(), x,
      [](std::uint64_t key, double value) { return static_cast<double>(key) < value; });
  const auto at = static_cast<std::size_t>(above - keys_.begin());
  if (above != keys_.end() && static_cast<double>(*above) == x) {
    return values_[at];
  }
  if (above == keys_.end() || above == keys_.begin()) {
    const std::size_t end = at == 0 ? 0 : keys_.size() - 1;
    const double there = sol(static_cast<double>(keys_[end]));
    const double here = sol(x);
    if (!IsPositive(values_[end]) || !IsPositive(there) || !IsPositive(here)) {
      return std::nullopt;
    }
    return here / (there / values_[end]);
  }
  const auto low = static_cast<double>(keys_[at - 1]);
  const auto high = static_cast<double>(keys_[at]);
  return values_[at - 1] + (values_[at] - values_[at - 1]) * ((x - low) / (high - low));
}

}  // namespace dynosim::perfdb
