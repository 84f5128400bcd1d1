// SPDX-License-Identifier: Apache-2.0
#include "workload/block_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "workload/extents.h"
#include "workload/request.h"

namespace dynosim::workload {
namespace {

// Values up to this much beyond the number of nodes index an array instead of a hash table.
constexpr std::size_t kDenseSlack = 1 << 16;
// Stands for the node of a value that the array does not hold; no node has this number.
constexpr std::uint32_t kOther = kNone - 1;

std::size_t GrownSize(std::size_t wanted, std::size_t current) {
  return std::max({wanted + 1, current * 2, std::size_t{1024}});
}

}  // namespace

// Two functions of the inner loop of loading a trace.
[[gnu::always_inline]] inline std::uint32_t BlockNames::NewNode(Sequence sequence,
                                                                std::uint32_t value) {
  DYNO_CHECK(nodes_.size() < kOther);
  nodes_.push_back({.start = sequence.tokens, .parent = sequence.node, .value = value});
  return size() - 1;
}

[[gnu::always_inline]] inline std::uint32_t BlockNames::NextNode(Sequence sequence,
                                                                 std::uint32_t value) {
  const std::uint32_t node = sequence.node;
  if (node != kNone && !IsPrivate(node) && nodes_[node].value == value) {
    return node;
  }
  if (value < first_node_.size()) {
    const std::uint32_t first = first_node_[value];
    if (first != kNone && nodes_[first].parent == node && nodes_[first].start == sequence.tokens) {
      return first;
    }
  }
  return OtherChild(sequence, value);
}

BlockNames::Sequence BlockNames::Append(Sequence sequence, std::uint32_t value,
                                        std::uint64_t count) {
  return count == 0
             ? sequence
             : Sequence{.node = NextNode(sequence, value), .tokens = sequence.tokens + count};
}

BlockNames::Sequence BlockNames::AppendRuns(Sequence sequence,
                                            std::span<const std::uint32_t> values,
                                            std::uint64_t run_length, std::uint64_t count) {
  if (count == 0 || run_length == 0) {
    return sequence;
  }
  const std::uint64_t runs = count / run_length + (count % run_length == 0 ? 0 : 1);
  const std::uint64_t end = sequence.tokens + count;
  std::span<std::uint32_t> first_node(first_node_);
  for (const std::uint32_t value : values.first(std::min<std::uint64_t>(values.size(), runs))) {
    const std::uint32_t first = value < first_node.size() ? first_node[value] : kOther;
    if (first == kNone) {  // the common case: a value without a node, which continues no run
      sequence.node = first_node[value] = NewNode(sequence, value);
    } else if (first != kOther && nodes_[first].parent == sequence.node &&
               nodes_[first].start == sequence.tokens) {
      sequence.node = first;
    } else {
      sequence.node = NextNode(sequence, value);
      first_node = first_node_;
    }
    sequence.tokens += run_length;
  }
  sequence.tokens = std::min(sequence.tokens, end);  // the last run may be cut
  return sequence;
}

BlockNames::Sequence BlockNames::AppendPrivate(Sequence sequence, std::uint32_t owner,
                                               std::uint64_t count) {
  DYNO_CHECK(IsPrivate(owner));
  if (count == 0) {
    return sequence;
  }
  nodes_[owner] = {.start = sequence.tokens, .parent = sequence.node, .value = 0};
  return {.node = owner, .tokens = sequence.tokens + count};
}

std::uint32_t BlockNames::OtherChild(Sequence sequence, std::uint32_t value) {
  if (value >= first_node_.size() && !sparse_) {
    if (value < nodes_.size() + kDenseSlack) {
      first_node_.resize(GrownSize(value, first_node_.size()), kNone);
    } else {
      sparse_ = true;
    }
  }
  if (value < first_node_.size() && first_node_[value] == kNone) {
    return first_node_[value] = NewNode(sequence, value);
  }
  const auto [node, is_new] =
      other_nodes_.TryInsert(Key{sequence.node, value, sequence.tokens}, size());
  return is_new ? NewNode(sequence, value) : *node;
}

void BlockNames::Extents(Sequence sequence, std::uint64_t block_size,
                         std::vector<BlockExtent>& out) const {
  AppendExtents(nodes_, sequence.node, sequence.tokens, block_size, out);
}

void BlockNames::Tokens(Sequence sequence, std::vector<std::uint32_t>& out) const {
  const std::size_t first = out.size();
  out.resize(first + sequence.tokens);
  const std::span<std::uint32_t> tokens(out.data() + first, sequence.tokens);
  std::uint64_t end = sequence.tokens;
  for (std::uint32_t node = sequence.node; node != kNone; node = nodes_[node].parent) {
    const std::uint64_t start = nodes_[node].start;
    const std::span<std::uint32_t> run = tokens.subspan(start, end - start);
    if (IsPrivate(node)) {
      for (std::size_t i = 0; i < run.size(); ++i) {
        run[i] = GeneratedToken(std::uint64_t{node} + 1, i);
      }
    } else {
      std::fill(run.begin(), run.end(), nodes_[node].value);
    }
    end = start;
  }
}

bool IdNumbers::Number(std::span<const std::uint64_t> ids, std::span<std::uint32_t> out) {
  std::size_t i = 0;
  if (in_order_) {
    std::uint32_t count = count_;
    for (; i < ids.size() && ids[i] <= count && count < kNone - 1; ++i) {
      count += ids[i] == count ? 1 : 0;
      out[i] = static_cast<std::uint32_t>(ids[i]);
    }
    count_ = count;
  }
  for (; i < ids.size(); ++i) {
    out[i] = NumberOfOther(ids[i]);
    if (out[i] == kNone) {
      return false;
    }
  }
  return true;
}

std::uint32_t IdNumbers::NumberOfOther(std::uint64_t id) {
  if (in_order_) {
    in_order_ = false;
    small_.resize(count_);
    std::iota(small_.begin(), small_.end(), 0U);
  }
  if (id < small_.size() && small_[id] != kNone) {
    return small_[id];
  }
  if (!large_.empty()) {
    if (const std::uint32_t* known = large_.Find(id)) {
      return *known;
    }
  }
  if (count_ == kNone - 1) {
    return kNone;
  }
  if (id >= small_.size() && id < std::uint64_t{count_} * 2 + kDenseSlack) {
    small_.resize(GrownSize(id, small_.size()), kNone);
  }
  if (id < small_.size()) {
    small_[id] = count_;
  } else {
    large_.TryInsert(id, count_);
  }
  return count_++;
}

}  // namespace dynosim::workload
