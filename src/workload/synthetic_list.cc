// SPDX-License-Identifier: Apache-2.0
#include "workload/synthetic_list.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "workload/request.h"

namespace dynosim::workload {
namespace {

// Token j of request i: a mix of both, so that two prompts share nothing.
std::uint32_t PromptToken(std::uint64_t i, std::uint64_t j) {
  std::uint64_t v = ((i << 32) ^ j) + 0x9E3779B97F4A7C15U;
  v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9U;
  v = (v ^ (v >> 27)) * 0x94D049BB133111EBU;
  v ^= v >> 31;
  const auto token = static_cast<std::uint32_t>(v);
  return token == 0 ? 1 : token;
}

}  // namespace

std::optional<double> SyntheticList::NextReadyMs() const {
  if (Exhausted()) {
    return std::nullopt;
  }
  if (settings_.cap) {
    return in_flight_ < *settings_.cap ? std::optional(-std::numeric_limits<double>::infinity())
                                       : std::nullopt;
  }
  return WithinTime(arrivals_.NextMs() / settings_.speedup);
}

bool SyntheticList::Release(double now_ms, Request& out) {
  const std::optional<double> ready_ms = NextReadyMs();
  if (!ready_ms || *ready_ms > now_ms) {
    return false;
  }
  out = Request{.id = released_,
                .arrival_ms = settings_.cap ? now_ms : *ready_ms,
                .prompt_tokens = settings_.input_tokens,
                .output_tokens = settings_.output_tokens};
  ++released_;
  ++in_flight_;
  if (!settings_.cap) {
    arrivals_.Advance();
  }
  return true;
}

void SyntheticList::OnTerminal(std::uint32_t /*id*/, double /*now_ms*/, TerminalStatus /*status*/,
                               std::uint64_t /*emitted_tokens*/) {
  --in_flight_;
}

void SyntheticList::Blocks(std::uint32_t id, std::uint64_t /*block_size*/,
                           std::vector<BlockExtent>& out) const {
  out.assign(1, {id, 0, kEndless});
}

std::string SyntheticList::SessionName(std::uint32_t /*session*/) const { return {}; }
std::string_view SyntheticList::PolicyClassName(std::uint32_t /*policy_class*/) const { return {}; }

void SyntheticList::PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const {
  out.resize(settings_.input_tokens);
  for (std::size_t j = 0; j < out.size(); ++j) {
    out[j] = PromptToken(id, j);
  }
}

std::uint32_t SyntheticList::OutputToken(std::uint32_t id, std::uint64_t ordinal) const {
  return GeneratedToken(std::uint64_t{id} + 1, ordinal);
}

}  // namespace dynosim::workload
