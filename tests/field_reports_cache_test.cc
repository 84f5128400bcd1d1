// SPDX-License-Identifier: Apache-2.0
// Prefix-cache counts that users of serving systems found wrong, kind by kind. A hit is a leading
// run of whole blocks that are in the cache at admission; it is counted once.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "field_replay.h"

namespace dynosim::testing {
namespace {

using Strings = std::vector<std::string>;

const Strings kPaged = {"vllm", "trtllm"};

constexpr const char* kReused = "reused_input_tokens";
constexpr const char* kComputed = "committed_prefill_tokens";
constexpr const char* kRatio = "prefix_cache_reused_ratio";
constexpr const char* kTtft = "ttft_ms";
constexpr const char* kEnd = "terminal_time_ms";

TEST(CacheReports, AHitIsALeadingRunOfBlocks) {
  ExpectResults({{.what = "another first block makes the rest useless",
                  .replay = {.rows = {"0/192/2[1 2 3]", "100/192/2[1 2 4]", "200/192/2[9 2 3]"}},
                  .expected = {{kReused, "0 128 0"}, {kComputed, "448"}}},
                 {.what = "nothing counts behind a hole",
                  .replay = {.rows = {"0/256/2[1 2 3 4]", "100/256/2[1 9 3 4]"}},
                  .expected = {{kReused, "0 64"}, {kComputed, "448"}}},
                 {.what = "equal blocks at another place are no hit",
                  .replay = {.rows = {"0/192/2[1 2 3]", "100/192/2[2 3 1]"}},
                  .expected = {{kReused, "0 0"}, {kComputed, "384"}}}},
                kPaged);
}

TEST(CacheReports, TheTailOfAPromptIsEvictedBeforeItsHead) {
  // With room for 6 blocks, the second prompt takes the 2 free ones and evicts for the others; a
  // generated token needs a block as well, but the last one does not.
  ExpectResults(
      {{.what = "4 blocks and 1 for a generated token evict 3",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "100/256/2[11..14]", "200/256/2[1 2 3 4]"},
                   .engine = R"("num_gpu_blocks":6)"},
        .expected = {{kReused, "0 0 64"}, {kComputed, "704"}}},
       {.what = "3 blocks and 1 for a generated token evict 2",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "100/192/2[11..13]", "200/256/2[1 2 3 4]"},
                   .engine = R"("num_gpu_blocks":6)"},
        .expected = {{kReused, "0 0 128"}, {kComputed, "576"}}},
       {.what = "4 blocks evict 2",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "100/256/1[11..14]", "200/256/2[1 2 3 4]"},
                   .engine = R"("num_gpu_blocks":6)"},
        .expected = {{kReused, "0 0 128"}, {kComputed, "640"}}}});
}

TEST(CacheReports, AWholeCachedPromptStillComputesItsLastBlock) {
  ExpectResults(
      {{.what = "two blocks",
        .replay = {.rows = {"0/128/4[1 2]", "100/128/4[1 2]"}},
        .expected = {{kReused, "0 64"}, {kTtft, "10 10"}, {kComputed, "192"}, {kEnd, "16 116"}}},
       {.what = "one block",
        .replay = {.rows = {"0/64/2[1]", "100/64/2[1]"}},
        .expected = {{kReused, "0 0"}, {kTtft, "10 10"}, {kComputed, "128"}}},
       {.what = "without output nothing is left to compute, and the pass takes no time",
        .replay = {.rows = {"0/128/0[1 2]", "100/128/0[1 2]", "200/64/2[7]"}},
        .expected = {{kReused, "0 128 0"},
                     {kComputed, "192"},
                     {kEnd, "10 100 212"},
                     {"completed_requests", "3"}}}},
      {"vllm"});
}

TEST(CacheReports, TensorRtLlmDecodesAWholeCachedPromptAtOnce) {
  ExpectResults(
      {{.what = "the first token comes from a decode pass",
        .replay = {.rows = {"0/128/4[1 2]", "100/128/4[1 2]"}},
        .expected = {{kReused, "0 128"}, {kTtft, "10 2"}, {kComputed, "128"}, {kEnd, "16 108"}}},
       {.what = "one token more is computed",
        .replay = {.rows = {"0/129/4[1 2 3]", "100/129/4[1 2 3]"}},
        .expected = {{kReused, "0 128"}, {kTtft, "10 10"}, {kComputed, "130"}}}},
      {"trtllm"});
}

