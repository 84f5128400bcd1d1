// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/quantization.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/modes.h"

namespace dynosim::timing {
namespace {

constexpr std::uint64_t kUsualBlock = 128;

// The first non-empty text of some members, in lower case.
std::string FirstText(const Json* object, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const Json* const value = object == nullptr ? nullptr : object->Find(name);
    if (value != nullptr && value->is_string() && !value->string().empty()) {
      return LowerCase(value->string());
    }
  }
  return "";
}

std::string QuantAlgorithm(const ModelSpec& model) {
  std::string algo = FirstText(ExternalQuantization(model), {"quant_algo"});
  if (algo.empty()) {
    algo =
        FirstText(QuantizationConfig(model), {"quant_algo", "quant_method", "quantization_method"});
  }
  if (algo == "w4a16_mxfp4") {
    return "mxfp4";
  }
  if (algo == "mixed-precision" || algo == "mixedprecision") {
    return "mixed_precision";
  }
  return algo;
}

bool HasBlocks(const ModelSpec& model) {
  const Json* const config = QuantizationConfig(model);
  const Json* const block = config == nullptr ? nullptr : config->Find("weight_block_size");
  return block != nullptr && block->is_array() && !block->array().empty();
}

// Members of config_groups, whatever they are called.
std::vector<const Json*> Groups(const ModelSpec& model) {
  std::vector<const Json*> groups;
  const Json* const config = QuantizationConfig(model);
  const Json* const all = config == nullptr ? nullptr : config->Find("config_groups");
  if (all != nullptr && all->is_object()) {
    for (const Json::Member& member : all->object()) {
      groups.push_back(&member.second);
    }
  }
  return groups;
}

bool IsDynamic(const ModelSpec& model) {
  const std::string scheme = FirstText(QuantizationConfig(model), {"activation_scheme"});
  if (!scheme.empty()) {
    return scheme == "dynamic";
  }
  for (const Json* const group : Groups(model)) {
    for (const std::string_view part : {"input_activations", "weights"}) {
      const Json* const settings = group->Find(part);
      const Json* const dynamic = settings == nullptr ? nullptr : settings->Find("dynamic");
      if (dynamic != nullptr && dynamic->is_bool() && dynamic->boolean()) {
        return true;
      }
    }
  }
  return false;
}

// "fp8", "bfloat16", "none", or empty when the checkpoint does not say.
std::string KvAlgorithm(const ModelSpec& model) {
  std::string algo = FirstText(ExternalQuantization(model), {"kv_cache_quant_algo"});
  const Json* const config = QuantizationConfig(model);
  if (algo.empty()) {
    algo = FirstText(config, {"kv_cache_quant_algo", "kv_cache_quant_method", "kv_cache_dtype"});
  }
  const Json* const scheme = config == nullptr ? nullptr : config->Find("kv_cache_scheme");
  if (algo.empty() && scheme != nullptr && scheme->is_string()) {
    algo = LowerCase(scheme->string());
  }
  if (algo.empty() && scheme != nullptr && scheme->is_object()) {
    const std::string type = FirstText(scheme, {"type"});
    const std::uint64_t bits = WholeNumber(scheme->Find("num_bits")).value_or(0);
    if (type.find("fp8") != std::string::npos || (type == "float" && bits > 0 && bits <= 8)) {
      return "fp8";
    }
    return type == "float" && bits >= 16 ? "bfloat16" : "";
  }
  for (const std::string_view fp8 : {"fp8", "e4m3", "e5m2"}) {
    if (algo.find(fp8) != std::string::npos) {
      return "fp8";
    }
  }
  return algo == "fp16" || algo == "bf16" || algo == "float16" ? "bfloat16" : algo;
}

struct Inferred {
  std::optional<std::string> gemm, moe;
};

// Each layer has its own type; the set of types decides.
Inferred FromLayers(const ModelSpec& model) {
  std::set<std::string> all, routed;
  for (const Json* const section : {ExternalQuantization(model), QuantizationConfig(model)}) {
    const Json* const layers = section == nullptr ? nullptr : section->Find("quantized_layers");
    if (layers == nullptr || !layers->is_object()) {
      continue;
    }
    for (const Json::Member& layer : layers->object()) {
      const std::string algo = LayerAlgorithm(layer.second);
      all.insert(algo);
      if (IsRoutedExpert(LowerCase(layer.first))) {
        routed.insert(algo);
      }
    }
  }
  Inferred out;
  const std::string base = FirstText(QuantizationConfig(model), {"quant_method"});
  const std::string plain = IsDynamic(model) ? "fp8" : "fp8_static";
  if (base == "fp8") {
    out.gemm = HasBlocks(model) ? "fp8_block" : plain;
  } else if (all.contains("mxfp8")) {
    out.gemm = "fp8_block";
  } else if (all.contains("fp8")) {
    out.gemm = plain;
  } else if (all.contains("w4a16_nvfp4")) {
    out.gemm = "w4a16_nvfp4";
  } else if (all.contains("nvfp4")) {
    out.gemm = "nvfp4";
  }
  if (routed.contains("w4a16_nvfp4")) {
    out.moe = "w4a16_nvfp4";
  } else if (routed.contains("nvfp4")) {
    out.moe = "nvfp4";
  } else if (routed.contains("mxfp8")) {
    out.moe = "fp8_block";
  } else if (routed.contains("fp8")) {
    out.moe = "fp8";
  }
  return out;
}

// The first group of a compressed-tensors checkpoint; modules that it ignores stay as they are.
Inferred FromCompressedTensors(const ModelSpec& model) {
  const std::vector<const Json*> groups = Groups(model);
  const Json* const weights = groups.empty() ? nullptr : groups.front()->Find("weights");
  if (weights == nullptr || !weights->is_object()) {
    return {};
  }
  const std::string type = FirstText(weights, {"type"});
  const std::uint64_t bits = WholeNumber(weights->Find("num_bits")).value_or(0);
  std::optional<std::string> mode;
  if (type == "int" && bits == 4) {
    mode = "int4_wo";
  } else if (type == "int" && bits == 8) {
    mode = "int8_wo";
  } else if (type == "float" && bits == 8) {
    mode = FirstText(weights, {"strategy"}) == "block" ? "fp8_block" : "fp8";
  } else if (type == "float" && bits == 4) {
    mode = "w4a16_mxfp4";
  }
  Inferred out{.gemm = mode, .moe = mode};
  for (const std::string& pattern : ExclusionPatterns(model)) {
    const std::string name = LowerCase(pattern);
    for (const std::string_view projection : {"self_attn", "q_proj", "q_a_proj", "q_b_proj"}) {
      if (name.find(projection) != std::string::npos) {
        out.gemm.reset();
      }
    }
    if (IsRoutedExpert(name)) {
      out.moe.reset();
    }
  }
  return out;
}

Result<Inferred> FromAlgorithm(const ModelSpec& model, const std::string& algo) {
  if (algo.empty() || algo == "none") {
    return Inferred{};
  }
  if (algo == "fp8") {
    return HasBlocks(model)
               ? Inferred{.gemm = "fp8_block", .moe = "fp8_block"}
               : Inferred{.gemm = IsDynamic(model) ? "fp8" : "fp8_static", .moe = "fp8"};
  }
  if (algo == "fp8_block" || algo == "nvfp4") {
    return Inferred{.gemm = algo, .moe = algo};
  }
  if (algo == "mxfp4") {
    return Inferred{.gemm = {}, .moe = "w4a16_mxfp4"};
  }
  if (algo == "compressed-tensors") {
    return FromCompressedTensors(model);
  }
  if (algo == "mixed_precision") {
    return FromLayers(model);
  }
  return UsageError("", fmt::format("the quantization '{}' of {} is not supported; known are fp8, "
                                    "fp8_block, nvfp4, mxfp4, compressed-tensors and "
                                    "mixed_precision",
                                    algo, model.name));
}

// Checks one mode that the user set.
Result<void> CheckMode(const std::optional<std::string>& mode, std::string_view name,
                       bool Mode::* use) {
  if (!mode) {
    return {};
  }
  const Mode* const known = FindMode(*mode);
  if (known != nullptr && known->*use) {
    return {};
  }
  std::string allowed;
  for (const Mode& candidate : kModes) {
    if (candidate.*use) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(candidate.name);
    }
  }
  return UsageError(std::string(name),
                    fmt::format("must be one of {}, got \"{}\"", allowed, *mode));
}

