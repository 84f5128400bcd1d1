// SPDX-License-Identifier: Apache-2.0
// SettingsDraft: engine settings while they are read, with what needs the other fields to be
// resolved. Each Fields function names every field of one object once. Internal to settings_*.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "engine/settings.h"
#include "timing/registry.h"

namespace dynosim::engine {

struct SettingsDraft {
  EngineSettings settings;
  std::optional<std::uint64_t> block_size;  // default depends on the backend
  std::optional<std::uint64_t> draft_tokens;
  std::optional<std::string> accept_rates;
  std::optional<std::uint64_t> kv_bytes_per_token;  // alias of kv_transfer_bytes_per_token
  const Json* timing_model = nullptr;               // borrowed from the document
  std::string timing_path;
  // For the measured timing model: what the configuration gives and what it leaves to the model.
  bool num_gpu_blocks_given = false;
  bool dp_given = false;
  bool tensor_parallel_given = false;
  bool pipeline_parallel_given = false;
  std::array<std::optional<double>, 3> memory_fractions;  // by Backend
  std::optional<std::uint64_t> cuda_graph_bytes;
  std::string needs_model;  // a field that only such a model can use
};

// The `engine` object, and what is beside it. `allow_page_size` is the flat form's
// sglang.page_size, an alias of block_size.
void EngineFields(config::Decoder& v, SettingsDraft& draft, bool allow_page_size);
void LaunchFields(config::Decoder& v, SettingsDraft& draft);
// The older names that only the flat form knows.
void LegacyFields(config::Decoder& v, SettingsDraft& draft);
// Options of live serving; validated, and refused unless they have their default. Also the queue
// policy of the pool's router.
void DynamoFields(config::Decoder& v, SettingsDraft& draft);

// Rules that need several fields, in the order of the documentation. Resolves defaults that depend
// on the backend.
void CheckEngine(config::Decoder& v, SettingsDraft& draft);
// Rules that need fields of both objects. `prefix` is "engine." in the nested form.
void CheckLaunch(config::Decoder& v, const SettingsDraft& draft, const std::string& prefix);

// Takes the timing model over; a measured one also decides the KV capacity.
Result<void> ApplyTiming(SettingsDraft& draft, timing::NamedTiming made, std::string_view where);

// Acceptance probabilities of `draft_tokens` speculative tokens.
void ResolveSpeculation(config::Decoder& v, SettingsDraft& draft);

}  // namespace dynosim::engine
