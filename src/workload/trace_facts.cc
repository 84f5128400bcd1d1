// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_facts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "base/flat_map.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::workload {
namespace {

// Nearest rank. Sorts the values.
LengthFacts Describe(std::vector<std::uint64_t>& values) {
  LengthFacts facts;
  if (values.empty()) {
    return facts;
  }
  std::sort(values.begin(), values.end());
  facts.total = std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  facts.min = values.front();
  facts.median = values[values.size() / 2];
  facts.p99 = values[(values.size() - 1) * 99 / 100];
  facts.max = values.back();
  facts.mean = static_cast<double>(facts.total) / static_cast<double>(values.size());
  return facts;
}

// All blocks that were ever asked for.
class EndlessCache {
 public:
  // Number of leading blocks that are there; puts all of them in.
  std::uint64_t Add(const std::vector<BlockExtent>& extents, std::uint64_t prompt_blocks) {
    std::uint64_t hits = 0;
    std::uint64_t left = prompt_blocks;
    bool hit = true;
    for (const BlockExtent& extent : extents) {
      const std::uint64_t end =
          std::uint64_t{extent.first} + std::min<std::uint64_t>(extent.count, left);
      std::uint64_t& held = held_[extent.group];
      if (hit && left > 0) {
        const std::uint64_t shared = std::min(std::max<std::uint64_t>(held, extent.first), end);
        hits += shared - extent.first;
        hit = shared == end;
      }
      if (end > held) {
        distinct_ += end - held;
      }
      // Generated blocks are held too.
      held = std::max(held, std::uint64_t{extent.first} + extent.count);
      left -= std::min<std::uint64_t>(extent.count, left);
    }
    return hits;
  }
  std::uint64_t distinct() const { return distinct_; }

 private:
  FlatMap<std::uint32_t, std::uint64_t> held_;  // by group: blocks from its first
  std::uint64_t distinct_ = 0;
};

void CountArrivals(const std::vector<double>& arrivals_ms, TraceFacts& facts) {
  if (!(facts.last_arrival_ms > 0.0)) {
    facts.arrivals[0] = arrivals_ms.size();
    return;
  }
  for (const double at_ms : arrivals_ms) {
    const double window = at_ms / facts.last_arrival_ms * static_cast<double>(kRateWindows);
    ++facts.arrivals[std::min(static_cast<std::size_t>(window), kRateWindows - 1)];
  }
}

}  // namespace

TraceFacts FindTraceFacts(RequestSource& source, std::uint64_t block_size) {
  TraceFacts facts{.block_size = block_size};
  std::vector<std::uint64_t> inputs;
  std::vector<std::uint64_t> outputs;
  std::vector<double> arrivals_ms;
  std::vector<BlockExtent> extents;
  EndlessCache cache;
  Request request;
  double now_ms = 0.0;
  while (const std::optional<double> next_ms = source.NextReadyMs()) {
    now_ms = std::max(now_ms, *next_ms);
    while (source.Release(now_ms, request)) {
      inputs.push_back(request.prompt_tokens);
      outputs.push_back(request.output_tokens);
      arrivals_ms.push_back(now_ms);
      source.Blocks(request.id, block_size, extents);
      facts.reusable_tokens += cache.Add(extents, request.prompt_tokens / block_size) * block_size;
      source.OnTerminal(request.id, now_ms, TerminalStatus::kCompleted, request.output_tokens);
    }
  }
  facts.requests = inputs.size();
  facts.input = Describe(inputs);
  facts.output = Describe(outputs);
  facts.last_arrival_ms = now_ms;
  facts.distinct_blocks = cache.distinct();
  CountArrivals(arrivals_ms, facts);
  return facts;
}

}  // namespace dynosim::workload