Result<void> CheckChoice(const ModeChoice& choice) {
  DYNO_TRY_VOID(CheckMode(choice.gemm, "gemm_quant_mode", &Mode::gemm));
  DYNO_TRY_VOID(CheckMode(choice.moe, "moe_quant_mode", &Mode::moe));
  DYNO_TRY_VOID(CheckMode(choice.fmha, "fmha_quant_mode", &Mode::attention));
  if (choice.kv && *choice.kv != "bfloat16" && *choice.kv != "int8" && *choice.kv != "fp8") {
    return UsageError("kvcache_quant_mode",
                      fmt::format("must be one of bfloat16, int8, fp8, got \"{}\"", *choice.kv));
  }
  if (choice.comm && *choice.comm != "half") {
    return UsageError("comm_quant_mode",
                      fmt::format("only half is supported, got \"{}\"", *choice.comm));
  }
  return {};
}

// True when the attention of an FP8 checkpoint runs in bfloat16 on this platform.
bool KeepsAttentionWide(const ModelSpec& model, const Platform& platform) {
  if (platform.backend == "vllm" || model.family == Family::kDeepSeekV32 ||
      model.family == Family::kDeepSeekV4) {
    return true;
  }
  const auto dtype = FirstText(&model.root, {"torch_dtype", "dtype"});
  const bool plain = platform.attention_backend.empty() || platform.attention_backend == "fa3";
  return platform.backend == "sglang" && platform.version == "0.5.14" &&
         platform.sm_version == 90 && model.architecture == "DeepseekV3ForCausalLM" &&
         model.WholeOr("kv_lora_rank", 0) == 512 && model.WholeOr("qk_rope_head_dim", 0) == 64 &&
         (dtype.empty() || dtype == "bfloat16") && plain;
}

