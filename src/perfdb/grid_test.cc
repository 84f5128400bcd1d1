// SPDX-License-Identifier: Apache-2.0
// Interpolation on small tables whose results can be worked out by hand.
#include "perfdb/grid.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "perfdb/sites.h"
#include "perfdb/table.h"
#include "perfdb/table_for_test.h"

namespace dynosim::perfdb {
namespace {

constexpr std::array<std::size_t, 2> kTwoAxes = {0, 1};
constexpr std::array<std::size_t, 1> kOneAxis = {0};

// Least time that grows with the product of the coordinates.
double ProductSol(const Coordinates& at) {
  return static_cast<double>(at[0]) * static_cast<double>(at[1]);
}

Grid TwoAxes(const TestTable& table) {
  return Grid::FromRows(table.table(), table.table().All(), kTwoAxes);
}

TEST(Grid, AMeasuredPointIsReturnedAsItIs) {
  const TestTable table({{1, 2}, {1, 4}, {3, 2}, {3, 4}}, {10.0, 20.0, 30.0, 50.0});
  EXPECT_EQ(TwoAxes(table).At({3, 4}, ProductSol), 50.0);
}

TEST(Grid, InsideItIsLinearAlongEveryAxis) {
  const TestTable table({{1, 2}, {1, 4}, {3, 2}, {3, 4}}, {10.0, 20.0, 30.0, 50.0});
  // Axis 1 first: (10 + 20) / 2 = 15 and (30 + 50) / 2 = 40; then the middle of both.
  EXPECT_EQ(TwoAxes(table).At({2, 3}, ProductSol), 27.5);
}

TEST(Grid, TheSquareRootAxisInterpolatesRoots) {
  const TestTable table({{1, 2}, {1, 4}}, {4.0, 16.0});
  // Roots 2 and 4, in the middle 3, squared 9.
  EXPECT_EQ(TwoAxes(table).At({1, 3}, ProductSol, 1), 9.0);
}

TEST(Grid, AMissingBranchIsScaledFromTheOtherOneByTheLeastTime) {
  // At 3 the second axis ends at 2, so (3, 4) is out of its reach.
  const TestTable table({{1, 2}, {1, 4}, {3, 2}}, {10.0, 20.0, 30.0});
  // From (1, 4) = 20 to (2, 4): the least time doubles.
  EXPECT_EQ(TwoAxes(table).At({2, 4}, ProductSol), 40.0);
}

TEST(Grid, BeyondOneAxisTheUtilizationOfTheEndIsKept) {
  const TestTable table({{8, 0}, {16, 0}}, {2.0, 3.0});
  const Grid grid = Grid::FromRows(table.table(), table.table().All(), kOneAxis);
  const auto sol = [](const Coordinates& at) { return static_cast<double>(at[0]) / 8.0; };
  // The least time at 16 is 2, the measured one 3; at 32 the least time is 4.
  EXPECT_DOUBLE_EQ(*grid.At({32}, sol), 6.0);
  // Below: least time 1 for 2 measured; at 4 it is 0.5.
  EXPECT_DOUBLE_EQ(*grid.At({4}, sol), 1.0);
}

TEST(Grid, FarOutsideTheNearestPointsAreAveragedByUtilization) {
  const TestTable table({{1, 1}, {2, 2}}, {4.0, 8.0});
  // Utilizations 1/4 and 1/2; distances from (4, 4) on the log2 scale: 2 sqrt(2) and sqrt(2).
  const double near = 1.0 / (2.0 + 1e-12);
  const double far = 1.0 / (8.0 + 1e-12);
  const double utilization = (near * 0.5 + far * 0.25) / (near + far);
  EXPECT_NEAR(*TwoAxes(table).At({4, 4}, ProductSol), 16.0 / utilization, 1e-9);
}

// A ragged grid of three axes: the longer the first keys, the fewer of the last.
TestTable Ragged() {
  std::vector<std::vector<std::uint64_t>> rows;
  std::vector<double> latencies;
  for (std::uint64_t heads = 1; heads <= 16; heads *= 2) {
    for (std::uint64_t batch = 1; batch <= 64; batch *= 2) {
      for (std::uint64_t length = 1; length * batch * heads <= 4096; length *= 2) {
        rows.push_back({heads, batch, length});
        // Some points are of no use.
        latencies.push_back(rows.size() % 7 == 0 ? 0.0 : 1.0 + static_cast<double>(length % 13));
      }
    }
  }
  return TestTable(rows, latencies);
}

TEST(Grid, RatedAndAskedPointAfterPointItAnswersTheSame) {
  const TestTable table = Ragged();
  constexpr std::array<std::size_t, 3> kAxes = {0, 1, 2};
  const GridSol sol = [](const Coordinates& at) {
    return static_cast<double>(at[0] * at[1] * at[2]) * 0.001;
  };
  const Grid plain = Grid::FromRows(table.table(), table.table().All(), kAxes);
  Grid rated = Grid::FromRows(table.table(), table.table().All(), kAxes);
  rated.Rate(sol);
  Grid::Nearby nearby;
  // The last axis jumps now and then, so that the points before are no longer near.
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const Coordinates point = {1 + i % 5 * 6, 1 + i / 40 % 100, (i % 97 == 0 ? 1 : 3000) + i};
    const auto expected = plain.At(point, sol);
    ASSERT_TRUE(expected) << i;
    ASSERT_EQ(rated.At(point, sol), expected) << i;
    ASSERT_EQ(rated.At(point, sol, nearby), expected) << i;
  }
}

TEST(Grid, OutsideTheFourNearestOfAllPointsAreAveraged) {
  // Each of the five nearest counts once, wherever in the tree it stands; the fifth gives the
  // radius. From (8, 8) on the log2 scale: (4, 4) is sqrt(2) away, (2, 4) and (4, 2) sqrt(5),
  // (2, 2) 2 sqrt(2), and (1, 4) sqrt(10), which is the radius.
  const TestTable table({{1, 4}, {2, 2}, {2, 4}, {4, 2}, {4, 4}}, {4.0, 8.0, 16.0, 16.0, 64.0});
  const double radius = std::sqrt(10.0);
  double weights = 0.0;
  double utilization = 0.0;
  const auto add = [&](double squared, double value) {
    const double d = std::sqrt(squared);
    const double share = (radius - d) / (radius * d);
    weights += share * share;
    utilization += share * share * value;
  };
  add(2.0, 16.0 / 64.0);
  add(5.0, 8.0 / 16.0);
  add(5.0, 8.0 / 16.0);
  add(8.0, 4.0 / 8.0);
  EXPECT_NEAR(*TwoAxes(table).At({8, 8}, ProductSol), 64.0 / (utilization / weights), 1e-9);
}

TEST(Grid, WithoutAUsableAnchorThereIsNoAnswer) {
  const TestTable table({{1, 1}}, {0.0});
  EXPECT_EQ(TwoAxes(table).At({2, 2}, ProductSol), std::nullopt);
  EXPECT_EQ(Grid().At({1}, ProductSol), std::nullopt);
}

TEST(Curve, InsideItIsLinearAndOutsideItKeepsTheUtilization) {
  const Curve curve({10, 20}, {1.0, 3.0});
  const auto identity = [](double x) { return x; };
  EXPECT_EQ(curve.At(15.0, identity), 2.0);
  EXPECT_EQ(curve.At(20.0, identity), 3.0);
  EXPECT_DOUBLE_EQ(*curve.At(40.0, identity), 6.0);
  EXPECT_DOUBLE_EQ(*curve.At(5.0, identity), 0.5);
  EXPECT_EQ(Curve().At(1.0, identity), std::nullopt);
}

// A GEMM table: dtype, n, k, order, m.
GemmSites Sites(const TestTable& table) {
  return *GemmSites::FromTable(table.table(), "fp8",
                               [](double m, double n, double k) { return m * n * k * 1e-6; });
}

TEST(GemmShape, AMeasuredShapeUsesItsOwnCurve) {
  const TestTable table({{0, 64, 64, 0, 1}, {0, 64, 64, 0, 3}}, {2.0, 4.0}, {"fp8"});
  const GemmSites sites = Sites(table);
  EXPECT_EQ(GemmShape(sites, 64, 64).At(2), 3.0);
}

TEST(GemmShape, BelowTheLeastTimeAMeasurementIsRaised) {
  const TestTable table({{0, 1000, 1000, 0, 4}}, {1.0}, {"fp8"});
  const GemmSites sites = Sites(table);
  EXPECT_EQ(GemmShape(sites, 1000, 1000).At(4), 4.0);
}

TEST(GemmShape, BeyondTheCurveTheMedianUtilizationOfTheTailIsKept) {
  // Least times 1, 2, 4 for measured 2, 8, 8: utilizations 1/2, 1/4, 1/2; the median is 1/2.
  const TestTable table({{0, 1000, 1000, 0, 1}, {0, 1000, 1000, 0, 2}, {0, 1000, 1000, 0, 4}},
                        {2.0, 8.0, 8.0}, {"fp8"});
  const GemmSites sites = Sites(table);
  EXPECT_DOUBLE_EQ(*GemmShape(sites, 1000, 1000).At(8), 16.0);
}

TEST(GemmShape, BetweenShapesTheNearestUtilizationsAreWeighted) {
  // Both neighbours are one power of two away in n: equal weights of utilizations 1/2 and 1/4.
  const TestTable table({{0, 1000, 1000, 0, 1}, {0, 4000, 1000, 1, 1}}, {2.0, 16.0}, {"fp8"});
  const GemmSites sites = Sites(table);
  EXPECT_NEAR(*GemmShape(sites, 2000, 1000).At(1), 2.0 / 0.375, 1e-9);
}

TEST(GemmShape, FarAwayOnlyAShapeBeyondOneEdgeIsAnswered) {
  const TestTable table({{0, 64, 64, 0, 1}}, {1.0}, {"fp8"});
  const GemmSites sites = Sites(table);
  EXPECT_NE(GemmShape(sites, 4096, 64).At(1), std::nullopt);
  EXPECT_EQ(GemmShape(sites, 4096, 4096).At(1), std::nullopt);
  EXPECT_EQ(GemmShape(sites, 1, 64).At(1), std::nullopt);
}

}  // namespace
}  // namespace dynosim::perfdb
