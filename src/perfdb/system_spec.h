// SPDX-License-Identifier: Apache-2.0
// SystemSpec: the hardware of one system as its description file gives it: bandwidths in bytes per
// second, capacities in bytes, arithmetic in operations per second, times in seconds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace dynosim::perfdb {

// Kinds of arithmetic a system may have tensor units for.
enum class Precision { kBfloat16, kInt8, kFp8, kFp4 };
inline constexpr std::size_t kPrecisions = 4;

struct SystemSpec {
  std::string name;
  double mem_bw = 0.0;
  double mem_bw_scale = 1.0;    // what of it elementwise kernels reach
  double mem_constant_s = 0.0;  // added to each of their launches
  std::uint64_t mem_capacity = 0;
  std::array<std::optional<double>, kPrecisions> flops;
  std::uint64_t sm_version = 0;
  std::uint64_t gpus_per_node = 1;
  std::optional<std::uint64_t> gpus_per_rack;
  double intra_node_bw = 0.0;  // per GPU, one direction; the next two as well
  double inter_node_bw = 0.0;
  std::optional<double> inter_rack_bw;
  double p2p_latency_s = 0.0;
  std::array<std::uint64_t, 4> nccl_mem{};  // bytes by 1, 2, 4, 8 ranks
  std::uint64_t other_mem = 0;

  // Decodes the object `spec` of a pack header.
  static Result<SystemSpec> FromJson(const Json& json, std::string name, const std::string& where);

  // Bandwidth between ranks of a group of `gpus`.
  double GroupBandwidth(std::uint64_t gpus) const;
  // Time in ms of an elementwise kernel that moves so many bytes.
  double MoveMs(double bytes) const {
    return (bytes / (mem_bw * mem_bw_scale) + mem_constant_s) * 1000.0;
  }
};

// "bfloat16_tc_flops", ...
std::string_view FlopsField(Precision precision);

}  // namespace dynosim::perfdb
