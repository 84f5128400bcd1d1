// SPDX-License-Identifier: Apache-2.0
#include "perfdb/system_spec.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/numeric.h"
#include "base/result.h"

namespace dynosim::perfdb {
namespace {

constexpr std::array<std::string_view, kPrecisions> kFlopsFields = {
    "bfloat16_tc_flops", "int8_tc_flops", "fp8_tc_flops", "fp4_tc_flops"};

// Numbers of one section; the first that is missing or no number is remembered.
class Section {
 public:
  Section(const Json& spec, std::string_view name, std::string& problem)
      : section_(spec.Find(name)), name_(name), problem_(problem) {}

  std::optional<double> Maybe(std::string_view field) const {
    const Json* const value = section_ == nullptr ? nullptr : section_->Find(field);
    if (value == nullptr || !value->is_number() || !std::isfinite(value->number())) {
      return std::nullopt;
    }
    return value->number();
  }
  double Need(std::string_view field) const {
    const auto value = Maybe(field);
    if ((!value || *value < 0.0) && problem_.empty()) {
      problem_ = std::string(name_) + "." + std::string(field);
    }
    return value.value_or(0.0);
  }
  std::uint64_t NeedWhole(std::string_view field) const {
    return SaturatingCast<std::uint64_t>(Need(field));
  }
  const Json* Find(std::string_view field) const {
    return section_ == nullptr ? nullptr : section_->Find(field);
  }

 private:
  const Json* section_;
  std::string_view name_;
  std::string& problem_;
};

}  // namespace

std::string_view FlopsField(Precision precision) {
  return kFlopsFields[static_cast<std::size_t>(precision)];
}

Result<SystemSpec> SystemSpec::FromJson(const Json& json, std::string name,
                                        const std::string& where) {
  std::string problem;
  const Section gpu(json, "gpu", problem);
  const Section node(json, "node", problem);
  const Section misc(json, "misc", problem);
  SystemSpec spec;
  spec.name = std::move(name);
  spec.mem_bw = gpu.Need("mem_bw");
  spec.mem_bw_scale = gpu.Maybe("mem_bw_empirical_scaling_factor").value_or(1.0);
  spec.mem_constant_s = gpu.Maybe("mem_empirical_constant_latency").value_or(0.0);
  spec.mem_capacity = gpu.NeedWhole("mem_capacity");
  for (std::size_t i = 0; i < kPrecisions; ++i) {
    spec.flops[i] = gpu.Maybe(kFlopsFields[i]);
    if (spec.flops[i] && !(*spec.flops[i] > 0.0)) {
      spec.flops[i].reset();
    }
  }
  spec.sm_version = SaturatingCast<std::uint64_t>(gpu.Maybe("sm_version").value_or(0.0));
  spec.gpus_per_node = node.NeedWhole("num_gpus_per_node");
  spec.intra_node_bw = node.Need("intra_node_bw");
  spec.inter_node_bw = node.Need("inter_node_bw");
  if (const auto rack = node.Maybe("num_gpus_per_rack")) {
    spec.gpus_per_rack = SaturatingCast<std::uint64_t>(*rack);
  }
  spec.inter_rack_bw = node.Maybe("inter_rack_bw");
  spec.p2p_latency_s = node.Need("p2p_latency");
  spec.other_mem = misc.NeedWhole("other_mem");
  if (const Json* const nccl = misc.Find("nccl_mem"); nccl != nullptr && nccl->is_object()) {
    constexpr std::array<std::string_view, 4> kRanks = {"1", "2", "4", "8"};
    for (std::size_t i = 0; i < kRanks.size(); ++i) {
      const Json* const bytes = nccl->Find(kRanks[i]);
      spec.nccl_mem[i] = bytes != nullptr && bytes->is_number()
                             ? SaturatingCast<std::uint64_t>(bytes->number())
                             : 0;
    }
  }
  if (!problem.empty()) {
    return FailedError(where, "the system description lacks a number for " + problem);
  }
  return spec;
}

double SystemSpec::GroupBandwidth(std::uint64_t gpus) const {
  if (gpus <= gpus_per_node) {
    return intra_node_bw;
  }
  if (!gpus_per_rack || gpus <= *gpus_per_rack) {
    return inter_node_bw;
  }
  return inter_rack_bw.value_or(inter_node_bw);
}

}  // namespace dynosim::perfdb
