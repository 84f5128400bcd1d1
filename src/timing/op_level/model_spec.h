// SPDX-License-Identifier: Apache-2.0
// ModelSpec: a model's configuration as far as its timing depends on it: its family, common sizes,
// and access to the fields that only one family reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/catalog.h"

namespace dynosim::timing {

// Models whose operation lists have the same shape.
enum class Family {
  kLlama,
  kMoe,
  kDeepSeek,
  kKimiK25,
  kNemotronNas,
  kNemotronH,
  kQwen35,
  kKimiK3,
  kDeepSeekV32,
  kDeepSeekV4,
  kDeepSeekV41,
  kHybridMoe,
  kStep3p7,
  kGemma4,
  kMiniMaxM3,
  kQwen3Vl,
  kQwen3VlMoe,
  kMuseGlimmer,
};
std::string_view FamilyName(Family family);

struct ModelSpec {
  std::string name;
  std::string architecture;
  Family family = Family::kLlama;
  bool packaged = false;
  Json root;          // config.json
  Json text;          // its language part: the nested text_config, or the same
  Json quantization;  // hf_quant_config.json, or null

  std::uint64_t layers = 0;
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;  // 0 when the file has none
  std::uint64_t head_dim = 0;
  std::uint64_t inter = 0;
  std::uint64_t vocab = 0;
  std::uint64_t context = 0;  // longest supported sequence, 0 when unknown
  std::uint64_t topk = 0;
  std::uint64_t experts = 0;
  std::uint64_t moe_inter = 0;
  bool qk_norm = false;

  bool Is(std::initializer_list<Family> families) const {
    return std::find(families.begin(), families.end(), family) != families.end();
  }
  bool gpt_oss() const { return architecture == "GptOssForCausalLM"; }
  // The first of the names that the language part has as a whole number.
  std::optional<std::uint64_t> Whole(std::initializer_list<std::string_view> names) const;
  std::uint64_t WholeOr(std::string_view name, std::uint64_t otherwise) const;
  // Error that names a field which a family needs.
  Result<std::uint64_t> Need(std::string_view name) const;
};

Result<ModelSpec> ReadModelSpec(const perfdb::ModelFile& file);

// A whole number below 2^32; nothing for anything else.
std::optional<std::uint64_t> WholeNumber(const Json* value);
// Strings of an array; other items are skipped.
std::vector<std::string> Strings(const Json* value);
std::string LowerCase(std::string_view text);

}  // namespace dynosim::timing
