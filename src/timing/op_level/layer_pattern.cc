// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/layer_pattern.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::timing {
namespace {

std::unexpected<Error> Wrong(const ModelSpec& model, std::string what) {
  return UsageError("", fmt::format("the configuration of {}: {}", model.name, what));
}

// A list of 0 and 1 per layer.
Result<std::vector<bool>> Flags(const ModelSpec& model, std::string_view name) {
  const Json* const value = model.text.Find(name);
  std::vector<bool> flags;
  if (const auto all = WholeNumber(value); all && *all <= 1) {
    flags.assign(model.layers, *all == 1);
    return flags;
  }
  if (value == nullptr || !value->is_array() || value->array().size() != model.layers) {
    return Wrong(model, fmt::format("{} must have {} entries", name, model.layers));
  }
  for (const Json& entry : value->array()) {
    const auto flag = WholeNumber(&entry);
    if (!flag || *flag > 1) {
      return Wrong(model, fmt::format("{} must hold only 0 and 1", name));
    }
    flags.push_back(*flag == 1);
  }
  return flags;
}

// layer_types: full_attention or sliding_attention per layer; more layers than `counted` may
// follow.
Result<std::vector<bool>> GlobalByType(const ModelSpec& model, std::uint64_t more) {
  const std::vector<std::string> types = Strings(model.text.Find("layer_types"));
  if (types.size() != model.layers && types.size() != model.layers + more) {
    return Wrong(
        model, fmt::format("layer_types has {} entries for {} layers", types.size(), model.layers));
  }
  std::vector<bool> out;
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return Wrong(model, fmt::format("layer_types: '{}' is not a known kind", type));
    }
    out.push_back(type == "full_attention");
  }
  out.resize(model.layers);
  return out;
}

Result<LayerPattern> Llama4Pattern(const ModelSpec& model) {
  const Json* const vision = model.root.Find("vision_config");
  if (vision == nullptr || !vision->is_object()) {
    return Wrong(model, "vision_config must be an object");
  }
  const Json* const given = model.text.Find("interleave_moe_layer_step");
  const auto step = given == nullptr ? std::optional<std::uint64_t>(1) : WholeNumber(given);
  if (!step || *step == 0) {
    return Wrong(model, "interleave_moe_layer_step must be a positive whole number");
  }
  LayerPattern out;
  for (std::uint64_t i = 0; i < model.layers; ++i) {
    out.is_global.push_back(i % 2 == 1);
    out.has_experts.push_back((i + 1) % *step == 0);
  }
  out.window = model.WholeOr("attention_chunk_size", 0);
  return out;
}

// Layers with experts by their list of indices ("3,4,5" or [3, 4, 5]), else all but the first ones.
std::vector<bool> StepExperts(const ModelSpec& model) {
  std::vector<bool> out(model.layers, false);
  std::vector<std::uint64_t> indices;
  const Json* const listed = model.text.Find("moe_layers_enum");
  if (listed != nullptr && listed->is_string()) {
    std::uint64_t value = 0;
    bool digits = false;
    for (const char c : listed->string() + ",") {
      if (c >= '0' && c <= '9' && value < 1000000) {
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
        digits = true;
      } else if (c == ',') {
        if (digits) {
          indices.push_back(value);
        }
        value = 0;
        digits = false;
      }
    }
  } else if (listed != nullptr && listed->is_array()) {
    for (const Json& entry : listed->array()) {
      if (const auto index = WholeNumber(&entry)) {
        indices.push_back(*index);
      }
    }
  }
  for (const std::uint64_t index : indices) {
    if (index < model.layers) {
      out[index] = true;
    }
  }
  if (indices.empty()) {
    const std::uint64_t first = model.WholeOr("first_k_dense_replace", 0);
    for (std::uint64_t i = first; i < model.layers; ++i) {
      out[i] = true;
    }
  }
  return out;
}

}  // namespace

std::uint64_t LayerPattern::Count(bool global, bool experts) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < is_global.size(); ++i) {
    count += is_global[i] == global && has_experts[i] == experts ? 1 : 0;
  }
  return count;
}

std::uint64_t LayerPattern::global() const {
  return static_cast<std::uint64_t>(std::count(is_global.begin(), is_global.end(), true));
}

Result<LayerPattern> FindLayerPattern(const ModelSpec& model) {
  if (model.architecture == "Llama4ForConditionalGeneration") {
    return Llama4Pattern(model);
  }
  LayerPattern out;
  if (model.family == Family::kHybridMoe) {
    // Read literally, as the measured lists were: 1 is global.
    DYNO_TRY(out.is_global, Flags(model, "hybrid_layer_pattern"));
    DYNO_TRY(out.has_experts, Flags(model, "moe_layer_freq"));
    out.window = model.Whole({"sliding_window_size", "sliding_window"}).value_or(0);
    return out;
  }
  const std::uint64_t more =
      model.family == Family::kStep3p7 ? model.WholeOr("num_nextn_predict_layers", 0) : 0;
  DYNO_TRY(out.is_global, GlobalByType(model, more));
  out.has_experts = model.family == Family::kStep3p7 ? StepExperts(model)
                                                     : std::vector<bool>(model.layers, false);
  out.window = model.WholeOr("sliding_window", 0);
  return out;
}

