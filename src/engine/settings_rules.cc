// SPDX-License-Identifier: Apache-2.0
// Rules between fields of an engine configuration, and speculation. Ranges of single fields are in
// settings_decode.cc.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "config/decode.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "engine/settings_draft.h"

namespace dynosim::engine {
namespace {

using config::Decoder;

// Token counts stay exact in doubles.
constexpr std::uint64_t kMaxPoolTokens = std::uint64_t{1} << 52;

std::uint64_t DefaultBlockSize(Backend backend) {
  switch (backend) {
    case Backend::kVllm:
      return 64;
    case Backend::kSglang:
      return 1;
    case Backend::kTrtllm:
      return 32;
  }
  return 64;
}

void CheckPool(Decoder& v, SettingsDraft& draft) {
  EngineSettings& s = draft.settings;
  s.block_size = draft.block_size.value_or(DefaultBlockSize(s.backend));
  if (s.backend != Backend::kSglang && s.block_size < 2) {
    v.Fail("block_size",
           "must be at least 2 with backend vllm or trtllm, got " + std::to_string(s.block_size));
  }
  if (s.num_gpu_blocks > kMaxPoolTokens / s.block_size) {
    v.Fail("num_gpu_blocks", "times block_size must be at most 2^52 tokens, got " +
                                 std::to_string(s.num_gpu_blocks) + " blocks of " +
                                 std::to_string(s.block_size));
  }
}

void CheckIntervals(Decoder& v, const EngineSettings& s) {
  if (s.prefill_schedule_interval != 1 && s.backend != Backend::kVllm) {
    v.Fail("prefill_schedule_interval",
           "is supported only with backend vllm; use prefill_decode_interval with backend sglang");
  }
  if (s.prefill_decode_interval != 0 && s.backend != Backend::kSglang) {
    v.Fail("prefill_decode_interval", "is supported only with backend sglang");
  }
  if (!s.enable_chunked_prefill && s.backend == Backend::kSglang) {
    v.Fail("enable_chunked_prefill", "false is not supported with backend sglang");
  }
}

void CheckSglang(Decoder& v, const EngineSettings& s) {
  if (s.backend != Backend::kSglang) {
    return;
  }
  if (s.sglang.max_prefill_tokens == 0) {
    v.Fail("sglang.max_prefill_tokens", "must be an integer >= 1, got 0");
  }
  if (s.sglang.chunked_prefill_size == 0) {
    v.Fail("sglang.chunked_prefill_size", "must be an integer >= 1, got 0");
  }
  if (s.sglang.chunked_prefill_size % s.block_size != 0) {
    v.Fail("sglang.chunked_prefill_size", "must be divisible by block_size " +
                                              std::to_string(s.block_size) + ", got " +
                                              std::to_string(s.sglang.chunked_prefill_size));
  }
  if (s.sglang.schedule_conservativeness < 0.0) {
    v.Fail("sglang.schedule_conservativeness", "must be a finite number >= 0");
  }
}

std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::optional<double> ParseNumber(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  double value = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// One entry per comma; empty after an error.
std::vector<double> ParseRates(Decoder& v, std::string_view text) {
  std::vector<double> rates;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = Trim(text.substr(0, comma));
    const auto rate = ParseNumber(entry);
    if (!rate || !(*rate >= 0.0 && *rate <= 1.0)) {
      v.Fail("aic_nextn_accept_rates", "entry " + std::to_string(rates.size()) +
                                           " must be a number from 0 to 1, got " +
                                           config::Shown(Json(entry)));
      return {};
    }
    rates.push_back(*rate);
    if (comma == text.size()) {
      return rates;
    }
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

void ResolveSpeculation(Decoder& v, SettingsDraft& draft) {
  EngineSettings& s = draft.settings;
  if (!draft.draft_tokens) {
    if (draft.accept_rates) {
      v.Fail("aic_nextn_accept_rates", "requires aic_nextn");
    }
    return;
  }
  if (s.decode_speedup_ratio != 1.0) {
    v.Fail("decode_speedup_ratio",
           "must be 1 with aic_nextn: speculative bursts already speed up decoding");
  }
  const std::string given = draft.accept_rates.value_or("");
  const std::string_view text = Trim(given);
  s.accept_rates =
      text.empty() ? std::vector<double>{0.85, 0.3, 0.0, 0.0, 0.0} : ParseRates(v, text);
  s.speculative_tokens = static_cast<std::uint32_t>(*draft.draft_tokens);
  s.accept_rates.resize(s.speculative_tokens, 0.0);
}

void CheckEngine(Decoder& v, SettingsDraft& draft) {
  EngineSettings& s = draft.settings;
  CheckPool(v, draft);
  CheckIntervals(v, s);
  ResolveSpeculation(v, draft);
  if (s.backend == Backend::kTrtllm && s.worker_role != WorkerRole::kAggregated) {
    v.Fail("worker_type",
           "must be aggregated with backend trtllm (TensorRT-LLM does not run in "
           "prefill/decode mode), got " +
               std::string(WorkerRoleName(s.worker_role)));
  }
  if (s.emit_kv_token_ids && !s.emit_kv_events) {
    v.Fail("emit_kv_token_ids", "requires emit_kv_events");
  }
  if (draft.kv_bytes_per_token && s.kv_transfer_bytes_per_token) {
    v.Fail("kv_bytes_per_token",
           "is another name of kv_transfer_bytes_per_token; give one of them");
  } else if (draft.kv_bytes_per_token) {
    s.kv_transfer_bytes_per_token = draft.kv_bytes_per_token;
  }
  CheckSglang(v, s);
}

// With data-parallel attention every SGLang rank gets an equal share of the chunk.
void CheckLaunch(Decoder& v, const SettingsDraft& draft, const std::string& prefix) {
  const EngineSettings& s = draft.settings;
  if (s.backend == Backend::kSglang && s.sglang.chunked_prefill_size < s.dp_size) {
    v.Fail(prefix + "sglang.chunked_prefill_size",
           "divided by dp_size " + std::to_string(s.dp_size) + " must be at least 1, got " +
               std::to_string(s.sglang.chunked_prefill_size));
  }
}

}  // namespace dynosim::engine