TEST(CacheReports, SglangComputesOneTokenOrThePageThatHoldsIt) {
  const std::string pages_of_1 = R"("block_size":1,"num_gpu_blocks":65536)";
  const std::string pages_of_16 = R"("block_size":16,"num_gpu_blocks":4096)";
  const Strings rows = {"0/4096/2[0..7]", "1000/4096/2[0..7]"};
  ExpectResults({{.what = "pages of 1",
                  .replay = {.rows = rows, .engine = pages_of_1, .trace_block = "512"},
                  .expected = {{kReused, "0 4095"}, {kTtft, "10 10"}, {kComputed, "4097"}}},
                 {.what = "pages of 16",
                  .replay = {.rows = rows, .engine = pages_of_16, .trace_block = "512"},
                  .expected = {{kReused, "0 4080"}, {kTtft, "10 10"}, {kComputed, "4112"}}}},
                {"sglang"});
}

TEST(CacheReports, TheCachedPrefixIsNotCutAtTheChunkSize) {
  // Chunks are 8192 tokens: only what is not cached counts in them.
  const std::string pages = R"("block_size":1,"num_gpu_blocks":65536)";
  const auto replay = [&pages](Strings rows) {
    return FieldReplay{.rows = std::move(rows), .engine = pages, .trace_block = "512"};
  };
  ExpectResults({{.what = "a cached prompt of two chunks needs one pass",
                  .replay = replay({"0/16384/2[0..31]", "1000/16384/2[0..31]"}),
                  .expected = {{kReused, "0 16383"}, {kTtft, "20 10"}, {kComputed, "16385"}}},
                 {.what = "half of it cached: one chunk is left",
                  .replay = replay({"0/16384/2[0..31]", "1000/16384/2[0..15 100..115]"}),
                  .expected = {{kReused, "0 8192"}, {kTtft, "20 10"}, {kComputed, "24576"}}},
                 {.what = "a third of three chunks cached: two are left",
                  .replay = replay({"0/24576/2[0..47]", "1000/24576/2[0..15 100..131]"}),
                  .expected = {{kReused, "0 8192"}, {kTtft, "30 20"}, {kComputed, "40960"}}}},
                {"sglang"});
}

TEST(CacheReports, AWaitingRequestCountsItsHitsOnceAtAdmission) {
  // The second request leaves too few of 12 blocks for the third, which then waits for its end.
  const std::string engine = R"("num_gpu_blocks":12)";
  ExpectResults(
      {{.what = "with 10 blocks it evicts two cached ones",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "50/512/100[20..27]", "60/256/2[1 2 3 5]"},
                   .engine = engine},
        .expected = {{kReused, "0 0 128"},
                     {kRatio, "0.125"},
                     {"first_admit_ms", "0 50 258"},
                     {"admission_count", "1 1 1"},
                     {kEnd, "12 258 270"}}},
       {.what = "with 9 blocks it evicts one, which the third does not need",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "50/512/40[20..27]", "60/256/2[1 2 3 5]"},
                   .engine = engine},
        .expected = {{kReused, "0 0 192"}, {kRatio, "0.1875"}, {kEnd, "12 138 150"}}}},
      {"vllm"});
}

TEST(CacheReports, AChunkedPromptCountsItsHitsOnce) {
  const std::string engine = R"("max_num_batched_tokens":128)";
  ExpectResults(
      {{.what = "two chunks, then one",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "100/256/2[1 2 3 4]"}, .engine = engine},
        .expected = {{kReused, "0 192"}, {kRatio, "0.375"}, {kComputed, "320"}, {kTtft, "20 10"}}}},
      {"vllm"});
  ExpectResults(
      {{.what = "three chunks, then two behind the hit",
        .replay = {.rows = {"0/384/2[1..6]", "100/384/2[1 2 3 9 10 11]"}, .engine = engine},
        .expected = {{kReused, "0 192"}, {kRatio, "0.25"}, {kComputed, "576"}, {kTtft, "30 20"}}}},
      kPaged);
}

