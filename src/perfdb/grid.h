// SPDX-License-Identifier: Apache-2.0
// Interpolation of measured latencies. A Grid has one to four nested axes with integer keys (heads,
// then sequence length, then batch, say), and may be ragged. Inside its range it interpolates axis
// by axis; outside it keeps the utilization of the nearest measured points: the ratio of the speed
// of light (the least time that arithmetic and memory allow) to the latency. A Curve is one axis
// with values in between. Latencies are milliseconds.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "perfdb/table.h"

namespace dynosim::perfdb {

inline constexpr std::size_t kMaxAxes = 4;
using Coordinates = std::array<std::uint64_t, kMaxAxes>;
// Least time of an operation at a grid point, in ms.
using GridSol = std::function<double(const Coordinates&)>;
// The same along one axis.
using CurveSol = std::function<double(double)>;

// Whether a latency or a ratio can be worked with.
inline bool IsPositive(double value) { return std::isfinite(value) && value > 0.0; }

class Grid {
 public:
  // `columns` are the axes, `rows` one key of the table. `latency` may change a measured value
  // (raise it to the speed of light); no function leaves it.
  static Grid FromRows(const Table& table, Rows rows, std::span<const std::size_t> columns,
                       const std::function<double(double, const Coordinates&)>& latency = {});

  bool empty() const { return values_.empty(); }
  std::size_t axes() const { return axes_; }
  // True when the first axis has this key.
  bool HasFirst(std::uint64_t key) const;

  // Latency at a point, or nothing when the data does not reach: no usable branch or no anchor.
  // Along `sqrt_axis` square roots are interpolated.
  std::optional<double> At(const Coordinates& point, const GridSol& sol,
                           std::optional<std::size_t> sqrt_axis = std::nullopt) const;

  // Works out the utilization of every measured point once, for a grid that is often asked outside
  // of its range. Each later At must come with the same `sol`.
  void Rate(const GridSol& sol);
  // The nearest measured points of the last question outside of the range. They bound the search
  // of the next one, which makes points that lie close together cheaper; answers stay the same.
  struct Nearby;
  std::optional<double> At(const Coordinates& point, const GridSol& sol, Nearby& nearby) const;

  // Keys of the first axis, and over all branches of the second: the clamping range of two-axis
  // tables.
  std::span<const std::uint64_t> FirstKeys() const { return levels_[0].keys; }
  std::span<const std::uint64_t> KeysOf(std::size_t axis) const { return levels_[axis].keys; }

 private:
  // The range of log2 keys on the axes of the levels below a node.
  struct Box {
    std::array<double, kMaxAxes> low{}, high{};
  };
  // Node i of a level has key keys[i]; its children in the next level are [child[i], child[i+1]),
  // its parent in the level before is parent[i].
  struct Level {
    std::vector<std::uint64_t> keys;
    std::vector<double> log2_keys;
    std::vector<std::uint32_t> child;
    std::vector<std::uint32_t> parent;
    std::vector<Box> box;  // around what is below a node; the last level has none
  };
  enum class Lack { kOutOfRange, kMissing };
  using Found = std::expected<double, Lack>;
  struct Query {
    const Coordinates& point;
    const GridSol& sol;
    std::size_t sqrt_axis;
  };
  struct Anchors;

  std::optional<double> At(const Query& query, Nearby& nearby) const;
  Found Inside(const Query& query, std::size_t axis, std::uint32_t begin, std::uint32_t end) const;
  double Blend(const Query& query, std::size_t axis, std::array<std::uint64_t, 2> keys,
               std::array<double, 2> values) const;
  double OneBranch(const Query& query, std::size_t axis, std::uint64_t key, double value) const;
  std::optional<double> Outside(const Coordinates& point, const GridSol& sol, Nearby& nearby) const;
  std::optional<double> OutsideOneAxis(const Coordinates& point, const GridSol& sol) const;
  bool Visit(Anchors& anchors, std::size_t axis, std::uint32_t node, double distance) const;
  void Collect(Anchors& anchors, std::size_t axis, std::uint32_t begin, std::uint32_t end,
               double distance) const;
  void Enclose();
  double LeastDistance(const Box& box, std::size_t axis, double distance,
                       const std::array<double, kMaxAxes>& log2_point) const;
  double DistanceOf(std::uint32_t leaf, const std::array<double, kMaxAxes>& log2_point) const;

  std::size_t axes_ = 0;
  std::array<Level, kMaxAxes> levels_;
  std::vector<double> values_;        // by node of the last level
  std::vector<double> utilizations_;  // by the same, NaN where there is none; empty: not rated
};

struct Grid::Nearby {
  static constexpr std::size_t kCount = 5;
  std::array<std::uint32_t, kCount> leaves{};
  std::size_t count = 0;
};

class Curve {
 public:
  Curve() = default;
  static Curve FromRows(const Table& table, Rows rows, std::size_t column);
  // Keys rise strictly.
  Curve(std::vector<std::uint64_t> keys, std::vector<double> values);

  bool empty() const { return keys_.empty(); }
  std::size_t size() const { return keys_.size(); }
  std::uint64_t FirstKey() const { return keys_.front(); }
  std::uint64_t LastKey() const { return keys_.back(); }
  std::span<const std::uint64_t> keys() const { return keys_; }
  std::span<const double> values() const { return values_; }

  // Linear inside; outside, the utilization of the end point is kept. Nothing for an empty curve.
  std::optional<double> At(double x, const CurveSol& sol) const;

 private:
  std::vector<std::uint64_t> keys_;
  std::vector<double> values_;
};

// max(log2(key), log2(1e-12)): the scale on which distances between measured points are taken.
double Log2(double key);

}  // namespace dynosim::perfdb
