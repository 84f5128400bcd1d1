// SPDX-License-Identifier: Apache-2.0
#include "search/trials.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "search/settings.h"
#include "search/space.h"

namespace dynosim::search {
namespace {

// Points of all branches when there are at most `limit`.
std::optional<std::uint64_t> FiniteSize(const std::vector<Branch>& space, std::uint64_t limit) {
  std::uint64_t total = 0;
  for (const Branch& branch : space) {
    const std::optional<std::uint64_t> size = branch.size();
    if (!size || *size > limit - total) {
      return std::nullopt;
    }
    total += *size;
  }
  return total;
}

std::vector<Trial> Grid(const std::vector<Branch>& space) {
  std::vector<Trial> trials;
  for (std::size_t b = 0; b < space.size(); ++b) {
    for (std::uint64_t number = 0; number < space[b].size().value_or(0); ++number) {
      trials.push_back({.branch = b, .point = space[b].At(number)});
    }
  }
  return trials;
}

// Draws from one branch, no point of a finite one twice.
class Sampler {
 public:
  // At most `wanted` draws follow.
  Sampler(const Branch& branch, std::uint64_t wanted) : branch_(branch), size_(branch.size()) {
    // With few points to spare most draws would be repetitions: shuffle them all instead.
    if (size_ && *size_ / 2 <= wanted) {
      for (std::uint64_t number = 0; number < *size_; ++number) {
        rest_.push_back(number);
      }
    }
  }

  std::optional<Point> Next(ChaCha12& random) {
    if (!size_) {
      return branch_.Draw(random);
    }
    if (*size_ == taken_) {
      return std::nullopt;
    }
    ++taken_;
    if (rest_.empty()) {
      return DrawNew(random);
    }
    const std::uint32_t at = random.NextBelow(static_cast<std::uint32_t>(rest_.size()));
    std::swap(rest_[at], rest_.back());
    const std::uint64_t number = rest_.back();
    rest_.pop_back();
    return branch_.At(number);
  }

 private:
  Point DrawNew(ChaCha12& random) {
    while (true) {
      Point point = branch_.Draw(random);
      std::vector<std::size_t> key;
      for (const Coordinate& coordinate : point) {
        key.push_back(coordinate.option);
      }
      if (seen_.insert(std::move(key)).second) {
        return point;
      }
    }
  }

  const Branch& branch_;
  std::optional<std::uint64_t> size_;
  std::uint64_t taken_ = 0;
  std::vector<std::uint64_t> rest_;
  std::set<std::vector<std::size_t>> seen_;
};

// The value of an open range, or the option, that a coordinate names.
Result<Coordinate> ReadCoordinate(const Json& json, const Dimension& dimension,
                                  const std::string& where) {
  if (dimension.open) {
    const OpenRange& range = *dimension.open;
    const bool right_kind = range.integer ? json.is_integer() : json.is_number();
    if (!right_kind || json.number() < range.min || json.number() > range.max) {
      return UsageError(where, dimension.path + " has no value " + DumpJson(json));
    }
    return Coordinate{.option = 0, .value = json};
  }
  const auto count = static_cast<double>(dimension.options.size());
  if (!json.is_integer() || json.number() < 0.0 || json.number() >= count) {
    return UsageError(
        where, dimension.options.front().front().path + " has no option number " + DumpJson(json));
  }
  return Coordinate{.option = static_cast<std::size_t>(json.number()), .value = {}};
}

}  // namespace

std::vector<Trial> DrawTrials(const std::vector<Branch>& space, std::uint64_t max_trials,
                              std::uint64_t seed) {
  ChaCha12 random(seed);
  std::vector<Sampler> samplers;
  for (const Branch& branch : space) {
    samplers.emplace_back(branch, max_trials);
  }
  std::vector<Trial> trials;
  for (std::size_t exhausted = 0; exhausted < space.size();) {
    exhausted = 0;
    for (std::size_t b = 0; b < space.size() && trials.size() < max_trials; ++b) {
      if (std::optional<Point> point = samplers[b].Next(random)) {
        trials.push_back({.branch = b, .point = *std::move(point)});
      } else {
        ++exhausted;
      }
    }
    if (trials.size() == max_trials) {
      break;
    }
  }
  return trials;
}

Json TrialJson(const Trial& trial, const std::vector<Branch>& space) {
  Json::Array json = {Json(std::uint64_t{trial.branch})};
  const std::vector<Dimension>& dimensions = space[trial.branch].dimensions();
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const Coordinate& coordinate = trial.point[i];
    json.push_back(dimensions[i].open ? coordinate.value : Json(std::uint64_t{coordinate.option}));
  }
  return json;
}

Result<Trial> ReadTrial(const Json& json, const std::vector<Branch>& space,
                        const std::string& where) {
  if (!json.is_array() || json.array().empty() || !json.array().front().is_integer() ||
      json.array().front().number() < 0.0 ||
      json.array().front().number() >= static_cast<double>(space.size())) {
    return UsageError(where, "is no trial: " + DumpJson(json));
  }
  Trial trial{.branch = static_cast<std::size_t>(json.array().front().number()), .point = {}};
  const std::vector<Dimension>& dimensions = space[trial.branch].dimensions();
  if (json.array().size() != dimensions.size() + 1) {
    return UsageError(where, "needs a coordinate for each of " + std::to_string(dimensions.size()) +
                                 " dimensions: " + DumpJson(json));
  }
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    DYNO_TRY(Coordinate coordinate, ReadCoordinate(json.array()[i + 1], dimensions[i], where));
    trial.point.push_back(std::move(coordinate));
  }
  return trial;
}

Result<TrialPlan> PlanTrials(const std::vector<Branch>& space, const SearchSettings& settings,
                             const std::string& where) {
  const bool fits = FiniteSize(space, settings.max_trials).has_value();
  TrialPlan plan;
  plan.algorithm = settings.algorithm;
  // A guide is for spaces of which a search sees a part.
  const bool whole = plan.algorithm == Algorithm::kBayesian || plan.algorithm == Algorithm::kAuto;
  if (fits && whole) {
    plan.algorithm = Algorithm::kGrid;
  } else if (plan.algorithm == Algorithm::kAuto) {
    plan.algorithm = Algorithm::kRandom;
  }
  if (plan.algorithm == Algorithm::kGrid && !fits) {
    return UsageError(where,
                      "optimizer.algorithm: grid needs a finite space of at most "
                      "optimizer.max_trials " +
                          std::to_string(settings.max_trials) +
                          " candidates; raise max_trials, give ranges a step, or use "
                          "random");
  }
  if (plan.algorithm == Algorithm::kGrid) {
    plan.trials = Grid(space);
  } else if (plan.algorithm == Algorithm::kRandom) {
    plan.trials = DrawTrials(space, settings.max_trials, settings.seed);
  }
  return plan;
}

}  // namespace dynosim::search
