// SPDX-License-Identifier: Apache-2.0
// SyntheticList: `count` unrelated requests of equal lengths, released at the times of an arrival
// process divided by the speedup, or `cap` at a time. Nothing is stored per request: arrivals are
// drawn as they are needed, and a request's blocks are one private extent.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/arrivals.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::workload {

struct SyntheticListSettings {
  std::uint32_t count = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::optional<std::uint64_t> cap =
      std::nullopt;  // closed loop; the arrival process is not used then
  double speedup = 1.0;
};

class SyntheticList final : public RequestSource {
 public:
  SyntheticList(const SyntheticListSettings& settings, ArrivalProcess arrivals)
      : settings_(settings), arrivals_(arrivals) {}

  std::optional<double> NextReadyMs() const override;
  bool Exhausted() const override { return released_ == settings_.count; }
  bool Release(double now_ms, Request& out) override;
  void OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                  std::uint64_t emitted_tokens) override;
  void Blocks(std::uint32_t id, std::uint64_t block_size,
              std::vector<BlockExtent>& out) const override;
  std::uint32_t RequestCount() const override { return settings_.count; }
  bool SharesGeneratedBlocks() const override { return false; }
  bool InOrder() const override { return true; }
  std::string SessionName(std::uint32_t session) const override;
  std::string_view PolicyClassName(std::uint32_t policy_class) const override;
  void PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const override;
  std::uint32_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const override;

 private:
  SyntheticListSettings settings_;
  ArrivalProcess arrivals_;
  std::uint32_t released_ = 0;
  std::uint32_t in_flight_ = 0;
};

}  // namespace dynosim::workload