// Expert types that a family fixes beyond what the checkpoint says.
void RefineExperts(const ModelSpec& model, const Platform& platform, QuantModes& modes) {
  if (model.family == Family::kNemotronH && platform.backend == "vllm" &&
      modes.moe == "w4a16_nvfp4") {
    modes.moe = "nvfp4";
  }
  if (model.family == Family::kKimiK3 && platform.backend == "sglang" &&
      platform.sm_version >= 100 && model.name == "moonshotai/Kimi-K3") {
    modes.moe = "w4a8_mxfp4_mxfp8";
  }
  const bool fp4_experts = FirstText(&model.text, {"expert_dtype"}) == "fp4";
  if (model.Is({Family::kDeepSeekV4, Family::kDeepSeekV41}) && fp4_experts &&
      modes.moe != "nvfp4") {
    modes.moe = "w4a8_mxfp4_mxfp8";
    if (platform.backend == "sglang" && platform.sm_version >= 100) {
      modes.moe = "w4a8_mxfp4_mxfp8_trtllm";
    } else if (platform.backend == "sglang" && platform.sm_version == 90) {
      modes.moe = "w4a16_mxfp4_cutlass";
    }
  }
}

}  // namespace

const Json* QuantizationConfig(const ModelSpec& model) {
  for (const Json* const place : {&model.root, &model.text}) {
    const Json* const config = place->Find("quantization_config");
    if (config != nullptr) {
      return config->is_object() ? config : nullptr;
    }
  }
  return nullptr;
}

const Json* ExternalQuantization(const ModelSpec& model) {
  const Json* const section = model.quantization.Find("quantization");
  return section != nullptr && section->is_object() ? section : nullptr;
}

std::vector<std::string> ExclusionPatterns(const ModelSpec& model) {
  std::vector<std::string> patterns;
  for (const Json* const section : {QuantizationConfig(model), ExternalQuantization(model)}) {
    for (const std::string_view name : {"modules_to_not_convert", "exclude_modules", "ignore"}) {
      const std::vector<std::string> more =
          Strings(section == nullptr ? nullptr : section->Find(name));
      patterns.insert(patterns.end(), more.begin(), more.end());
    }
  }
  return patterns;
}

std::uint64_t WeightBlock(const ModelSpec& model) {
  const Json* const config = QuantizationConfig(model);
  const Json* const block = config == nullptr ? nullptr : config->Find("weight_block_size");
  if (block == nullptr || !block->is_array() || block->array().empty()) {
    return kUsualBlock;
  }
  return std::max<std::uint64_t>(WholeNumber(&block->array().front()).value_or(kUsualBlock), 1);
}

bool IsRoutedExpert(std::string_view name) {
  return name.find("shared_expert") == std::string_view::npos &&
         (name.find(".experts.") != std::string_view::npos || name.ends_with(".experts") ||
          name.find("routing_expert") != std::string_view::npos);
}

std::string LayerAlgorithm(const Json& layer) {
  std::string algo = FirstText(&layer, {"quant_algo", "quantization_algo", "quant_method"});
  if (algo == "e4m3" || algo == "e5m2") {
    return "fp8";
  }
  return algo == "fp4" ? "nvfp4" : algo;
}

Result<QuantModes> FindQuantModes(const ModelSpec& model, const ModeChoice& choice,
                                  const Platform& platform) {
  DYNO_TRY_VOID(CheckChoice(choice));
  const std::string algo = QuantAlgorithm(model);
  DYNO_TRY(const Inferred inferred, FromAlgorithm(model, algo));
  QuantModes modes;
  modes.gemm = inferred.gemm.value_or("bfloat16");
  modes.moe = inferred.moe.value_or("bfloat16");
  const std::string kv = KvAlgorithm(model);
  if (kv != "none" && (algo == "fp8" || algo == "fp8_block" || algo == "nvfp4" || kv == "fp8")) {
    modes.fmha = "fp8";
    modes.kv = "fp8";
  }
  if (model.Is({Family::kDeepSeekV4, Family::kDeepSeekV41})) {
    modes.kv = "fp8";
  }
  if (modes.fmha == "fp8" && KeepsAttentionWide(model, platform)) {
    modes.fmha = "bfloat16";
  }
  RefineExperts(model, platform, modes);
  modes.gemm_set = choice.gemm.has_value();
  modes.moe_set = choice.moe.has_value();
  modes.gemm = choice.gemm.value_or(modes.gemm);
  modes.moe = choice.moe.value_or(modes.moe);
  modes.fmha = choice.fmha.value_or(modes.fmha);
  modes.kv = choice.kv.value_or(modes.kv);
  return modes;
}

}  // namespace dynosim::timing
