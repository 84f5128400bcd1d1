// SPDX-License-Identifier: Apache-2.0
// What one forward pass of a rank did, as values. Admissions happen at the start of the pass;
// signals become visible at its end, in this order. Buffers are reused from pass to pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynosim::engine {

inline constexpr std::uint32_t kNoSlot = 0xFFFFFFFFU;

// A run of consecutive passes of one worker, each of which gave the request at least one token.
struct PassSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

// When a request got its tokens, in pass numbers of its worker.
struct TokenTrack {
  std::uint64_t tokens = 0;       // emitted tokens
  std::uint64_t first_burst = 0;  // tokens of the first pass that gave any
  std::vector<PassSpan> spans;    // in order, not adjacent
};

struct Admission {
  std::uint32_t request = 0;
  std::uint64_t reused_tokens = 0;
};

// Why a request was rejected; numbers are tokens or blocks as the text says.
struct Rejection {
  enum class Reason : std::uint8_t {
    kContextLimit,    // prompt not below max_model_len
    kPromptOverPool,  // prompt needs more blocks than the pool has
    kTotalOverPool,   // prompt and output together need more blocks than the pool has
    kTokenBudget,     // prompt above the token budget with chunked prefill off
    kNoProgress,      // nothing else applies and the rank cannot proceed
  };
  Reason reason = Reason::kNoProgress;
  std::uint64_t needed = 0;
  std::uint64_t available = 0;
  std::string Text() const;
};

// A granted reservation of a handoff destination.
struct Grant {
  std::uint32_t request = 0;
  std::uint64_t fresh_blocks = 0;  // blocks of the prompt that were not resident
};

// Tokens that a request received in one pass.
struct TokenGain {
  std::uint32_t request = 0;
  std::uint32_t tokens = 0;
};

struct Signal {
  enum class Kind : std::uint8_t { kFirstToken, kFinished, kRejected };
  Kind kind = Kind::kFinished;
  std::uint32_t request = 0;
  std::uint32_t index = 0;  // kFinished: into finished; kRejected: into rejections
};

// Forward-pass metrics of one rank and pass (chapter 10, section 9). Only filled on request.
struct ForwardPassMetrics {
  struct Group {
    std::uint64_t requests = 0;
    std::uint64_t tokens = 0;  // sum over requests
    double variance = 0.0;     // population variance
  };
  std::uint64_t prefill_requests = 0;
  std::uint64_t prefill_tokens = 0;
  double prefill_length_variance = 0.0;
  std::uint64_t prefill_kv_tokens = 0;
  Group decode;              // context tokens
  Group queued_prefill;      // prompt tokens
  Group queued_decode;       // context tokens
  double duration_ms = 0.0;  // of the worker's pass
};

// One preemption (chapter 10, section 9).
struct PressureEvent {
  std::uint32_t request = 0;
  std::uint64_t running_before = 0, running_after = 0;
  std::uint64_t waiting_before = 0, waiting_after = 0;
  std::uint64_t active_blocks_before = 0, active_blocks_after = 0;
  std::uint64_t victim_blocks = 0;
};

struct PassEffects {
  std::vector<Admission> admissions;
  std::vector<Signal> signals;
  std::vector<TokenTrack> finished;
  std::vector<Rejection> rejections;
  std::vector<PressureEvent> pressure;  // only when captured
  std::vector<TokenGain> gains;         // in order of emission; only when captured
  std::vector<std::uint32_t> held;  // prefill ranks: requests whose KV now waits for the handoff
  std::uint64_t committed_prefill_tokens = 0;
  std::uint64_t decode_forwards = 0;  // ready requests without prompt tokens, summed over passes
  std::uint64_t decode_tokens = 0;    // tokens they received
  bool had_effect = false;            // anything changed
  bool ran = false;                   // SGLang: there was a batch, or something to decode
  bool failed = false;                // the timing model gave no finite duration

  void Clear() {
    admissions.clear();
    signals.clear();
    finished.clear();
    rejections.clear();
    pressure.clear();
    gains.clear();
    held.clear();
    committed_prefill_tokens = 0;
    decode_forwards = 0;
    decode_tokens = 0;
    had_effect = false;
    ran = false;
    failed = false;
  }
};

// Gauges and counters of one rank (chapter 10, section 9).
struct RankMetrics {
  std::uint64_t active_blocks = 0;
  std::uint64_t inactive_blocks = 0;
  std::uint64_t total_blocks = 0;
  std::uint64_t running_requests = 0;
  std::uint64_t waiting_requests = 0;
  std::uint64_t preemptions_total = 0;
  std::uint64_t cache_hit_tokens = 0;
  std::uint64_t cache_total_tokens = 0;
};

}  // namespace dynosim::engine
