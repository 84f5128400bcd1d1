// SPDX-License-Identifier: Apache-2.0
#include "sim/pass_recorder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/effects.h"
#include "engine/pass_log.h"
#include "sim/outcome.h"

namespace dynosim::sim {

void PassRecorder::OnPrefill(std::uint64_t pass, std::uint64_t tokens) {
  if (tokens == 0) {
    return;
  }
  if (!prefills_.empty() && prefills_.back().pass == pass) {
    prefills_.back().tokens += tokens;
  } else {
    prefills_.push_back({pass, tokens});
  }
}

void PassRecorder::OnCompleted(const engine::TokenTrack& track) {
  for (const engine::PassSpan& span : track.spans) {
    differences_.resize(std::max<std::size_t>(differences_.size(), span.last + 2));
    ++differences_[span.first];
    --differences_[span.last + 1];
  }
}

void PassRecorder::Settle(std::uint64_t pass, const engine::PassLog& log) {
  const std::uint64_t end = std::min(pass, log.last() + 1);
  for (std::uint64_t p = ends_ms_.size() + 1; p < end; ++p) {
    ends_ms_.push_back(log.EndMs(p));
  }
}

void PassRecorder::MoveTo(std::vector<PassRecord>& passes, double end_ms) {
  auto start = starts_.begin();
  auto prefill = prefills_.begin();
  std::int64_t requests = 0;
  double last_end_ms = 0.0;
  differences_.resize(std::max(differences_.size(), ends_ms_.size() + 1), 0);
  passes.reserve(passes.size() + ends_ms_.size());
  for (std::uint64_t pass = 1; pass <= ends_ms_.size() && ends_ms_[pass - 1] <= end_ms; ++pass) {
    PassRecord record{
        .pool = pool_, .worker = worker_, .start_ms = last_end_ms, .end_ms = ends_ms_[pass - 1]};
    if (start != starts_.end() && start->pass == pass) {
      record.start_ms = start->at_ms;
      ++start;
    }
    if (prefill != prefills_.end() && prefill->pass == pass) {
      record.prefill_tokens = prefill->tokens;
      ++prefill;
    }
    requests += differences_[pass];
    record.requests = static_cast<std::uint32_t>(requests);
    last_end_ms = record.end_ms;
    passes.push_back(record);
  }
  *this = PassRecorder(pool_, worker_);
}

}  // namespace dynosim::sim
