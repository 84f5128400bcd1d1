// SPDX-License-Identifier: Apache-2.0
// A new timing model is one line in kTypes (by `type`) or kProviders (external, by `provider`).
#include "timing/registry.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "timing/ais.h"
#include "timing/fixed.h"
#include "timing/polynomial.h"
#include "timing/profile.h"

namespace dynosim::timing {
namespace {

using config::Choice;
using Made = Result<NamedTiming>;

// Members that these two types do not know are ignored, as in the reference's schema.
Made MakePolynomial(const Json&, const std::string&, std::string_view) { return DefaultTiming(); }

void FixedFields(config::Decoder& v, double& prefill_ms, double& decode_ms) {
  v.Require("prefill_ms");
  v.Require("decode_ms");
  v.Doc("Time of a pass with prompt tokens, in ms.")
      .Field("prefill_ms", prefill_ms, config::kNonNegative);
  v.Doc("Time added by sequences that decode, in ms.")
      .Field("decode_ms", decode_ms, config::kNonNegative);
}

Made MakeFixed(const Json& spec, const std::string& path, std::string_view where) {
  config::Decoder decoder(spec, path);
  double prefill_ms = 0.0;
  double decode_ms = 0.0;
  FixedFields(decoder, prefill_ms, decode_ms);
  DYNO_TRY_VOID(decoder.FinishOpen(where));
  Json config;
  config.Add("type", "fixed");
  config.Add("prefill_ms", prefill_ms);
  config.Add("decode_ms", decode_ms);
  return NamedTiming{.model = std::make_shared<FixedTiming>(prefill_ms, decode_ms),
                     .config = std::move(config)};
}

// Factories of external providers get the provider's own `config` object.
Made MakeProfile(const Json& spec, const std::string& path, std::string_view where) {
  config::Decoder decoder(spec, path);
  std::string file;
  decoder.Require("path");
  decoder.Field("path", file);
  DYNO_TRY_VOID(decoder.Finish(where));
  auto profile = LoadProfile(file);
  if (!profile) {
    return UsageError(std::string(where), path + ".path: " + profile.error().Text());
  }
  return NamedTiming{.model = std::make_shared<ProfileTiming>(*std::move(profile)), .config = {}};
}

Made MakeAis(const Json& spec, const std::string& path, std::string_view where) {
  DYNO_TRY(const AisConfig config, DecodeAisConfig(spec, path, where));
  auto timing = AisTiming::Make(config);
  if (!timing) {
    return UsageError(std::string(where), path + ": " + timing.error().Text());
  }
  return NamedTiming{.model = *timing, .config = {}, .ais = *timing};
}

using Factory = Made (*)(const Json& spec, const std::string& path, std::string_view where);

constexpr std::array kProviders = {Choice<Factory>("dynamo_profile", MakeProfile),
                                   Choice<Factory>("ais", MakeAis),
                                   Choice<Factory>("aic", MakeAis)};

Made MakeExternal(const Json& spec, const std::string& path, std::string_view where) {
  config::Decoder decoder(spec, path);
  std::string type;
  Factory factory = nullptr;
  decoder.Field("type", type);
  decoder.Require("provider");
  decoder.Field("provider", factory, kProviders);
  const Json* config = decoder.Raw("config");
  DYNO_TRY_VOID(decoder.FinishOpen(where));
  static const Json null;
  DYNO_TRY(NamedTiming made, factory(config == nullptr ? null : *config, path + ".config", where));
  made.config = Json();
  made.config.Add("type", "external");
  made.config.Add("provider", *spec.Find("provider"));
  made.config.Add("config", *config);
  return made;
}

constexpr std::array kTypes = {Choice<Factory>("polynomial", MakePolynomial),
                               Choice<Factory>("fixed", MakeFixed),
                               Choice<Factory>("external", MakeExternal)};

}  // namespace

NamedTiming DefaultTiming() {
  Json config;
  config.Add("type", "polynomial");
  return {.model = std::make_shared<PolynomialTiming>(), .config = std::move(config)};
}

Json TimingModelSchema() {
  const config::Variant forms[] = {
      {.name = "polynomial",
       .doc = "General formula of tokens and sequences, no model in particular.",
       .fields = [](config::Decoder&) {}},
      {.name = "fixed",
       .doc = "The same time for every pass.",
       .fields =
           [](config::Decoder& v) {
             double ms = 0.0;
             FixedFields(v, ms, ms);
           }},
      {.name = "external",
       .doc = "Measured times.",
       .fields =
           [](config::Decoder& v) {
             Factory factory = nullptr;
             v.Require("provider");
             v.Doc(
                  "A profile of one deployment (.npz), or measured kernels; aic is another name "
                  "of ais.")
                 .Field("provider", factory, kProviders);
             v.Require("config");
             v.Doc(
                  "dynamo_profile: path. ais: model, system, backend, backend_version, "
                  "worker_type, tp, pp, attention_dp, moe_tp_size, moe_ep_size, nextn, "
                  "kv_block_size and the data types gemm_, moe_, fmha_, kvcache_ and "
                  "comm_quant_mode.")
                 .Raw("config");
           }},
  };
  return config::DescribeFields([&forms](config::Decoder& v) { v.Variants("type", forms); });
}

Result<NamedTiming> MakeTiming(const Json& spec, const std::string& path, std::string_view where) {
  config::Decoder decoder(spec, path);
  Factory factory = nullptr;
  decoder.Require("type");
  decoder.Field("type", factory, kTypes);
  DYNO_TRY_VOID(decoder.FinishOpen(where));
  return factory(spec, path, where);
}

}  // namespace dynosim::timing