TEST(CacheReports, OnlyWholeBlocksHit) {
  ExpectResults({{.what = "36 tokens of the second block",
                  .replay = {.rows = {"0/100/2[1 2]", "100/100/2[1 2]"}},
                  .expected = {{kReused, "0 64"}, {kComputed, "136"}}},
                 {.what = "one token short of a block, and one token more",
                  .replay = {.rows = {"0/128/2[1 2]", "100/127/2[1 2]", "200/129/2[1 2 3]"}},
                  .expected = {{kReused, "0 64 128"}, {kComputed, "192"}}}},
                kPaged);
}

TEST(CacheReports, TheNumberOfIdsMustSufficeAndMoreAreWarnedAbout) {
  EXPECT_TRUE(Replayed({.rows = {"0/640/2[1]"}})
                  .error.ends_with(":1: input_length 640 exceeds the capacity 64 of its hash_ids "
                                   "(1 ids of 64 tokens)"));
  EXPECT_TRUE(Replayed({.rows = {"0/64/2[1]", "0/65/2[1]"}})
                  .error.ends_with(":2: input_length 65 exceeds the capacity 64 of its hash_ids (1 "
                                   "ids of 64 tokens)"));
  const FieldResult surplus = Replayed({.rows = {"0/64/2[1 2 3]", "100/65/2[1 2]"}});
  EXPECT_EQ(surplus.Of(kReused), "0 64");
  ASSERT_EQ(surplus.warnings.size(), 1U);
  EXPECT_TRUE(
      surplus.warnings[0].ends_with(":1: hash_ids has more ids than input_length needs; "
                                    "the rest is ignored (1 row)"))
      << surplus.warnings[0];
}

TEST(CacheReports, OnlyEngineBlocksThatAreEqualInFullHit) {
  ExpectResults({{.what = "trace blocks of 512",
                  .replay = {.rows = {"0/1000/2[1 2]", "100/1000/2[1 2]", "200/700/2[1 3]"},
                             .trace_block = "512"},
                  .expected = {{kReused, "0 960 512"}}},
                 {.what = "trace blocks of half an engine block",
                  .replay = {.rows = {"0/256/2[1 2 3 4]", "100/256/2[1 2 3 5]"},
                             .engine = R"("block_size":128)"},
                  .expected = {{kReused, "0 128"}}},
                 {.what = "200 equal tokens hold three whole blocks of 64",
                  .replay = {.rows = {"0/250/2[1 2 3]", "100/250/2[1 2 4]"}, .trace_block = "100"},
                  .expected = {{kReused, "0 192"}}}},
                kPaged);
}

TEST(CacheReports, CopiesInOneBatchHitWhatTheFirstOneComputes) {
  ExpectResults(
      {{.what = "two in one pass",
        .replay = {.rows = {"0/192/2[1 2 3]", "0/192/2[1 2 3]"}},
        .expected = {{kReused, "0 128"}, {kTtft, "10 10"}, {kEnd, "12 12"}, {kComputed, "256"}}},
       {.what = "three in one pass",
        .replay = {.rows = {"0/192/2[1 2 3]", "0/192/2[1 2 3]", "0/192/2[1 2 3]"}},
        .expected = {{kReused, "0 128 128"}, {kEnd, "12 12 12"}, {kComputed, "320"}}},
       {.what = "a budget for one: the copy joins the decode of the first",
        .replay = {.rows = {"0/192/2[1 2 3]", "0/192/2[1 2 3]"},
                   .engine = R"("max_num_batched_tokens":192)"},
        .expected = {{kReused, "0 128"}, {kTtft, "10 22"}, {kEnd, "22 24"}}}},
      {"vllm"});
  ExpectResults({{.what = "without prefix caching",
                  .replay = {.rows = {"0/192/2[1 2 3]", "0/192/2[1 2 3]"},
                             .engine = R"("enable_prefix_caching":false)"},
                  .expected = {{kReused, "0 0"}, {kEnd, "12 12"}, {kComputed, "384"}}}},
                kPaged);
}

}  // namespace
}  // namespace dynosim::testing
