// SPDX-License-Identifier: Apache-2.0
#include "timing/ais.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "perfdb/catalog.h"
#include "timing/model.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {
namespace {

constexpr std::size_t kMemory = 4096;  // a power of two

using config::Decoder;

// A field with an older name; giving both is an error.
void Aliased(Decoder& v, std::string_view name, std::string_view alias,
             std::optional<std::string>& out) {
  std::optional<std::string> other;
  v.Field(name, out);
  v.Field(alias, other);
  if (out && other) {
    v.Fail(alias, "is another name of " + std::string(name) + "; give one of them");
  }
  if (other) {
    out = std::move(other);
  }
}

void AliasedWidth(Decoder& v, std::string_view name, std::string_view alias, std::uint64_t& out) {
  std::optional<std::uint64_t> first, second;
  v.Field(name, first, config::kPositive);
  v.Field(alias, second, config::kPositive);
  if (first && second) {
    v.Fail(alias, "is another name of " + std::string(name) + "; give one of them");
  }
  out = first.value_or(second.value_or(1));
}

// Options of which only one value is modelled.
void OnlyText(Decoder& v, std::string_view name, std::initializer_list<std::string_view> allowed) {
  std::optional<std::string> value;
  v.Field(name, value);
  if (!value) {
    return;
  }
  for (const std::string_view each : allowed) {
    if (*value == each) {
      return;
    }
  }
  v.Fail(name,
         fmt::format("only {} is supported, got \"{}\"",
                     allowed.size() == 0 ? std::string_view("null") : *allowed.begin(), *value));
}

void OnlyFlag(Decoder& v, std::string_view name, bool allowed) {
  bool value = allowed;
  if (const Json* const given = v.Raw(name); given != nullptr && !given->is_null()) {
    value = given->is_bool() ? given->boolean() : !allowed;
  }
  if (value != allowed) {
    v.Fail(name, fmt::format("only {} is supported", allowed));
  }
}

void OnlyOne(Decoder& v, std::string_view name) {
  std::optional<std::uint64_t> width;
  v.Field(name, width, config::kPositive);
  if (width && *width > 1) {
    v.Fail(name, fmt::format("context parallelism is not modelled; must be 1, got {}", *width));
  }
}

// What the reference knows and this model does not.
void UnmodelledFields(Decoder& v) {
  OnlyOne(v, "dcp");
  OnlyOne(v, "dcp_size");
  OnlyOne(v, "cp_size");
  OnlyText(v, "estimation_mode", {"op_level", "auto"});
  OnlyText(v, "fallback_policy", {"deny"});
  OnlyText(v, "database_mode", {"SILICON"});
  OnlyText(v, "attention_backend", {});
  OnlyText(v, "moe_kernel_source", {});
  OnlyText(v, "moe_backend", {});
  OnlyText(v, "transfer_policy", {});
  OnlyFlag(v, "decoder_replay", false);
  OnlyFlag(v, "enable_eplb", false);
  OnlyFlag(v, "strict_provenance", false);
  OnlyFlag(v, "enable_shared_layer", true);
  v.Refuse("speculation", "is refused: only nextn is modelled");
  v.Refuse("wideep_num_slots", "is refused: wide expert parallelism is not modelled");
}

void ExpertWidths(Decoder& v, Deployment& d) {
  std::optional<std::uint64_t> tp, ep;
  v.Field("moe_tp_size", tp, config::kPositive);
  v.Field("moe_ep_size", ep, config::kPositive);
  if (tp.has_value() != ep.has_value()) {
    v.Fail(tp ? "moe_ep_size" : "moe_tp_size", "moe_tp_size and moe_ep_size go together");
  }
  d.moe_tp = tp.value_or(1);
  d.moe_ep = ep.value_or(1);
}

std::vector<std::string> Folders(Decoder& v) {
  std::vector<std::string> folders;
  const Json* const given = v.Raw("systems_paths");
  if (given == nullptr || given->is_null()) {
    return folders;
  }
  if (given->is_string()) {
    folders.push_back(given->string());
  } else if (given->is_array()) {
    for (const Json& folder : given->array()) {
      if (folder.is_string()) {
        folders.push_back(folder.string());
      } else {
        v.Fail("systems_paths", "must be a list of folders");
      }
    }
  } else {
    v.Fail("systems_paths", "must be a list of folders");
  }
  return folders;
}

Error NoTiming(const Deployment& d, const Error& why) {
  return {.kind = why.kind,
          .where = "",
          .message = fmt::format("no timing data for {} with {}{} on {}: {}", d.model, d.backend,
                                 d.backend_version.empty() ? "" : " " + d.backend_version, d.system,
                                 why.Text())};
}

}  // namespace

