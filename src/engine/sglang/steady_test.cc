// SPDX-License-Identifier: Apache-2.0
// The calendar against plain execution: random small cases, every time, count and KV event equal.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "base/random.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "engine/sglang/core.h"
#include "engine/sglang/replay_fixture.h"
#include "engine/worker.h"
#include "kv/events.h"
#include "timing/polynomial.h"

namespace dynosim::engine::sglang {
namespace {

template <class T>
T Pick(ChaCha12& random, std::initializer_list<T> values) {
  return values.begin()[random.NextBelow(static_cast<std::uint32_t>(values.size()))];
}

EngineSettings RandomSettings(ChaCha12& random) {
  const auto page_size = Pick<std::uint64_t>(random, {1, 1, 2, 4, 8});
  EngineSettings s = Settings((24 + random.NextBelow(200)) / page_size + 1, page_size,
                              random.NextBelow(4) * 5.0, random.NextBelow(4) * 2.5);
  if (random.NextBelow(3) == 0) {
    s.timing = std::make_shared<timing::PolynomialTiming>();
  }
  s.max_num_seqs = Pick<std::uint64_t>(random, {1, 2, 3, 8, 256});
  s.enable_prefix_caching = random.NextBelow(5) != 0;
  s.prefill_decode_interval = Pick<std::uint64_t>(random, {0, 0, 0, 1, 3});
  s.dp_size = Pick<std::uint32_t>(random, {1, 1, 1, 2});
  s.sglang.schedule_policy = Pick(random, {SglangPolicy::kFifo, SglangPolicy::kLpm});
  s.sglang.chunked_prefill_size = page_size * s.dp_size * (1 + random.NextBelow(24));
  s.sglang.max_prefill_tokens = 16 + random.NextBelow(64);
  s.sglang.clip_max_new_tokens = Pick<std::uint64_t>(random, {0, 4, 16, 4096});
  s.sglang.schedule_conservativeness = Pick(random, {0.0, 0.1, 0.5, 1.0});
  if (random.NextBelow(6) == 0) {
    s.max_model_len = 60;
  }
  if (random.NextBelow(8) == 0) {
    s.speculative_tokens = 2;
    s.accept_rates = {0.7, 0.5};
  }
  return s;
}

std::vector<Row> RandomRows(ChaCha12& random, std::uint32_t ranks) {
  std::vector<Row> rows(4 + random.NextBelow(30));
  double at_ms = 0.0;
  for (Row& row : rows) {
    at_ms += random.NextBelow(4) * Pick(random, {0.0, 2.5, 10.0});
    row = {.at_ms = at_ms,
           .prompt = 1 + random.NextBelow(50),
           .output = Pick<std::uint64_t>(random, {0, 1, 2, 5, 30}),
           .group = random.NextBelow(4),
           .shared = random.NextBelow(40),
           .rank = random.NextBelow(ranks)};
  }
  return rows;
}

// KV events replayed into counts by name.
std::map<kv::BlockName, int> Resident(const std::vector<KvEventBuffer::Entry>& entries) {
  std::map<kv::BlockName, int> resident;
  for (const KvEventBuffer::Entry& entry : entries) {
    for (const kv::BlockName name : entry.event.blocks) {
      if (entry.event.kind == kv::KvEvent::Kind::kStored) {
        resident[name] = 1;
      } else {
        EXPECT_EQ(resident.erase(name), 1U);
      }
    }
  }
  return resident;
}

bool operator==(const KvEventBuffer::Entry& a, const KvEventBuffer::Entry& b) {
  return a.pass == b.pass && a.event.kind == b.event.kind && a.event.event_id == b.event.event_id &&
         a.event.request == b.event.request && a.event.first_block == b.event.first_block &&
         a.event.blocks == b.event.blocks;
}

TEST(SglangCalendar, GivesTheResultsOfPassByPassExecution) {
  for (std::uint64_t seed = 0; seed < Cases(2000); ++seed) {
    ChaCha12 random(seed);
    const EngineSettings settings = RandomSettings(random);
    const std::vector<Row> rows = RandomRows(random, settings.dp_size);
    Player plain(settings, rows, {.fast_path = false});
    const auto want = plain.Play();
    for (const bool events : {false, true}) {
      Player fast(settings, rows, {.capture_kv_events = events});
      const auto& got = fast.Play();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(got[i], want[i]) << "seed " << seed << " request " << i << " events " << events;
        ASSERT_GE(got[i].end_ms, 0.0) << "seed " << seed << " request " << i;
      }
      ASSERT_EQ(fast.worker().passes(), plain.worker().passes()) << "seed " << seed;
      for (std::uint32_t rank = 0; rank < settings.dp_size; ++rank) {
        ASSERT_EQ(fast.core(rank).new_token_ratio(), plain.core(rank).new_token_ratio())
            << "seed " << seed << " rank " << rank;
        ASSERT_EQ(fast.core(rank).cache().free(), plain.core(rank).cache().free());
        ASSERT_EQ(fast.core(rank).cache().protected_pages(), 0U);
        ASSERT_EQ(fast.core(rank).PagesOutsideTree(), 0U);
      }
    }
  }
}

TEST(SglangCalendar, KvEventsAreThoseOfPassByPassExecutionAndEndWithWhatIsCached) {
  for (std::uint64_t seed = 0; seed < Cases(1000); ++seed) {
    ChaCha12 random(seed);
    const EngineSettings settings = RandomSettings(random);
    const std::vector<Row> rows = RandomRows(random, settings.dp_size);
    Player plain(settings, rows, {.fast_path = false, .capture_kv_events = true});
    Player fast(settings, rows, {.capture_kv_events = true});
    plain.Play();
    fast.Play();
    for (std::uint32_t rank = 0; rank < settings.dp_size; ++rank) {
      const auto& want = plain.worker().kv_events(rank);
      const auto& got = fast.worker().kv_events(rank);
      ASSERT_EQ(got.size(), want.size()) << "seed " << seed;
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(got[i] == want[i]) << "seed " << seed << " event " << i;
      }
      ASSERT_EQ(Resident(got).size(), fast.core(rank).cache().evictable()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace dynosim::engine::sglang
