// SPDX-License-Identifier: Apache-2.0
// Streams of recorded conversations: preambles, chains, forks and seams.
#include "workload/traces/weka_streams.h"

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace dynosim::workload {
namespace {

using Hashes = std::vector<std::uint64_t>;
using Streams = std::vector<std::vector<std::uint32_t>>;

class WekaStreamsTest : public testing::Test {
 protected:
  void Add(double t, double end, Hashes hashes, std::uint64_t output = 100,
           std::uint32_t model = 0) {
    hashes_.push_back(std::move(hashes));
    requests_.push_back({.id = std::to_string(requests_.size()),
                         .t = t,
                         .end = end,
                         .model = model,
                         .output_tokens = output,
                         .hashes = hashes_.back()});
  }
  Streams Split() {
    split_ = SplitWekaStreams(requests_);
    Streams streams;
    for (const WekaStream& stream : split_) {
      streams.push_back(stream.requests);
    }
    return streams;
  }

  std::deque<Hashes> hashes_;
  std::vector<WekaStreamRequest> requests_;
  std::vector<WekaStream> split_;
};

TEST_F(WekaStreamsTest, ARequestContinuesTheLongestPromptThatItBeginsWith) {
  Add(0, 1, {1, 2});
  Add(2, 3, {1, 2, 3});
  Add(4, 5, {1, 2, 3, 4});
  EXPECT_EQ(Split(), (Streams{{0, 1, 2}}));
}

TEST_F(WekaStreamsTest, AnotherModelOrAnEarlierStartIsAForkOfTheLongestEqualBeginning) {
  Add(0, 1, {1, 2});
  Add(2, 3, {1, 2, 3}, 100, 1);
  Add(0.5, 3, {1, 2, 4});
  EXPECT_EQ(Split(), (Streams{{0}, {2}, {1}}));
  EXPECT_EQ(split_[1].fork_source, 0U);
  EXPECT_EQ(split_[2].fork_source, 2U);  // as deep as in request 0, and the longer prompt
}

TEST_F(WekaStreamsTest, AForkThatStartsWhereAStreamEndedIsSplicedWithIt) {
  Add(0, 1, {1, 2, 3});
  Add(2, 3, {1, 2, 9});  // shares two of three blocks
  EXPECT_EQ(Split(), (Streams{{0, 1}}));
}

TEST_F(WekaStreamsTest, AfterALongPauseLittleInCommonIsNoSeam) {
  Add(0, 1, {1, 2, 3});
  Add(4000, 4001, {1, 8, 9});
  EXPECT_EQ(Split(), (Streams{{0}, {1}}));
}

TEST_F(WekaStreamsTest, TheDeepestForkIsSplicedAndLaterOnesForkFromItsEnd) {
  Add(0, 1, {1, 2, 3});
  Add(2, 9, {1, 7});
  Add(2, 3, {1, 2, 8});
  Add(4, 5, {1, 2, 6});
  EXPECT_EQ(Split(), (Streams{{0, 2, 3}, {1}}));
}

TEST_F(WekaStreamsTest, AShortUnrelatedFirstRequestIsAPreambleOfTheMainStream) {
  Add(0, 1, {50, 51}, 10);
  Add(2, 3, {1, 2});
  Add(4, 5, {1, 2, 3});
  EXPECT_EQ(Split(), (Streams{{0, 1, 2}}));
}

TEST_F(WekaStreamsTest, ALongFirstRequestWhoseBlocksComeAgainIsNoPreamble) {
  Add(0, 1, {50, 51}, 65);
  Add(2, 3, {1, 51});
  EXPECT_EQ(Split(), (Streams{{0}, {1}}));
  EXPECT_EQ(split_[1].fork_source, kNone);
}

TEST_F(WekaStreamsTest, RequestsWithoutHashesBelongToTheFirstChainAndNeverEndIt) {
  Add(0, 1, {});
  Add(2, 3, {1, 2});
  Add(4, 9, {});
  Add(5, 6, {1, 2, 3});
  EXPECT_EQ(Split(), (Streams{{0, 1, 2, 3}}));
}

TEST_F(WekaStreamsTest, NothingGivesNothing) { EXPECT_TRUE(Split().empty()); }

}  // namespace
}  // namespace dynosim::workload
