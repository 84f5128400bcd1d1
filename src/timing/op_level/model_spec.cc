// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/model_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/catalog.h"

namespace dynosim::timing {
namespace {

struct Architecture {
  std::string_view name;
  Family family;
  bool nested = false;  // the language part is in text_config, when the file has one
};

constexpr std::array kArchitectures = {
    Architecture{"LlamaForCausalLM", Family::kLlama},
    Architecture{"Qwen2ForCausalLM", Family::kLlama},
    Architecture{"Qwen3ForCausalLM", Family::kLlama},
    Architecture{"MiMoForCausalLM", Family::kLlama},
    Architecture{"MixtralForCausalLM", Family::kMoe},
    Architecture{"GptOssForCausalLM", Family::kMoe},
    Architecture{"Qwen2MoeForCausalLM", Family::kMoe},
    Architecture{"Qwen3MoeForCausalLM", Family::kMoe},
    Architecture{"MiniMaxM2ForCausalLM", Family::kMoe},
    Architecture{"DeepSeekForCausalLM", Family::kDeepSeek},
    Architecture{"DeepseekV3ForCausalLM", Family::kDeepSeek},
    Architecture{"KimiK25ForConditionalGeneration", Family::kKimiK25, true},
    Architecture{"NemotronForCausalLM", Family::kNemotronNas},
    Architecture{"DeciLMForCausalLM", Family::kNemotronNas},
    Architecture{"NemotronHForCausalLM", Family::kNemotronH},
    Architecture{"Qwen3_5ForConditionalGeneration", Family::kQwen35, true},
    Architecture{"Qwen3_5MoeForConditionalGeneration", Family::kQwen35, true},
    Architecture{"Qwen3_5MoeForCausalLM", Family::kQwen35},
    Architecture{"KimiK3ForConditionalGeneration", Family::kKimiK3, true},
    Architecture{"DeepseekV32ForCausalLM", Family::kDeepSeekV32},
    Architecture{"GlmMoeDsaForCausalLM", Family::kDeepSeekV32},
    Architecture{"DeepseekV4ForCausalLM", Family::kDeepSeekV4},
    Architecture{"DeepseekV41ForCausalLM", Family::kDeepSeekV41, true},
    Architecture{"Llama4ForConditionalGeneration", Family::kHybridMoe, true},
    Architecture{"MiMoV2FlashForCausalLM", Family::kHybridMoe},
    Architecture{"Step3p7ForConditionalGeneration", Family::kStep3p7, true},
    Architecture{"Step3p7FlashForCausalLM", Family::kStep3p7, true},
    Architecture{"Step3p5ForCausalLM", Family::kStep3p7},
    Architecture{"Step3p5FlashForCausalLM", Family::kStep3p7},
    Architecture{"Gemma4ForConditionalGeneration", Family::kGemma4, true},
    Architecture{"MiniMaxM3ForCausalLM", Family::kMiniMaxM3},
    Architecture{"MiniMaxM3SparseForConditionalGeneration", Family::kMiniMaxM3, true},
    Architecture{"Qwen3VLForConditionalGeneration", Family::kQwen3Vl, true},
    Architecture{"Qwen3VLMoeForConditionalGeneration", Family::kQwen3VlMoe, true},
    Architecture{"MuseGlimmerForConditionalGeneration", Family::kMuseGlimmer, true},
};

constexpr std::array<std::string_view, 18> kFamilyNames = {
    "LLAMA",   "MOE",       "DEEPSEEK",    "KIMIK25",    "NEMOTRONNAS", "NEMOTRONH",
    "QWEN35",  "KIMIK3",    "DEEPSEEKV32", "DEEPSEEKV4", "DEEPSEEKV41", "HYBRIDMOE",
    "STEP3P7", "GEMMA4MIX", "MINIMAXM3",   "QWEN3VL",    "QWEN3VL_MOE", "MUSEGLIMMER"};

bool NormalizesQueries(std::string_view architecture, Family family) {
  return architecture == "Qwen3ForCausalLM" || architecture == "Qwen3MoeForCausalLM" ||
         architecture == "MiniMaxM2ForCausalLM" || family == Family::kQwen35 ||
         family == Family::kStep3p7 || family == Family::kMuseGlimmer;
}

// Layers by the entries of a pattern, for files that do not count them.
std::optional<std::uint64_t> LayersOfPattern(const Json& text) {
  const Json* const types = text.Find("layers_block_type");
  if (types != nullptr && types->is_array()) {
    return types->array().size();
  }
  const Json* const pattern = text.Find("hybrid_override_pattern");
  if (pattern != nullptr && pattern->is_string()) {
    return pattern->string().size();
  }
  return std::nullopt;
}

Result<const Architecture*> FindArchitecture(const perfdb::ModelFile& file) {
  const std::vector<std::string> names = Strings(file.config.Find("architectures"));
  if (names.empty()) {
    return UsageError("", fmt::format("the configuration of {} names no architecture", file.name));
  }
  for (const Architecture& known : kArchitectures) {
    if (known.name == names.front()) {
      return &known;
    }
  }
  return UsageError("", fmt::format("the model's architecture {} is not supported", names.front()));
}

}  // namespace

std::string_view FamilyName(Family family) {
  return kFamilyNames[static_cast<std::size_t>(family)];
}

std::optional<std::uint64_t> WholeNumber(const Json* value) {
  constexpr double kEnd = 4294967296.0;
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  const double number = value->number();
  if (!(number >= 0.0) || number >= kEnd ||
      number != static_cast<double>(static_cast<std::uint64_t>(number))) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(number);
}

std::vector<std::string> Strings(const Json* value) {
  std::vector<std::string> out;
  if (value != nullptr && value->is_array()) {
    for (const Json& item : value->array()) {
      if (item.is_string()) {
        out.push_back(item.string());
      }
    }
  }
  return out;
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::optional<std::uint64_t> ModelSpec::Whole(std::initializer_list<std::string_view> names) const {
  for (const std::string_view field : names) {
    if (const auto value = WholeNumber(text.Find(field))) {
      return value;
    }
  }
  return std::nullopt;
}

std::uint64_t ModelSpec::WholeOr(std::string_view field, std::uint64_t otherwise) const {
  return Whole({field}).value_or(otherwise);
}

Result<std::uint64_t> ModelSpec::Need(std::string_view field) const {
  const auto value = Whole({field});
  if (!value) {
    return UsageError("", fmt::format("the configuration of {} lacks '{}'", name, field));
  }
  return *value;
}

Result<ModelSpec> ReadModelSpec(const perfdb::ModelFile& file) {
  DYNO_TRY(const Architecture* const known, FindArchitecture(file));
  ModelSpec spec;
  spec.name = file.name;
  spec.architecture = known->name;
  spec.family = known->family;
  spec.packaged = file.packaged;
  spec.root = file.config;
  spec.quantization = file.quantization;
  const Json* const nested = file.config.Find("text_config");
  spec.text = known->nested && nested != nullptr && nested->is_object() ? *nested : file.config;

  const auto layers = spec.Whole({"num_hidden_layers"});
  spec.layers = layers ? *layers : LayersOfPattern(spec.text).value_or(0);
  DYNO_TRY(spec.hidden, spec.Need("hidden_size"));
  DYNO_TRY(spec.heads, spec.Need("num_attention_heads"));
  DYNO_TRY(spec.vocab, spec.Need("vocab_size"));
  spec.kv_heads = spec.WholeOr("num_key_value_heads", 0);
  if (spec.layers == 0 || spec.layers > 100000 || spec.hidden == 0 || spec.heads == 0) {
    return UsageError("", fmt::format("the configuration of {} has no usable num_hidden_layers, "
                                      "hidden_size and num_attention_heads",
                                      file.name));
  }
  spec.head_dim = spec.Whole({"head_dim", "attention_head_dim"}).value_or(0);
  if (spec.head_dim == 0) {
    spec.head_dim = spec.hidden / spec.heads;
  }
  spec.inter = spec.WholeOr("intermediate_size", 0);
  spec.context = spec.WholeOr("max_position_embeddings", 0);
  spec.topk =
      spec.Whole({"num_experts_per_tok", "top_k_experts", "moe_top_k", "num_experts_per_token"})
          .value_or(0);
  spec.experts =
      spec.Whole({"num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts"})
          .value_or(0);
  spec.moe_inter = spec.Whole({"moe_intermediate_size"}).value_or(spec.inter);
  spec.qk_norm = NormalizesQueries(spec.architecture, spec.family);
  return spec;
}

}  // namespace dynosim::timing
