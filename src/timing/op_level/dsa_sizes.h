// SPDX-License-Identifier: Apache-2.0
// Sizes inside of a DeepSeek sparse attention module, by architecture.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynosim::timing {

struct DsaSizes {
  std::uint64_t hidden, q_lora, kv_lora, nope, rope, value, top_k, index_dim, index_heads;
};

constexpr DsaSizes DsaSizesOf(std::string_view architecture) {
  constexpr DsaSizes kDeepSeekV32 = {7168, 1536, 512, 128, 64, 128, 2048, 128, 64};
  constexpr DsaSizes kGlm = {6144, 2048, 512, 192, 64, 256, 2048, 128, 32};
  return architecture == "GlmMoeDsaForCausalLM" ? kGlm : kDeepSeekV32;
}

}  // namespace dynosim::timing
