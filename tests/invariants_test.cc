// SPDX-License-Identifier: Apache-2.0
// What holds in every run, whatever the numbers are.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "engine/settings.h"
#include "random_cases.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::testing {
namespace {

using workload::TerminalStatus;

// The engine that emits the tokens.
const engine::EngineSettings& Decoding(const scenario::Scenario& scenario) {
  return scenario.decode_engine ? *scenario.decode_engine : scenario.engine;
}

class Invariants : public ::testing::TestWithParam<std::string> {
 protected:
  template <class Check>
  void ForEachCase(const Check& check) {
    for (std::uint64_t seed = 5000; seed < 5000 + Cases(300); ++seed) {
      const RandomCase c = MakeRandomCase(seed, GetParam());
      check(c, OutcomeOf(c));
      if (HasFatalFailure()) {
        FAIL() << "seed " << seed << "\n" << c.engine << "\n" << c.trace;
      }
    }
  }
};

TEST_P(Invariants, EveryRequestIsAccountedForAndRejectionsSayWhy) {
  ForEachCase([](const RandomCase& c, const sim::Outcome& o) {
    for (std::size_t i = 0; i < o.records.size(); ++i) {
      const sim::RequestRecord& r = o.records[i];
      if (!r.terminal) {
        ASSERT_TRUE(c.scenario.max_sim_time_ms) << "only a cap may leave a request unfinished";
        continue;
      }
      const bool ended_early =
          r.status == TerminalStatus::kRejected || r.status == TerminalStatus::kFailed;
      ASSERT_EQ(ended_early, !o.details[i].rejection_reason.empty());
    }
  });
}

TEST_P(Invariants, TimesOfARequestNeverGoBack) {
  ForEachCase([](const RandomCase&, const sim::Outcome& o) {
    double last_arrival_ms = 0.0;
    for (const sim::RequestRecord& r : o.records) {
      ASSERT_GE(r.arrival_ms, last_arrival_ms);
      last_arrival_ms = r.arrival_ms;
      if (!r.terminal || r.status != TerminalStatus::kCompleted) {
        continue;
      }
      ASSERT_TRUE(r.first_admit_ms);
      ASSERT_LE(r.arrival_ms, *r.first_admit_ms);
      if (r.output_tokens >= 1) {
        ASSERT_LE(*r.first_admit_ms, r.first_token_ms);
        ASSERT_LE(r.first_token_ms, r.last_token_ms);
        ASSERT_EQ(r.last_token_ms, r.terminal_ms);
      }
      if (r.output_tokens >= 2) {
        ASSERT_LE(r.first_token_ms, r.second_token_ms);
        ASSERT_LE(r.second_token_ms, r.last_token_ms);
      }
      ASSERT_LE(r.terminal_ms, o.end_ms);
    }
  });
}

TEST_P(Invariants, PooledGapsAreOneLessThanTheTokensOfEachCompletedRequest) {
  ForEachCase([](const RandomCase&, const sim::Outcome& o) {
    std::uint64_t gaps = o.zero_gaps;
    for (const sim::GapSample& gap : o.gaps) {
      ASSERT_GT(double{gap.gap_ms}, 0.0);
      gaps += gap.weight;
    }
    std::uint64_t expected = 0;
    for (const sim::RequestRecord& r : o.records) {
      if (r.terminal && r.status == TerminalStatus::kCompleted && r.output_tokens > 0) {
        expected += r.output_tokens - 1;
      }
    }
    ASSERT_EQ(gaps, expected);
  });
}

TEST_P(Invariants, OutputNeverExceedsTheRequestAndReuseNeverExceedsTheSequence) {
  ForEachCase([](const RandomCase& c, const sim::Outcome& o) {
    for (const sim::RequestRecord& r : o.records) {
      ASSERT_LE(r.output_tokens, r.requested_output_tokens);
      ASSERT_LE(r.reused_tokens_max, r.prompt_tokens + r.requested_output_tokens);
      ASSERT_LE(r.reused_tokens_first, r.prompt_tokens);
      const engine::EngineSettings& engine = Decoding(c.scenario);
      if (engine.max_model_len && r.output_tokens > 0) {
        ASSERT_LE(r.prompt_tokens + r.output_tokens, *engine.max_model_len);
      }
    }
  });
}

TEST_P(Invariants, SamplesNeverShowMoreBlocksThanThePoolHas) {
  ForEachCase([](const RandomCase& c, const sim::Outcome& o) {
    double last_ms = 0.0;
    for (const sim::TelemetrySample& s : o.telemetry) {
      ASSERT_GE(s.sampled_at_ms, last_ms);
      last_ms = s.sampled_at_ms;
      const std::uint32_t workers =
          c.scenario.disaggregated() ? c.scenario.num_decode_workers : c.scenario.num_workers;
      ASSERT_EQ(s.decode_schedulers.size(), workers * Decoding(c.scenario).dp_size);
      for (const sim::SchedulerSample& m : s.decode_schedulers) {
        ASSERT_LE(m.active_blocks + m.inactive_blocks, m.total_blocks);
        ASSERT_LE(m.running_requests, Decoding(c.scenario).max_num_seqs);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Invariants,
                         ::testing::Values("vllm", "trtllm", "sglang", "vllm_pools",
                                           "sglang_pools"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace dynosim::testing
