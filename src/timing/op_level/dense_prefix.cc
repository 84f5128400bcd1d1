// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/dense_prefix.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/module_patterns.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {
namespace {

// True when a pattern names the module or something around it, literally.
bool Names(std::string_view pattern, std::string_view module) {
  while (pattern.ends_with('.')) {
    pattern.remove_suffix(1);
  }
  const std::string needle = "." + std::string(pattern) + ".";
  return ("." + std::string(module) + ".").find(needle) != std::string::npos;
}

// True when a pattern with wildcards matches the module, or one part of its name.
bool Matches(std::string_view pattern, std::string_view module) {
  if (MatchesGlob(pattern, module)) {
    return true;
  }
  for (std::string_view rest = module; !rest.empty();) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    if (MatchesGlob(pattern, rest.substr(0, dot))) {
      return true;
    }
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return false;
}

Result<bool> IsExcluded(const GraphInput& in, const std::vector<std::string>& patterns,
                        std::uint64_t layer, std::string_view fused,
                        std::initializer_list<std::string_view> shards) {
  const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
  std::size_t named = 0;
  for (const std::string_view shard : shards) {
    named += std::any_of(patterns.begin(), patterns.end(),
                         [&](const std::string& pattern) {
                           return !pattern.empty() && Names(pattern, mlp + std::string(shard));
                         })
                 ? 1
                 : 0;
  }
  if (named == shards.size()) {
    return true;
  }
  if (named > 0) {
    return UsageError(
        "", fmt::format("{} leaves only a part of {}{} unquantized", in.model.name, mlp, fused));
  }
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return Matches(pattern, mlp + std::string(fused));
  });
}

Result<void> CheckDense(const GraphInput& in) {
  const ModelSpec& m = in.model;
  const Json* const activation = m.text.Find("hidden_act");
  if (m.WholeOr("moe_layer_freq", 1) != 1 ||
      (activation != nullptr && activation->is_string() && activation->string() != "silu")) {
    return UsageError("", fmt::format("the dense layers of {} need moe_layer_freq 1 and hidden_act "
                                      "silu",
                                      m.name));
  }
  if (m.inter == 0 || m.inter % in.layout.tp != 0) {
    return UsageError("", fmt::format("intermediate_size {} of {} must be divisible by tp_size {}",
                                      m.inter, m.name, in.layout.tp));
  }
  return {};
}

}  // namespace

Result<std::vector<DensePrefixGroup>> FindDensePrefix(const GraphInput& in) {
  std::vector<DensePrefixGroup> groups;
  const std::uint64_t layers =
      std::min(in.model.WholeOr("first_k_dense_replace", 0), in.model.layers);
  if (in.platform.backend != "sglang" || in.layout.pp != 1 ||
      in.layout.moe.attention_dp_size != 1 || in.nextn != 0 || layers == 0) {
    return groups;
  }
  DYNO_TRY_VOID(CheckDense(in));
  const std::vector<std::string> patterns = ExclusionPatterns(in.model);
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    DYNO_TRY(const bool gate_up,
             IsExcluded(in, patterns, layer, "gate_up_proj", {"gate_proj", "up_proj"}));
    DYNO_TRY(const bool down, IsExcluded(in, patterns, layer, "down_proj", {"down_proj"}));
    const DensePrefixGroup group{.gate_up_mode = gate_up ? "bfloat16" : in.modes.gemm,
                                 .down_mode = down ? "bfloat16" : in.modes.gemm,
                                 .layers = 1};
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const DensePrefixGroup& g) {
      return g.gate_up_mode == group.gate_up_mode && g.down_mode == group.down_mode;
    });
    if (same == groups.end()) {
      groups.push_back(group);
    } else {
      ++same->layers;
    }
  }
  return groups;
}

}  // namespace dynosim::timing
