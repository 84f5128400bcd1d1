// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_flags.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "timing/fixed.h"

namespace dynosim::cli {
namespace {

constexpr std::string_view kEngineGroup = "Engine";
constexpr std::string_view kExtra = "--extra-engine-args";

template <class T>
CLI::Option* Add(CLI::App& command, std::string_view group, const std::string& name, T& value,
                 const std::string& type, const std::string& help) {
  return command.add_option(name, value, help)->type_name(type)->group(std::string(group));
}

// Text of the flag, or the file that it names.
Result<Json> JsonOrFile(std::string_view flag, const std::string& text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && text[start] == '{') {
    return ParseJson(text, std::string(flag));
  }
  DYNO_TRY(const TextFile content, TextFile::Read(text));
  return ParseJson(content.Text(), text);
}

template <class T>
void Put(Json& object, std::string_view name, const std::optional<T>& value) {
  if (value) {
    object.Add(std::string(name), Json(*value));
  }
}

Result<Json> FlatEngine(const EngineFlags& f) {
  Json engine;
  engine.Add("backend", f.engine_type);
  Put(engine, "num_gpu_blocks", f.num_gpu_blocks);
  Put(engine, "block_size", f.block_size);
  Put(engine, "max_model_len", f.max_model_len);
  Put(engine, "max_num_seqs", f.max_num_seqs);
  Put(engine, "max_num_batched_tokens", f.max_num_batched_tokens);
  Put(engine, "enable_prefix_caching", f.prefix_caching);
  Put(engine, "enable_chunked_prefill", f.chunked_prefill);
  Put(engine, "preemption_mode", f.preemption_mode);
  Put(engine, "speedup_ratio", f.speedup_ratio);
  Put(engine, "decode_speedup_ratio", f.decode_speedup_ratio);
  if (f.prefill_ms.has_value() != f.decode_ms.has_value()) {
    return UsageError(f.prefill_ms ? "--prefill-ms" : "--decode-ms",
                      "--prefill-ms and --decode-ms must be given together");
  }
  Json timing;
  if (f.prefill_ms) {
    if (f.planner_profile_data) {
      return UsageError("--prefill-ms", "cannot be combined with --planner-profile-data");
    }
    timing.Add("type", "fixed");
    timing.Add("prefill_ms", *f.prefill_ms);
    timing.Add("decode_ms", *f.decode_ms);
    engine.Add("timing_model", std::move(timing));
  } else if (f.planner_profile_data) {
    timing.Add("type", "external");
    timing.Add("provider", "dynamo_profile");
    Json config;
    config.Add("path", *f.planner_profile_data);
    timing.Add("config", std::move(config));
    engine.Add("timing_model", std::move(timing));
  }
  Json sglang;
  Put(sglang, "schedule_policy", f.sglang_schedule_policy);
  Put(sglang, "max_prefill_tokens", f.sglang_max_prefill_tokens);
  Put(sglang, "chunked_prefill_size", f.sglang_chunked_prefill_size);
  Put(sglang, "clip_max_new_tokens", f.sglang_clip_max_new_tokens);
  Put(sglang, "schedule_conservativeness", f.sglang_schedule_conservativeness);
  if (!sglang.is_null()) {
    engine.Add("sglang", std::move(sglang));
  }
  Json out;
  out.Add("engine", std::move(engine));
  Put(out, "dp_size", f.data_parallel_size);
  return out;
}

Result<engine::EngineSettings> DecodeLive(const Json& json, std::string_view where) {
  DYNO_TRY(engine::EngineSettings settings, engine::DecodeEngineSettings(json, where));
  if (settings.speedup_ratio == 0.0) {
    // Live workers read this as no delay at all.
    settings.timing = std::make_shared<timing::FixedTiming>(0.0, 0.0);
  }
  return settings;
}

bool AnySingle(const EngineFlags& f) {
  return f.num_gpu_blocks || f.block_size || f.max_model_len || f.max_num_seqs ||
         f.max_num_batched_tokens || f.data_parallel_size || f.prefix_caching ||
         f.chunked_prefill || f.preemption_mode || f.planner_profile_data || f.speedup_ratio ||
         f.decode_speedup_ratio || f.prefill_ms || f.decode_ms || f.sglang_schedule_policy ||
         f.sglang_max_prefill_tokens || f.sglang_chunked_prefill_size ||
         f.sglang_clip_max_new_tokens || f.sglang_schedule_conservativeness ||
         f.engine_type != "vllm";
}

}  // namespace

