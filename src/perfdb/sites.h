// SPDX-License-Identifier: Apache-2.0
// GEMM latencies by shape. A site is one measured (n, k) with a curve over m, the number of tokens.
// A shape between the sites takes the utilization (least time over latency) of its neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "perfdb/grid.h"
#include "perfdb/table.h"

namespace dynosim::perfdb {

// Least time in ms of an (m x k) by (k x n) product.
using GemmSol = std::function<double(double m, double n, double k)>;

// All sites of one data type.
class GemmSites {
 public:
  struct Site {
    std::uint64_t n = 0;
    std::uint64_t k = 0;
    std::uint64_t order = 0;  // breaks ties of distance
    Curve curve;              // over m, each value at least the least time
  };

  // Empty when the table has no rows of the type.
  static std::optional<GemmSites> FromTable(const Table& gemm, std::string_view dtype,
                                            const GemmSol& sol);

  const std::vector<Site>& sites() const { return sites_; }
  const GemmSol& sol() const { return sol_; }

 private:
  std::vector<Site> sites_;  // in their order
  GemmSol sol_;
};

// One shape, resolved against the sites once. The sites must outlive it.
class GemmShape {
 public:
  GemmShape(const GemmSites& sites, std::uint64_t n, std::uint64_t k);

  // Latency in ms for m tokens; nothing when no site is near enough.
  std::optional<double> At(std::uint64_t m) const;

 private:
  struct Neighbour {
    const GemmSites::Site* site = nullptr;
    double distance = 0.0;
  };
  std::optional<double> FromNeighbours(std::uint64_t m) const;
  // Up to four of the nearest sites within reach; only those that measured around m when asked.
  std::size_t PickNear(std::uint64_t m, bool covering, std::array<Neighbour, 4>& out) const;
  std::optional<double> Average(std::uint64_t m, std::span<const Neighbour> near) const;
  // The candidates when every site is far away: allowed when the shape is larger than all of them
  // in exactly one dimension.
  std::vector<Neighbour> BeyondOneEdge(const std::vector<Neighbour>& candidates) const;

  const GemmSites* sites_;
  std::uint64_t n_, k_;
  const GemmSites::Site* exact_ = nullptr;
  std::vector<Neighbour> nearest_;  // all sites, by (distance, order)
};

}  // namespace dynosim::perfdb
