// SPDX-License-Identifier: Apache-2.0
// The index against a set of names per target.
#include "router/presence_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kv/events.h"
#include "workload/request.h"

namespace dynosim::router {
namespace {

using workload::BlockExtent;

kv::BlockName Name(std::uint32_t group, std::uint32_t offset) {
  return (kv::BlockName{group} << 32U) | offset;
}

class Model {
 public:
  explicit Model(std::uint32_t targets) : held_(targets) {}
  std::set<kv::BlockName>& held(std::uint32_t target) { return held_[target]; }

  std::uint32_t Prefix(std::uint32_t target, const std::vector<kv::BlockName>& names) const {
    std::uint32_t blocks = 0;
    while (blocks < names.size() && held_[target].contains(names[blocks])) {
      ++blocks;
    }
    return blocks;
  }

 private:
  std::vector<std::set<kv::BlockName>> held_;
};

std::vector<kv::BlockName> NamesOf(const std::vector<BlockExtent>& extents, std::size_t limit) {
  std::vector<kv::BlockName> names;
  for (const BlockExtent& extent : extents) {
    for (std::uint32_t i = 0; i < extent.count && names.size() < limit; ++i) {
      names.push_back(Name(extent.group, extent.first + i));
    }
  }
  return names;
}

std::vector<BlockExtent> RandomPrompt(ChaCha12& random) {
  std::vector<BlockExtent> extents(1 + random.NextBelow(4));
  for (BlockExtent& extent : extents) {
    extent = {random.NextBelow(6), random.NextBelow(20), 1 + random.NextBelow(20)};
  }
  return extents;
}

void ExpectMatches(PresenceIndex& index, const Model& model, std::uint32_t targets,
                   const std::vector<BlockExtent>& prompt, std::size_t limit) {
  std::vector<PrefixMatch> matches;
  index.Match(prompt, limit, matches);
  std::vector<std::uint32_t> found(targets, 0);
  for (const PrefixMatch& match : matches) {
    ASSERT_EQ(found[match.target], 0U) << "a target is reported twice";
    ASSERT_GT(match.blocks, 0U);
    found[match.target] = match.blocks;
  }
  const std::vector<kv::BlockName> names = NamesOf(prompt, limit);
  for (std::uint32_t t = 0; t < targets; ++t) {
    ASSERT_EQ(found[t], model.Prefix(t, names)) << "target " << t;
  }
}

TEST(PresenceIndex, FindsTheLongestHeldPrefixOfEveryTargetUnderRandomEvents) {
  for (const std::uint32_t targets : {1U, 2U, 63U, 64U, 65U, 200U}) {
    ChaCha12 random(targets);
    PresenceIndex index(targets);
    Model model(targets);
    for (int step = 0; step < 600; ++step) {
      const std::uint32_t target = random.NextBelow(targets);
      const std::vector<BlockExtent> prompt = RandomPrompt(random);
      const std::size_t limit = 1 + random.NextBelow(60);
      if (random.NextBelow(3) > 0) {
        // Engines store a prefix, and every now and then a single block goes.
        const std::uint32_t many = random.NextBelow(4) == 0 ? targets : 1;
        for (std::uint32_t i = 0; i < many; ++i) {
          const std::uint32_t t = (target + i) % targets;
          for (const kv::BlockName name : NamesOf(prompt, limit)) {
            ASSERT_EQ(index.Add(t, name), model.held(t).insert(name).second);
          }
        }
      } else {
        for (int i = 0; i < 20; ++i) {
          const kv::BlockName name = Name(random.NextBelow(6), random.NextBelow(40));
          ASSERT_EQ(index.Remove(target, name), model.held(target).erase(name) == 1);
          ASSERT_FALSE(index.Holds(target, name));
        }
      }
      ExpectMatches(index, model, targets, prompt, limit);
    }
  }
}

TEST(PresenceIndex, SequencesAreAddedAndRemovedAsTheirBlocksAre) {
  PresenceIndex index(3);
  const std::vector<BlockExtent> prompt = {{1, 0, 5}, {2, 6, 9}};
  std::vector<kv::BlockName> repeated;
  const auto note = [&](kv::BlockName name) { repeated.push_back(name); };
  EXPECT_EQ(index.AddSequence(1, prompt, 12, note), 12U);
  EXPECT_TRUE(repeated.empty());
  EXPECT_EQ(index.AddSequence(1, prompt, 6, note), 0U);
  EXPECT_EQ(repeated, NamesOf(prompt, 6));
  EXPECT_TRUE(index.Holds(1, Name(2, 12)));
  EXPECT_FALSE(index.Holds(1, Name(2, 13)));
  EXPECT_FALSE(index.Holds(0, Name(1, 0)));
  const auto keep = [](kv::BlockName name) { return name == Name(1, 2); };
  EXPECT_EQ(index.RemoveSequence(1, prompt, 12, keep), 11U);
  EXPECT_TRUE(index.Holds(1, Name(1, 2)));
  EXPECT_TRUE(index.Remove(1, Name(1, 2)));
  EXPECT_EQ(index.slabs(), 0U);
}

TEST(PresenceIndex, RoomOfBlocksThatAreGoneIsUsedAgain) {
  PresenceIndex index(8);
  for (std::uint32_t group = 0; group < 1000; ++group) {
    for (std::uint32_t offset = 0; offset < 16; ++offset) {
      ASSERT_TRUE(index.Add(group % 8, Name(group, offset)));
    }
    for (std::uint32_t offset = 0; offset < 16; ++offset) {
      ASSERT_TRUE(index.Remove(group % 8, Name(group, offset)));
    }
    ASSERT_EQ(index.slabs(), 0U);
  }
}

}  // namespace
}  // namespace dynosim::router
