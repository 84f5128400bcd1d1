// SPDX-License-Identifier: Apache-2.0
// How long the handoff of a prompt's KV blocks from a prefill worker to a decode worker takes.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/settings.h"

namespace dynosim::engine {

// What a handoff costs, as the prefill engine has it.
struct TransferTerms {
  std::optional<std::uint64_t> bytes_per_token{};
  std::optional<double> bandwidth_gbps{};  // decimal GB/s
  TransferTiming timing = TransferTiming::kFullPrompt;
};

inline TransferTerms TermsOf(const EngineSettings& prefill) {
  return {.bytes_per_token = prefill.kv_transfer_bytes_per_token,
          .bandwidth_gbps = prefill.kv_transfer_bandwidth_gbps,
          .timing = prefill.kv_transfer_timing};
}

// In ms; 0 where bytes per token or bandwidth are not given. Chapter 30, section 6.3: the prefill
// engine's values count, evaluated left to right; `fresh_blocks` are those of the decode engine
// that its cache does not hold.
inline double TransferMs(const TransferTerms& terms, std::uint64_t decode_block_size,
                         std::uint64_t prompt_tokens, std::uint64_t fresh_blocks) {
  if (!terms.bytes_per_token || terms.bandwidth_gbps.value_or(0.0) == 0.0) {
    return 0.0;
  }
  const std::uint64_t tokens = terms.timing == TransferTiming::kFullPrompt
                                   ? prompt_tokens
                                   : fresh_blocks * decode_block_size;
  return static_cast<double>(tokens) * static_cast<double>(*terms.bytes_per_token) /
         (*terms.bandwidth_gbps * 1e9) * 1000.0;
}

inline double TransferMs(const EngineSettings& prefill, const EngineSettings& decode,
                         std::uint64_t prompt_tokens, std::uint64_t fresh_blocks) {
  return TransferMs(TermsOf(prefill), decode.block_size, prompt_tokens, fresh_blocks);
}

}  // namespace dynosim::engine