void AddEngineFlags(CLI::App& command, EngineFlags& f) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* help) {
    return Add(command, kEngineGroup, name, value, type, help);
  };
  add("--extra-engine-args", f.extra_engine_args, "JSON",
      "Engine configuration as a JSON object or a file of it; replaces the flags below");
  add("--engine-type", f.engine_type, "NAME", "vllm (default), sglang or trtllm")
      ->check(CLI::IsMember({"vllm", "sglang", "trtllm"}));
  add("--num-gpu-blocks-override", f.num_gpu_blocks, "N", "KV blocks of a rank (default 16384)");
  add("--block-size", f.block_size, "TOKENS", "Default: vllm 64, sglang 1, trtllm 32");
  add("--max-model-len", f.max_model_len, "TOKENS", "Longest sequence (default no limit)");
  add("--max-num-seqs", f.max_num_seqs, "N", "Running requests of a rank (default 256)");
  add("--max-num-batched-tokens", f.max_num_batched_tokens, "N",
      "Token budget of a pass (default 8192)");
  const auto flag = [&](const char* names, std::optional<bool>& value) {
    command
        .add_flag_function(
            names, [&value](std::int64_t count) { value = count > 0; }, "Default on")
        ->group(std::string(kEngineGroup));
  };
  flag("--enable-prefix-caching,!--no-enable-prefix-caching", f.prefix_caching);
  flag("--enable-chunked-prefill,!--no-enable-chunked-prefill", f.chunked_prefill);
  add("--preemption-mode", f.preemption_mode, "MODE", "lifo (default) or fifo");
  add("--speedup-ratio", f.speedup_ratio, "RATIO", "Divides all durations; 0: no delays");
  add("--decode-speedup-ratio", f.decode_speedup_ratio, "RATIO", "The same for decode alone");
  add("--data-parallel-size", f.data_parallel_size, "N", "Ranks of a worker (default 1)");
  add("--prefill-ms", f.prefill_ms, "MS", "Fixed time of a prefill; needs --decode-ms");
  add("--decode-ms", f.decode_ms, "MS", "Fixed time of a decode pass");
  add("--planner-profile-data", f.planner_profile_data, "PATH", "Measured profile (.npz)");
  add("--sglang-schedule-policy", f.sglang_schedule_policy, "NAME", "fifo (default) or lpm");
  add("--sglang-max-prefill-tokens", f.sglang_max_prefill_tokens, "N", "Default 16384");
  add("--sglang-chunked-prefill-size", f.sglang_chunked_prefill_size, "N", "Default 8192");
  add("--sglang-clip-max-new-tokens", f.sglang_clip_max_new_tokens, "N", "Default 4096");
  add("--sglang-schedule-conservativeness", f.sglang_schedule_conservativeness, "RATIO",
      "Default 1.0");
}

Result<engine::EngineSettings> ReadEngineFlags(const EngineFlags& f) {
  const bool json_form = !f.extra_engine_args.empty();
  if (json_form && AnySingle(f)) {
    return UsageError(std::string(kExtra), "cannot be combined with single engine flags");
  }
  DYNO_TRY(const Json json, json_form ? JsonOrFile(kExtra, f.extra_engine_args) : FlatEngine(f));
  return DecodeLive(json, json_form ? kExtra : std::string_view("engine flags"));
}

Result<engine::EngineSettings> ReadEngineJson(std::string_view flag, const std::string& text) {
  DYNO_TRY(const Json json, JsonOrFile(flag, text));
  return DecodeLive(json, flag);
}

bool AnyEngineFlag(const EngineFlags& f) { return !f.extra_engine_args.empty() || AnySingle(f); }

}  // namespace dynosim::cli
