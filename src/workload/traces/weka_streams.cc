// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/weka_streams.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "workload/request.h"

namespace dynosim::workload {
namespace {

using Hashes = std::span<const std::uint64_t>;

std::size_t CommonPrefix(Hashes a, Hashes b) {
  const auto [end, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end - a.begin());
}

struct Chain {
  std::vector<std::uint32_t> requests;
  std::uint32_t tail = kNone;  // the last request with hashes
  std::uint32_t fork_source = kNone;
  std::size_t fork_depth = 0;  // blocks shared with the fork source
  bool spliced = false;        // is part of another chain now
};

class Splitter {
 public:
  explicit Splitter(std::span<const WekaStreamRequest> requests) : requests_(requests) {}

  std::vector<WekaStream> Split() {
    std::vector<std::uint32_t> order(requests_.size());
    std::iota(order.begin(), order.end(), 0U);
    Sort(order);
    const bool has_preamble = StartsWithPreamble(order);
    for (const std::uint32_t r : std::span(order).subspan(has_preamble ? 1 : 0)) {
      Place(r);
    }
    SpliceAll();
    return Streams(has_preamble ? order.front() : kNone);
  }

 private:
  const WekaStreamRequest& At(std::uint32_t r) const { return requests_[r]; }
  bool Earlier(std::uint32_t a, std::uint32_t b) const {
    return std::pair(At(a).t, a) < std::pair(At(b).t, b);
  }
  void Sort(std::vector<std::uint32_t>& order) const {
    std::sort(order.begin(), order.end(),
              [this](std::uint32_t a, std::uint32_t b) { return Earlier(a, b); });
  }
  const WekaStreamRequest& First(const Chain& chain) const { return At(chain.requests.front()); }

  bool StartsWithPreamble(std::span<const std::uint32_t> order) const;
  void Place(std::uint32_t r);
  std::uint32_t ContinuedChain(std::uint32_t r) const;
  void Fork(std::uint32_t r);
  void SpliceAll();
  bool CanSplice(const Chain& fork, std::uint32_t tail) const;
  void SpliceForksOf(std::uint32_t tail, std::uint32_t owner);
  std::vector<WekaStream> Streams(std::uint32_t preamble) const;

