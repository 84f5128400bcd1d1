// SPDX-License-Identifier: Apache-2.0
// Data types of a deployment: what the user asks for, else what the checkpoint says, else bfloat16.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::timing {

// Modes that the user sets; the others are inferred.
struct ModeChoice {
  std::optional<std::string> gemm, moe, fmha, kv, comm;
};

struct QuantModes {
  std::string gemm = "bfloat16";
  std::string moe = "bfloat16";
  std::string fmha = "bfloat16";
  std::string kv = "bfloat16";
  // What the user set; families refine only inferred modes.
  bool gemm_set = false;
  bool moe_set = false;
};

// Where the deployment runs, as far as data types depend on it.
struct Platform {
  std::string backend;
  std::string version;
  std::uint64_t sm_version = 0;
  std::string attention_backend;  // empty: the backend's own choice
};

// Errors name the mode and what is allowed.
Result<QuantModes> FindQuantModes(const ModelSpec& model, const ModeChoice& choice,
                                  const Platform& platform);

// Patterns of modules that the checkpoint leaves unquantized, of both its files.
std::vector<std::string> ExclusionPatterns(const ModelSpec& model);
// Side length of the blocks of a block-quantized checkpoint.
std::uint64_t WeightBlock(const ModelSpec& model);
// The quantization section of config.json: of the outer file, else of its language part; or null.
const Json* QuantizationConfig(const ModelSpec& model);
// The section of hf_quant_config.json, or null.
const Json* ExternalQuantization(const ModelSpec& model);
// True for the name of a module that belongs to the routed experts.
bool IsRoutedExpert(std::string_view lower_case_name);
// "quant_algo" of an entry of quantized_layers, in lower case and with one spelling per type.
std::string LayerAlgorithm(const Json& layer);

}  // namespace dynosim::timing