Result<AisConfig> DecodeAisConfig(const Json& config, const std::string& path,
                                  std::string_view where) {
  Decoder v(config, path);
  AisConfig out;
  Deployment& d = out.deployment;
  std::optional<std::string> model, version, worker_type;
  Aliased(v, "model", "model_path", model);
  if (!model) {
    v.Fail("model", "is required");
  }
  v.Require("system");
  v.Require("backend");
  v.Field("system", d.system);
  v.Field("backend", d.backend);
  v.Field("backend_version", version);
  v.Field("worker_type", out.worker_type);
  if (out.worker_type && *out.worker_type != "prefill" && *out.worker_type != "decode" &&
      *out.worker_type != "aggregated") {
    v.Fail("worker_type",
           fmt::format("must be one of prefill, decode, aggregated, got \"{}\"", *out.worker_type));
  }
  AliasedWidth(v, "tp", "tp_size", d.tp);
  AliasedWidth(v, "pp", "pp_size", d.pp);
  AliasedWidth(v, "attention_dp", "attention_dp_size", d.attention_dp);
  ExpertWidths(v, d);
  Aliased(v, "gemm_quant_mode", "gemm_dtype", d.modes.gemm);
  Aliased(v, "moe_quant_mode", "moe_dtype", d.modes.moe);
  Aliased(v, "fmha_quant_mode", "fmha_dtype", d.modes.fmha);
  Aliased(v, "kvcache_quant_mode", "kv_cache_dtype", d.modes.kv);
  Aliased(v, "comm_quant_mode", "comm_dtype", d.modes.comm);
  std::optional<std::uint64_t> nextn;
  v.Field("nextn", nextn, {.min = 0, .max = 5});
  v.Field("kv_block_size", out.kv_block_size, config::kPositive);
  out.data_folders = Folders(v);
  UnmodelledFields(v);
  DYNO_TRY_VOID(v.Finish(where));
  d.model = *model;
  d.backend_version = version.value_or("");
  d.nextn = nextn.value_or(0);
  return out;
}

Result<std::shared_ptr<const AisTiming>> AisTiming::Make(const AisConfig& config) {
  std::vector<std::string> folders = config.data_folders;
  for (std::string& folder : perfdb::DefaultDataFolders()) {
    folders.push_back(std::move(folder));
  }
  auto model = PassModel::Make(config.deployment, perfdb::Catalog(std::move(folders)));
  if (!model) {
    return std::unexpected(NoTiming(config.deployment, model.error()));
  }
  // A shape that was never measured shows at the first question.
  constexpr std::uint64_t kTokens = 128;
  const std::string role = config.worker_type.value_or("aggregated");
  const Timed first = role == "decode" ? Timed(0.0) : (*model)->PrefillMs(1, kTokens, 0);
  const Timed second = role == "prefill" ? Timed(0.0) : (*model)->DecodeMs(1, kTokens);
  for (const Timed* const answer : {&first, &second}) {
    if (!*answer) {
      const bool data = answer->error().kind == Failure::Kind::kMissingData;
      return std::unexpected(
          NoTiming(config.deployment, {.kind = ErrorKind::kUsage,
                                       .where = data ? "missing performance data" : "",
                                       .message = answer->error().text}));
    }
  }
  return std::make_shared<const AisTiming>(config, *std::move(model));
}

template <class Ask>
double AisTiming::Recall(Memory& memory, const Remembered& question, const Ask& ask) {
  if (memory.empty()) {
    memory.resize(kMemory);
  }
  const std::uint64_t mixed = (question.batch * 0x9E3779B97F4A7C15U) ^
                              (question.first * 0xC2B2AE3D27D4EB4FU) ^
                              (question.second * 0x165667B19E3779F9U);
  Remembered& place = memory[(mixed >> 40U) & (kMemory - 1)];
  if (place.batch != question.batch || place.first != question.first ||
      place.second != question.second) {
    const Timed answer = ask();
    place = question;
    place.ms = answer ? *answer : std::numeric_limits<double>::quiet_NaN();
  }
  return place.ms;
}

double AisTiming::PrefillMs(const PrefillBatch& batch) const {
  const Remembered question{
      .batch = batch.requests, .first = batch.mean_new, .second = batch.mean_prefix};
  return Recall(prefills_, question, [&] {
    return model_->PrefillMs(batch.requests, batch.mean_new, batch.mean_prefix);
  });
}

double AisTiming::DecodeMs(const DecodeBatch& batch) const {
  const std::uint64_t mean = batch.context_tokens / batch.requests;
  return Recall(decodes_, {.batch = batch.requests, .first = mean},
                [&] { return model_->DecodeMs(batch.requests, mean); });
}

void AisTiming::DecodeRunMs(const DecodeBatch& first, std::span<double> out) const {
  DecodeBatch batch = first;
  for (double& ms : out) {
    ms = DecodeMs(batch);
    batch.context_tokens += batch.requests;
  }
}

}  // namespace dynosim::timing
