// SPDX-License-Identifier: Apache-2.0
#include "router/policy_profile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dynosim::router {

std::size_t PolicyProfile::ClassOf(std::string_view name, std::uint64_t uncached_tokens) const {
  if (families.empty()) {
    return 0;
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (is_explicit[i] && classes[i].name == name) {
      return i;
    }
  }
  const auto found = std::ranges::find(families, name);
  const std::size_t family =
      found == families.end() ? default_family : static_cast<std::size_t>(found - families.begin());
  std::size_t bucket = 0;
  while (bucket + 1 < buckets.size() && buckets[bucket + 1].min_tokens <= uncached_tokens) {
    ++bucket;
  }
  return matrix[family * buckets.size() + bucket];
}

PolicyProfile SingleClass(QueuePolicy policy, std::optional<double> busy_fraction) {
  PolicyProfile profile;
  profile.classes.push_back({.policy = policy, .busy_fraction = busy_fraction});
  profile.is_explicit.push_back(false);
  return profile;
}

}  // namespace dynosim::router
