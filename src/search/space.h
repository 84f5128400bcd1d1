// SPDX-License-Identifier: Apache-2.0
// Space: all candidates of a document of `recommend`. A branch per topology, because the two have
// different fields; a branch is a product of dimensions over one prediction document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "search/domain.h"
#include "search/settings.h"

namespace dynosim::search {

struct Assignment {
  std::string path;
  Json value;
};
using Option = std::vector<Assignment>;

struct Dimension {
  std::vector<Option> options;  // empty with an open range
  std::string path;             // of the open range
  std::optional<OpenRange> open;
};

// What a point takes in every dimension: an option, or a value of the open range.
struct Coordinate {
  std::size_t option = 0;
  Json value;
};
using Point = std::vector<Coordinate>;

class Branch {
 public:
  Branch(Json base, std::vector<Dimension> dimensions);

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  // Number of points, at most 2^64 - 1; absent with an open range.
  std::optional<std::uint64_t> size() const;
  // The point of a number below size(); the last dimension runs fastest.
  Point At(std::uint64_t number) const;
  Point Draw(ChaCha12& random) const;
  // The values of a point by path.
  std::vector<Assignment> Values(const Point& point) const;
  // The prediction document of a point.
  Json Document(const Point& point) const;

 private:
  Json base_;
  std::vector<Dimension> dimensions_;
};

// Reads every domain and adds those that are left out. Errors name `where` and the path.
Result<std::vector<Branch>> BuildSpace(const Json& document, const SearchSettings& settings,
                                       const std::string& where);

}  // namespace dynosim::search
