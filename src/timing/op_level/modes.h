// SPDX-License-Identifier: Apache-2.0
// Quantization modes: how many bytes one element takes, and which arithmetic it uses.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "perfdb/system_spec.h"

namespace dynosim::timing {

struct Mode {
  std::string_view name;
  double bytes = 0.0;
  perfdb::Precision arithmetic = perfdb::Precision::kBfloat16;
  // What the mode may be used for.
  bool gemm = false;
  bool moe = false;
  bool attention = false;
};

inline constexpr std::array kModes = {
    Mode{"bfloat16", 2.0, perfdb::Precision::kBfloat16, true, true, true},
    Mode{"int8_wo", 1.0, perfdb::Precision::kBfloat16, true, false, false},
    Mode{"int4_wo", 0.5, perfdb::Precision::kBfloat16, true, true, false},
    Mode{"fp8", 1.0, perfdb::Precision::kFp8, true, true, true},
    Mode{"fp8_static", 1.0, perfdb::Precision::kFp8, true, false, false},
    Mode{"fp8_block", 1.0, perfdb::Precision::kFp8, true, true, true},
    Mode{"fp8_ootb", 1.0, perfdb::Precision::kFp8, true, false, false},
    Mode{"sq", 1.0, perfdb::Precision::kInt8, true, false, false},
    Mode{"nvfp4", 9.0 / 16.0, perfdb::Precision::kFp4, true, true, false},
    Mode{"nvfp4_wo", 9.0 / 16.0, perfdb::Precision::kBfloat16, true, true, false},
    Mode{"w4a16_nvfp4", 9.0 / 16.0, perfdb::Precision::kBfloat16, true, true, false},
    Mode{"w4afp8", 0.5, perfdb::Precision::kFp8, false, true, false},
    Mode{"w4a8_mxfp4_mxfp8", 0.5, perfdb::Precision::kFp8, false, true, false},
    Mode{"w4a8_mxfp4_mxfp8_trtllm", 0.5, perfdb::Precision::kFp8, false, true, false},
    Mode{"w4a16_mxfp4", 0.5, perfdb::Precision::kBfloat16, false, true, false},
    Mode{"w4a16_mxfp4_cutlass", 0.5, perfdb::Precision::kBfloat16, false, true, false},
    Mode{"w4a16_mxfp4_humming", 0.5, perfdb::Precision::kBfloat16, false, true, false},
};

// nullptr for a name that is no mode.
constexpr const Mode* FindMode(std::string_view name) {
  for (const Mode& mode : kModes) {
    if (mode.name == name) {
      return &mode;
    }
  }
  return nullptr;
}
// Bytes per element of a mode, or of a KV cache type (bfloat16, int8, fp8); 2 for any other name.
constexpr double BytesOf(std::string_view name) {
  if (name == "int8") {
    return 1.0;
  }
  const Mode* const mode = FindMode(name);
  return mode == nullptr ? 2.0 : mode->bytes;
}

}  // namespace dynosim::timing
