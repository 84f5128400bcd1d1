// SPDX-License-Identifier: Apache-2.0
#include "search/domain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "config/decode.h"

namespace dynosim::search {
namespace {

using config::Decoder;

constexpr std::size_t kMaxValues = 1'000'000;
// Largest integer that a double holds with all its neighbours.
constexpr double kMaxInteger = 0x1p53;

struct RangeFields {
  double min = 0.0;
  double max = 0.0;
  std::optional<double> step;
  bool log = false;
};

void ReadRangeFields(Decoder& v, RangeFields& range, FieldKind kind, bool positive) {
  constexpr std::array kScales = {config::Choice<bool>{"linear", false},
                                  config::Choice<bool>{"log", true}};
  v.Require("min");
  v.Require("max");
  v.Field("min", range.min, config::NumberRange{});
  v.Field("max", range.max, config::NumberRange{});
  v.Field("step", range.step, config::kAboveZero);
  v.Field("scale", range.log, kScales);
  const bool integer = kind == FieldKind::kInteger;
  if (kind == FieldKind::kWord) {
    v.Fail("", "takes choices, no range: its values are words");
  }
  if (range.min > range.max) {
    v.Fail("min", "must be <= max");
  }
  if (positive && range.min <= 0.0) {
    v.Fail("min", "must be > 0");
  }
  if (range.log && range.min <= 0.0) {
    v.Fail("min", "must be > 0 with scale log");
  }
  if (range.log && range.step) {
    v.Fail("step", "is not accepted with scale log");
  }
  if (integer && !range.log && !range.step) {
    v.Fail("step", "is required by a linear range of integers");
  }
  for (const auto& [name, value] : {std::pair<std::string_view, double>{"min", range.min},
                                    {"max", range.max},
                                    {"step", range.step.value_or(1.0)}}) {
    if (integer && (value != std::floor(value) || std::abs(value) > kMaxInteger)) {
      v.Fail(name, "must be an integer");
    }
  }
  if (range.step && (range.max - range.min) / *range.step >= static_cast<double>(kMaxValues)) {
    v.Fail("step", "gives more than " + std::to_string(kMaxValues) + " values");
  }
}

Json Number(double value, bool integer) {
  return integer ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

// min, min + step, ... up to max, by multiplication; the last one may miss max by rounding.
std::vector<Json> Steps(const RangeFields& range, bool integer) {
  constexpr double kRounding = 1e-9;
  const double step = *range.step;
  const auto count =
      static_cast<std::size_t>(std::floor((range.max - range.min) / step + kRounding)) + 1;
  std::vector<Json> values;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = range.min + static_cast<double>(i) * step;
    values.push_back(Number(std::min(value, range.max), integer));
  }
  return values;
}

Result<Domain> ReadChoices(const Json& choices, const std::string& path, const std::string& where) {
  const std::string at = where + ": " + path;
  if (!choices.is_array() || choices.array().empty()) {
    return UsageError(
        at, "choices must be a list with at least one value, got " + config::Shown(choices));
  }
  const Json::Array& values = choices.array();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_object() || values[i].is_array()) {
      return UsageError(at, "choices must be plain values, got " + config::Shown(values[i]));
    }
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
        values.begin() + static_cast<std::ptrdiff_t>(i)) {
      return UsageError(at, "choices must differ, got " + config::Shown(values[i]) + " twice");
    }
  }
  return Domain{.values = values, .open = std::nullopt};
}

struct Place {
  std::string_view name;
  FieldKind kind;
};

// Last names below engine.workers.ROLE.
constexpr std::array kWorkerPlaces = {
    Place{"parallelism.replicas", FieldKind::kInteger},
    Place{"parallelism.tensor", FieldKind::kInteger},
    Place{"parallelism.pipeline", FieldKind::kInteger},
    Place{"parallelism.attention_data", FieldKind::kInteger},
    Place{"parallelism.moe_tensor", FieldKind::kInteger},
    Place{"parallelism.moe_expert", FieldKind::kInteger},
    Place{"scheduler.max_batched_tokens", FieldKind::kInteger},
    Place{"scheduler.max_sequences", FieldKind::kInteger},
    Place{"scheduler.prefill_schedule_interval", FieldKind::kInteger},
    Place{"scheduler.prefill_decode_interval", FieldKind::kInteger},
    Place{"kv_cache.block_size", FieldKind::kInteger},
    Place{"kv_cache.capacity.memory_fraction", FieldKind::kNumber}};
constexpr std::array kPlaces = {Place{"engine.mode", FieldKind::kWord},
                                Place{"engine.backend", FieldKind::kWord},
                                Place{"traffic.load.concurrency", FieldKind::kInteger},
                                Place{"traffic.load.requests_per_second", FieldKind::kNumber},
                                Place{"traffic.load.sessions_per_second", FieldKind::kNumber},
                                Place{"traffic.load.fraction", FieldKind::kNumber},
                                Place{"traffic.load.speedup", FieldKind::kNumber},
                                Place{"router.policy", FieldKind::kWord},
                                Place{"router.prefill_load_model.type", FieldKind::kWord},
                                Place{"router.overlap_score_credit", FieldKind::kNumber},
                                Place{"router.prefill_load_scale", FieldKind::kNumber},
                                Place{"router.temperature", FieldKind::kNumber}};

template <std::size_t N>
std::optional<FieldKind> KindIn(const std::array<Place, N>& places, std::string_view name) {
  const auto* found = std::ranges::find(places, name, &Place::name);
  return found == places.end() ? std::nullopt : std::optional(found->kind);
}

}  // namespace

Json OpenRange::Draw(ChaCha12& random) const {
  const double share = random.NextUniform();
  double value = min + share * (max - min);
  if (log) {
    value = std::exp(std::log(min) + share * (std::log(max) - std::log(min)));
  }
  value = std::clamp(integer ? std::round(value) : value, min, max);
  return Number(value, integer);
}

bool IsDomain(const Json& value) {
  return value.is_object() && value.object().size() == 1 &&
         (value.object().front().first == "choices" || value.object().front().first == "range");
}

std::optional<FieldKind> DomainKind(std::string_view path) {
  for (const std::string_view role : {"aggregated.", "prefill.", "decode."}) {
    const std::string prefix = "engine.workers." + std::string(role);
    if (path.starts_with(prefix)) {
      return KindIn(kWorkerPlaces, path.substr(prefix.size()));
    }
  }
  return KindIn(kPlaces, path);
}

Result<Domain> ReadDomain(const Json& value, const std::string& path, FieldKind kind,
                          const std::string& where) {
  if (const Json* choices = value.Find("choices")) {
    return ReadChoices(*choices, path, where);
  }
  RangeFields range;
  Decoder v(value, path);
  v.Object("range", [&](Decoder& fields) {
    ReadRangeFields(fields, range, kind, path.starts_with("traffic.load."));
  });
  DYNO_TRY_VOID(v.Finish(where));
  const bool integer = kind == FieldKind::kInteger;
  if (range.step) {
    return Domain{.values = Steps(range, integer), .open = std::nullopt};
  }
  return Domain{
      .values = {},
      .open = OpenRange{.min = range.min, .max = range.max, .log = range.log, .integer = integer}};
}

}  // namespace dynosim::search
