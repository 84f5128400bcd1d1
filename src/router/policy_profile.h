// SPDX-License-Identifier: Apache-2.0
// PolicyProfile: the classes of a router queue, their limits, and the rules that say which class a
// request belongs to (chapter 70, sections 6.1 and 6.2). Read from a policy file, or the one class
// that the router configuration describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/settings.h"

namespace dynosim::router {

using QueuePolicy = engine::RouterQueuePolicy;

struct ClassRules {
  std::string name = "default";
  QueuePolicy policy = QueuePolicy::kFcfs;
  std::uint64_t quantum = 1;  // tokens of credit per round
  // A target with more active prefill tokens than this is busy; without either nothing queues.
  std::optional<std::uint64_t> busy_tokens{};
  std::optional<double> busy_fraction{};  // of the target's token budget
  // Limits per target; a class at its limit ends the run.
  std::optional<std::uint64_t> request_limit{}, prompt_token_limit{}, cached_token_limit{};

  bool CanQueue() const { return busy_tokens || busy_fraction; }
};

// Classes by (family, bucket of uncached prompt tokens), and explicit ones by their own name.
struct PolicyProfile {
  struct Bucket {
    std::uint64_t min_tokens = 0;
    std::string name;
  };

  std::vector<ClassRules> classes;
  std::vector<bool> is_explicit;  // by class
  std::vector<std::string> families;
  std::size_t default_family = 0;
  std::vector<Bucket> buckets;
  std::vector<std::size_t> matrix;  // [family * buckets + bucket] -> class

  // `name` is empty when the request has none. `uncached_tokens` is its prompt beyond the best
  // overlap.
  std::size_t ClassOf(std::string_view name, std::uint64_t uncached_tokens) const;
};

// The profile of a router without a policy file: one class.
PolicyProfile SingleClass(QueuePolicy policy, std::optional<double> busy_fraction);

// Reads a policy file. `model` selects its profile where the file has one for it. Empty if the file
// has no profile for the model and no general one.
Result<std::optional<PolicyProfile>> LoadPolicyFile(const std::string& path,
                                                    std::string_view model);

}  // namespace dynosim::router