Gemma4Heads FindGemma4Heads(const ModelSpec& model) {
  return {.global_kv_heads = model.Whole({"num_global_key_value_heads"}).value_or(model.kv_heads),
          .global_head_dim = model.Whole({"global_head_dim"}).value_or(model.head_dim)};
}

Result<std::vector<std::uint64_t>> FindCompressRatios(const ModelSpec& model) {
  const Json* const list = model.text.Find("compress_ratios");
  if (list == nullptr || !list->is_array() || list->array().size() < model.layers) {
    return Wrong(model, fmt::format("compress_ratios must have {} entries", model.layers));
  }
  std::vector<std::uint64_t> ratios;
  for (std::uint64_t i = 0; i < model.layers; ++i) {
    const auto ratio = WholeNumber(&list->array()[i]);
    if (!ratio || (*ratio != 0 && *ratio != 4 && *ratio != 128)) {
      return Wrong(model, "compress_ratios may hold only 0, 4 and 128");
    }
    ratios.push_back(*ratio);
  }
  return ratios;
}

Result<GdnSizes> FindGdnSizes(const ModelSpec& model) {
  const std::vector<std::string> types = Strings(model.text.Find("layer_types"));
  if (types.size() != model.layers) {
    return Wrong(model, fmt::format("layer_types length {} != num_hidden_layers {}", types.size(),
                                    model.layers));
  }
  GdnSizes out;
  for (const std::string& type : types) {
    if (type != "linear_attention" && type != "full_attention") {
      return Wrong(model, fmt::format("layer_types: '{}' is not a known kind", type));
    }
    out.layers += type == "linear_attention" ? 1 : 0;
  }
  DYNO_TRY(out.k_heads, model.Need("linear_num_key_heads"));
  DYNO_TRY(out.k_dim, model.Need("linear_key_head_dim"));
  DYNO_TRY(out.v_heads, model.Need("linear_num_value_heads"));
  DYNO_TRY(out.v_dim, model.Need("linear_value_head_dim"));
  DYNO_TRY(out.conv, model.Need("linear_conv_kernel_dim"));
  // The first place that has the key decides; the nested one comes first.
  out.ssm_dtype = "float32";
  const Json* const nested = model.root.Find("text_config");
  const Json* dtype = nested == nullptr ? nullptr : nested->Find("mamba_ssm_dtype");
  dtype = dtype == nullptr ? model.root.Find("mamba_ssm_dtype") : dtype;
  if (dtype != nullptr && dtype->is_string() &&
      (dtype->string() == "bfloat16" || dtype->string() == "float16")) {
    out.ssm_dtype = dtype->string();
  }
  return out;
}

Result<KdaSizes> FindKdaSizes(const ModelSpec& model) {
  const Json* const config = model.text.Find("linear_attn_config");
  const Json* const layers = config == nullptr ? nullptr : config->Find("kda_layers");
  if (layers == nullptr || !layers->is_array() || layers->array().empty()) {
    return Wrong(model, "linear_attn_config.kda_layers must be defined");
  }
  std::vector<bool> linear(model.layers, false);
  for (const Json& entry : layers->array()) {
    const auto layer = WholeNumber(&entry);
    if (!layer || *layer == 0 || *layer > model.layers) {
      return Wrong(model, "linear_attn_config.kda_layers holds a layer out of range");
    }
    linear[*layer - 1] = true;
  }
  const auto heads = WholeNumber(config->Find("num_heads"));
  const auto dim = WholeNumber(config->Find("head_dim"));
  if (!heads || !dim) {
    return Wrong(model, "linear_attn_config lacks num_heads or head_dim");
  }
  constexpr std::uint64_t kUsualConv = 4;
  return KdaSizes{
      .layers = static_cast<std::uint64_t>(std::count(linear.begin(), linear.end(), true)),
      .heads = *heads,
      .dim = *dim,
      .conv = WholeNumber(config->Find("short_conv_kernel_size")).value_or(kUsualConv)};
}

Result<MambaPattern> FindMambaPattern(const ModelSpec& model) {
  std::string pattern;
  const Json* const given = model.text.Find("hybrid_override_pattern");
  if (given != nullptr && given->is_string()) {
    pattern = given->string();
  } else {
    for (const std::string& type : Strings(model.text.Find("layers_block_type"))) {
      const char letter = type == "mamba"                                     ? 'M'
                          : type == "moe"                                     ? 'E'
                          : type == "attention"                               ? '*'
                          : type == "mlp" || type == "dense" || type == "ffn" ? '-'
                          : type.size() == 1                                  ? type.front()
                                                                              : '?';
      if (letter == '?') {
        return Wrong(model, fmt::format("unsupported layer block type '{}'", type));
      }
      pattern += letter;
    }
  }
  if (pattern.empty()) {
    return Wrong(model, "must define hybrid_override_pattern or layers_block_type");
  }
  MambaPattern out;
  for (const char letter : pattern) {
    switch (letter) {
      case 'M':
        ++out.mamba;
        break;
      case '*':
        ++out.attention;
        break;
      case 'E':
        ++out.experts;
        break;
      case '-':
        ++out.dense;
        break;
      default:
        return Wrong(model, fmt::format("unsupported layer block type '{}'", letter));
    }
  }
  return out;
}

}  // namespace dynosim::timing
