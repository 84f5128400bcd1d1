// SPDX-License-Identifier: Apache-2.0
// For tests: a few requests with hand-made page names, played on one worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/core.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "engine/sglang/core.h"
#include "engine/worker.h"
#include "timing/fixed.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine::sglang {

// A prompt is `shared` pages of a group that others may start with, then its own pages.
struct Row {
  double at_ms = 0.0;
  std::uint64_t prompt = 1;
  std::uint64_t output = 1;
  std::uint32_t group = 0;   // 0: nothing is shared
  std::uint32_t shared = 0;  // pages
  std::uint32_t rank = 0;
};

class RowSource final : public workload::RequestSource {
 public:
  RowSource(std::vector<Row> rows, std::uint64_t page_size)
      : rows_(std::move(rows)), page_size_(page_size) {}

  const std::vector<Row>& rows() const { return rows_; }
  workload::Request Get(std::uint32_t id) const {
    return {.id = id,
            .arrival_ms = rows_[id].at_ms,
            .prompt_tokens = rows_[id].prompt,
            .output_tokens = rows_[id].output};
  }

  std::optional<double> NextReadyMs() const override { return std::nullopt; }
  bool Exhausted() const override { return true; }
  bool Release(double, workload::Request&) override { return false; }
  void OnTerminal(std::uint32_t, double, workload::TerminalStatus, std::uint64_t) override {}
  void Blocks(std::uint32_t id, std::uint64_t,
              std::vector<workload::BlockExtent>& out) const override {
    const Row& row = rows_[id];
    const auto pages = static_cast<std::uint32_t>(row.prompt / page_size_);
    const std::uint32_t shared = row.group == 0 ? 0 : std::min(row.shared, pages);
    out.clear();
    if (shared > 0) {
      out.push_back({.group = row.group, .first = 0, .count = shared});
    }
    if (pages > shared) {
      out.push_back({.group = 1000 + 2 * id, .first = 0, .count = pages - shared});
    }
    out.push_back({.group = 1001 + 2 * id, .first = 0, .count = workload::kEndless});
  }
  std::uint32_t RequestCount() const override { return static_cast<std::uint32_t>(rows_.size()); }
  bool SharesGeneratedBlocks() const override { return false; }
  std::string SessionName(std::uint32_t) const override { return {}; }
  std::string_view PolicyClassName(std::uint32_t) const override { return {}; }
  void PromptTokens(std::uint32_t, std::vector<std::uint32_t>&) const override {}
  std::uint32_t OutputToken(std::uint32_t, std::uint64_t) const override { return 0; }

 private:
  std::vector<Row> rows_;
  std::uint64_t page_size_;
};

inline EngineSettings Settings(std::uint64_t pages, std::uint64_t page_size = 1,
                               double prefill_ms = 20.0, double decode_ms = 5.0) {
  EngineSettings s;
  s.backend = Backend::kSglang;
  s.num_gpu_blocks = pages;
  s.block_size = page_size;
  s.timing = std::make_shared<timing::FixedTiming>(prefill_ms, decode_ms);
  return s;
}

struct Played {
  std::vector<std::pair<double, std::uint64_t>> admissions;  // time, reused tokens
  std::vector<double> tokens_ms;                             // passes that gave tokens
  std::uint64_t tokens = 0;
  double end_ms = -1.0;
  std::optional<Rejection::Reason> rejected;
  friend bool operator==(const Played&, const Played&) = default;
};

class Player {
 public:
  Player(const EngineSettings& settings, std::vector<Row> rows, WorkerOptions options = {})
      : source_(std::move(rows), settings.block_size),
        worker_(settings, 0, options),
        played_(source_.rows().size()) {}

  // Rows are in order of time. Returns what became of each.
  const std::vector<Played>& Play() {
    std::size_t next = 0;
    const auto& rows = source_.rows();
    while (true) {
      const bool arrives = next < rows.size();
      double now = arrives ? std::max(rows[next].at_ms, now_ms_) : now_ms_;
      if (worker_.Busy() && (!arrives || worker_.NextMs() < now)) {
        now = worker_.NextMs();
      } else if (!worker_.Busy() && !arrives && !worker_.CanStart()) {
        return played_;
      }
      now_ms_ = now;
      if (worker_.Busy() && worker_.NextMs() == now) {
        End();
      }
      for (; next < rows.size() && rows[next].at_ms <= now; ++next) {
        const bool was_busy = worker_.Busy();
        worker_.Submit(source_.Get(static_cast<std::uint32_t>(next)), source_, rows[next].rank, now,
                       true);
        if (was_busy && !worker_.Busy()) {
          Apply();
        }
      }
      Start();
    }
  }

  Worker& worker() { return worker_; }
  const SglangCore& core(std::uint32_t rank = 0) const {
    return static_cast<const SglangCore&>(worker_.core(rank));
  }
  std::uint64_t passes_without_effect() const { return idle_; }

  // All signals so far, in their order.
  const std::vector<std::pair<std::uint32_t, Signal::Kind>>& signals() const { return signals_; }

 private:
  void Start() {
    while (worker_.CanStart()) {
      worker_.Start(now_ms_);
      for (std::uint32_t rank = 0; rank < worker_.ranks(); ++rank) {
        for (const Admission& a : worker_.Effects(rank).admissions) {
          played_[a.request].admissions.emplace_back(now_ms_, a.reused_tokens);
        }
      }
      if (worker_.NextMs() > now_ms_) {
        return;
      }
      End();
      idle_ += worker_.HadEffect() ? 0 : 1;
      DYNO_CHECK(idle_ < 100000);
    }
  }
  void End() {
    worker_.Complete();
    Apply();
  }
  void Apply() {
    for (std::uint32_t rank = 0; rank < worker_.ranks(); ++rank) {
      const PassEffects& effects = worker_.Effects(rank);
      for (const Signal& signal : effects.signals) {
        signals_.emplace_back(signal.request, signal.kind);
        Played& p = played_[signal.request];
        if (signal.kind == Signal::Kind::kFirstToken) {
          continue;
        }
        p.end_ms = now_ms_;
        if (signal.kind == Signal::Kind::kRejected) {
          p.rejected = effects.rejections[signal.index].reason;
          continue;
        }
        const TokenTrack& track = effects.finished[signal.index];
        p.tokens = track.tokens;
        for (const PassSpan& span : track.spans) {
          for (std::uint64_t pass = span.first; pass <= span.last; ++pass) {
            p.tokens_ms.push_back(worker_.log().EndMs(pass));
          }
        }
      }
      core(rank).cache().CheckInvariants(core(rank).PagesOutsideTree());
    }
  }

  RowSource source_;
  Worker worker_;
  std::vector<std::pair<std::uint32_t, Signal::Kind>> signals_;
  std::vector<Played> played_;
  double now_ms_ = 0.0;
  std::uint64_t idle_ = 0;
};

}  // namespace dynosim::engine::sglang
