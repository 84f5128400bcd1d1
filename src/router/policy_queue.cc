// SPDX-License-Identifier: Apache-2.0
#include "router/policy_queue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "router/policy_profile.h"

namespace dynosim::router {

namespace {

double Score(QueuePolicy policy, const QueuedRequest& request, std::uint64_t cost) {
  const double jump = std::max(static_cast<double>(request.priority), 0.0);
  const double arrival_s = request.arrival_ms / 1000.0;
  switch (policy) {
    case QueuePolicy::kFcfs:
      return jump - arrival_s;
    case QueuePolicy::kLcfs:
      return jump + arrival_s;
    case QueuePolicy::kWspt:
      return (1.0 + jump) / static_cast<double>(cost);
  }
  return 0.0;
}

}  // namespace

PolicyQueue::PolicyQueue(const PolicyProfile& profile, std::uint32_t targets)
    : profile_(profile), targets_(targets), classes_(profile.classes.size()) {}

bool PolicyQueue::Later(const Entry& a, const Entry& b) {
  if (a.strict_priority != b.strict_priority) {
    return a.strict_priority < b.strict_priority;
  }
  return a.score != b.score ? a.score < b.score : a.order > b.order;
}

std::optional<std::string> PolicyQueue::LimitReached(std::size_t number) const {
  const ClassRules& rules = profile_.classes[number];
  const Class& c = classes_[number];
  const auto reached = [&](std::string_view kind, const std::optional<std::uint64_t>& per_target,
                           std::uint64_t current) -> std::optional<std::string> {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    if (!per_target || *per_target > kMax / targets_ || current < *per_target * targets_) {
      return std::nullopt;
    }
    return "router policy class \"" + rules.name + "\" queue " + std::string(kind) +
           " limit reached (current=" + std::to_string(current) +
           ", limit=" + std::to_string(*per_target * targets_) + ")";
  };
  if (auto why = reached("requests", rules.request_limit, c.heap.size())) {
    return why;
  }
  if (auto why = reached("raw_isl_tokens", rules.prompt_token_limit, c.prompt_tokens)) {
    return why;
  }
  return reached("cached_tokens", rules.cached_token_limit, c.cached_tokens);
}

void PolicyQueue::Push(std::size_t number, const QueuedRequest& request) {
  Class& c = classes_[number];
  const std::uint64_t cached = std::min(request.cached_tokens, request.prompt_tokens);
  const std::uint64_t cost = std::max<std::uint64_t>(1, request.prompt_tokens - cached);
  c.heap.push_back({.request = request.request,
                    .strict_priority = request.strict_priority,
                    .score = Score(profile_.classes[number].policy, request, cost),
                    .order = next_order_++,
                    .cost = cost,
                    .prompt_tokens = request.prompt_tokens,
                    .cached_tokens = cached});
  std::ranges::push_heap(c.heap, Later);
  c.prompt_tokens += request.prompt_tokens;
  c.cached_tokens += cached;
  ++size_;
}

void PolicyQueue::Forget(Class& c, const Entry& entry) {
  c.prompt_tokens -= entry.prompt_tokens;
  c.cached_tokens -= entry.cached_tokens;
  --size_;
}

bool PolicyQueue::Cancel(std::uint32_t request) {
  for (Class& c : classes_) {
    const auto found = std::ranges::find(c.heap, request, &Entry::request);
    if (found == c.heap.end()) {
      continue;
    }
    Forget(c, *found);
    c.heap.erase(found);
    std::ranges::make_heap(c.heap, Later);
    return true;
  }
  return false;
}

std::uint32_t PolicyQueue::Take(std::size_t number) {
  Class& c = classes_[number];
  const Entry entry = c.heap.front();
  std::ranges::pop_heap(c.heap, Later);
  c.heap.pop_back();
  Forget(c, entry);
  cursor_ = (number + 1) % classes_.size();
  c.deficit -= std::min(c.deficit, entry.cost);
  if (c.heap.empty()) {
    c.deficit = 0;
  } else if (c.deficit > 0) {
    carry_ = number;
  }
  return entry.request;
}

// Deficit round robin: a class gets its quantum when the ring comes by, and keeps its turn while
// its deficit pays for its head.
std::optional<std::uint32_t> PolicyQueue::Pop(
    const std::function<bool(std::size_t)>& may_dispatch) {
  const std::optional<std::size_t> carried = carry_;
  carry_.reset();
  if (size_ == 0) {
    return std::nullopt;
  }
  if (carried) {
    Class& c = classes_[*carried];
    if (c.heap.empty()) {
      c.deficit = 0;
    } else if (c.heap.front().cost <= c.deficit && may_dispatch(*carried)) {
      return Take(*carried);
    }
  }
  candidates_.clear();
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const std::size_t number = (cursor_ + i) % classes_.size();
    Class& c = classes_[number];
    if (c.heap.empty() || !may_dispatch(number)) {
      c.deficit = c.heap.empty() ? 0 : c.deficit;
      continue;
    }
    const std::uint64_t cost = c.heap.front().cost;
    if (cost > c.deficit) {
      c.deficit += profile_.classes[number].quantum;
    }
    if (cost <= c.deficit) {
      return Take(number);
    }
    candidates_.push_back(number);
  }
  if (candidates_.empty()) {
    return std::nullopt;
  }
  std::uint64_t rounds = std::numeric_limits<std::uint64_t>::max();
  for (const std::size_t number : candidates_) {
    const std::uint64_t quantum = profile_.classes[number].quantum;
    const std::uint64_t missing = classes_[number].heap.front().cost - classes_[number].deficit;
    rounds = std::min(rounds, (missing - 1) / quantum + 1);
  }
  std::optional<std::size_t> first;
  for (const std::size_t number : candidates_) {
    classes_[number].deficit += profile_.classes[number].quantum * rounds;
    if (!first && classes_[number].heap.front().cost <= classes_[number].deficit) {
      first = number;
    }
  }
  return first ? std::optional(Take(*first)) : std::nullopt;
}

}  // namespace dynosim::router