  std::span<const WekaStreamRequest> requests_;
  std::vector<Chain> chains_;
  std::set<std::pair<std::string, std::uint32_t>> open_sources_;  // that were not handled yet
  FlatMap<std::uint32_t, bool> handled_;
};

// A first request that has nothing to do with the rest, such as the naming of the conversation.
bool Splitter::StartsWithPreamble(std::span<const std::uint32_t> order) const {
  if (order.size() < 2 || At(order.front()).hashes.empty()) {
    return false;
  }
  const WekaStreamRequest& first = At(order.front());
  const std::span<const std::uint32_t> rest = order.subspan(1);
  if (std::any_of(rest.begin(), rest.end(), [&](std::uint32_t r) {
        return !At(r).hashes.empty() && At(r).hashes.front() == first.hashes.front();
      })) {
    return false;
  }
  constexpr std::uint64_t kShortOutput = 64;
  if (first.output_tokens <= kShortOutput) {
    return true;
  }
  const std::set<std::uint64_t> of_first(first.hashes.begin(), first.hashes.end());
  return std::none_of(rest.begin(), rest.end(), [&](std::uint32_t r) {
    const Hashes hashes = At(r).hashes;
    return std::any_of(hashes.begin(), hashes.end(),
                       [&](std::uint64_t hash) { return of_first.contains(hash); });
  });
}

// The chain with the longest last prompt that the request's prompt begins with.
std::uint32_t Splitter::ContinuedChain(std::uint32_t r) const {
  const WekaStreamRequest& request = At(r);
  std::uint32_t best = kNone;
  for (std::uint32_t c = 0; c < chains_.size(); ++c) {
    if (chains_[c].tail == kNone) {
      continue;
    }
    const WekaStreamRequest& tail = At(chains_[c].tail);
    if (tail.model == request.model && tail.end <= request.t + kWekaTolerance &&
        (best == kNone || tail.hashes.size() > At(chains_[best].tail).hashes.size()) &&
        CommonPrefix(tail.hashes, request.hashes) == tail.hashes.size()) {
      best = c;
    }
  }
  return best;
}

void Splitter::Place(std::uint32_t r) {
  if (chains_.empty()) {
    chains_.emplace_back();
  }
  if (At(r).hashes.empty()) {
    chains_.front().requests.push_back(r);
    return;
  }
  std::uint32_t chain = ContinuedChain(r);
  if (chain == kNone) {
    const bool no_hashes =
        std::all_of(chains_.begin(), chains_.end(), [](const Chain& c) { return c.tail == kNone; });
    if (!no_hashes) {
      Fork(r);
      return;
    }
    chain = 0;
  }
  chains_[chain].requests.push_back(r);
  chains_[chain].tail = r;
}

void Splitter::Fork(std::uint32_t r) {
  Chain fork{.requests = {r}, .tail = r};
  std::size_t tail_size = 0;
  for (const Chain& chain : chains_) {
    if (chain.tail == kNone) {
      continue;
    }
    const Hashes tail = At(chain.tail).hashes;
    const std::size_t depth = CommonPrefix(tail, At(r).hashes);
    if (depth > 0 && std::pair(depth, tail.size()) > std::pair(fork.fork_depth, tail_size)) {
      fork.fork_source = chain.tail;
      fork.fork_depth = depth;
      tail_size = tail.size();
    }
  }
  if (fork.fork_source != kNone) {
    open_sources_.emplace(At(fork.fork_source).id, fork.fork_source);
  }
  chains_.push_back(std::move(fork));
}

void Splitter::SpliceAll() {
  while (!open_sources_.empty()) {
    const std::uint32_t source = open_sources_.begin()->second;
    open_sources_.erase(open_sources_.begin());
    handled_[source] = true;
    for (std::uint32_t c = 0; c < chains_.size(); ++c) {
      if (!chains_[c].spliced && chains_[c].tail == source) {
        SpliceForksOf(source, c);
        break;
      }
    }
  }
}

bool Splitter::CanSplice(const Chain& fork, std::uint32_t tail) const {
  constexpr double kLongGap = 3600.0;
  constexpr double kLittleShared = 0.5;
  const WekaStreamRequest& first = First(fork);
  const WekaStreamRequest& last = At(tail);
  const double gap = first.t - last.end;
  const double shared =
      static_cast<double>(fork.fork_depth) / static_cast<double>(last.hashes.size());
  return fork.fork_depth > 0 && last.end <= first.t + kWekaTolerance && last.model == first.model &&
         !(gap > kLongGap && shared < kLittleShared);
}

void Splitter::SpliceForksOf(std::uint32_t tail, std::uint32_t owner) {
  std::uint32_t best = kNone;
  for (std::uint32_t c = 0; c < chains_.size(); ++c) {
    const Chain& fork = chains_[c];
    if (c == owner || fork.spliced || fork.fork_source != tail || !CanSplice(fork, tail)) {
      continue;
    }
    if (best == kNone || fork.fork_depth > chains_[best].fork_depth ||
        (fork.fork_depth == chains_[best].fork_depth && First(fork).t < First(chains_[best]).t)) {
      best = c;
    }
  }
  if (best == kNone) {
    return;
  }
  Chain& chosen = chains_[best];
  Chain& chain = chains_[owner];
  chosen.spliced = true;
  chain.requests.insert(chain.requests.end(), chosen.requests.begin(), chosen.requests.end());
  Sort(chain.requests);
  chain.tail = chosen.tail;
  for (Chain& fork : chains_) {
    if (fork.spliced || fork.fork_source != tail || First(fork).t < At(chain.tail).t) {
      continue;
    }
    const std::size_t depth = CommonPrefix(At(chain.tail).hashes, First(fork).hashes);
    if (depth > 0) {
      fork.fork_source = chain.tail;
      fork.fork_depth = depth;
      if (!handled_.Contains(chain.tail)) {
        open_sources_.emplace(At(chain.tail).id, chain.tail);
      }
    }
  }
}

std::vector<WekaStream> Splitter::Streams(std::uint32_t preamble) const {
  std::vector<const Chain*> chains;
  for (const Chain& chain : chains_) {
    if (!chain.spliced && !chain.requests.empty()) {
      chains.push_back(&chain);
    }
  }
  std::sort(chains.begin(), chains.end(), [this](const Chain* a, const Chain* b) {
    return Earlier(a->requests.front(), b->requests.front());
  });
  std::vector<WekaStream> streams;
  for (const Chain* chain : chains) {
    streams.push_back({.requests = chain->requests, .fork_source = chain->fork_source});
  }
  if (!streams.empty()) {
    streams.front().fork_source = kNone;
    if (preamble != kNone) {
      streams.front().requests.push_back(preamble);
      Sort(streams.front().requests);
    }
  }
  return streams;
}

}  // namespace

std::vector<WekaStream> SplitWekaStreams(std::span<const WekaStreamRequest> requests) {
  return requests.empty() ? std::vector<WekaStream>() : Splitter(requests).Split();
}

}  // namespace dynosim::workload
