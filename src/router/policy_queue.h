// SPDX-License-Identifier: Apache-2.0
// PolicyQueue: requests that wait for a target, in classes; deficit round robin between classes,
// and the class's own order inside it (chapter 70, sections 6.3 to 6.5). Costs and deficits are
// tokens. Requests are known by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "router/policy_profile.h"

namespace dynosim::router {

struct QueuedRequest {
  std::uint32_t request = 0;
  std::uint32_t strict_priority = 0;
  std::int32_t priority = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of the best target
  double arrival_ms = 0.0;          // time of entry
};

class PolicyQueue {
 public:
  // `targets`: how many targets the limits of a class are multiplied with.
  PolicyQueue(const PolicyProfile& profile, std::uint32_t targets);

  // Why the class takes no further request; empty if it does.
  std::optional<std::string> LimitReached(std::size_t number) const;
  void Push(std::size_t number, const QueuedRequest& request);
  bool Cancel(std::uint32_t request);

  bool Empty(std::size_t number) const { return classes_[number].heap.empty(); }
  std::uint64_t size() const { return size_; }

  // Takes the next request out, if some class has one and `may_dispatch(class)` allows it.
  std::optional<std::uint32_t> Pop(const std::function<bool(std::size_t)>& may_dispatch);

 private:
  struct Entry {
    std::uint32_t request = 0;
    std::uint32_t strict_priority = 0;
    double score = 0.0;
    std::uint64_t order = 0;  // of entry
    std::uint64_t cost = 0;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;
  };
  struct Class {
    std::vector<Entry> heap;
    std::uint64_t deficit = 0;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;
  };

  // True if `a` comes after `b`.
  static bool Later(const Entry& a, const Entry& b);
  std::uint32_t Take(std::size_t number);
  void Forget(Class& c, const Entry& entry);

  const PolicyProfile& profile_;
  std::uint64_t targets_;
  std::vector<Class> classes_;
  std::uint64_t size_ = 0;
  std::uint64_t next_order_ = 0;
  std::size_t cursor_ = 0;
  std::optional<std::size_t> carry_;  // class whose deficit lasts for further requests
  std::vector<std::size_t> candidates_;
};

}  // namespace dynosim::router
