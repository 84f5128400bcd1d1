// SPDX-License-Identifier: Apache-2.0
#include "base/scratch_file.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/long_sequence.h"
#include "base/result.h"

namespace dynosim {
namespace {

std::vector<std::uint64_t> Numbers(const LongSequence<std::uint64_t>& sequence) {
  std::vector<std::uint64_t> out;
  sequence.ForEachPiece([&](std::span<const std::uint64_t> piece) {
    out.insert(out.end(), piece.begin(), piece.end());
  });
  return out;
}

TEST(ScratchFile, SequencesThatShareOneComeBackInOrder) {
  ScratchFile scratch;
  LongSequence<std::uint64_t> evens(&scratch);
  LongSequence<std::uint64_t> odds(&scratch);
  constexpr std::uint64_t kCount = 2 * LongSequence<std::uint64_t>::kPiece + 5;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    evens.Append(2 * i);
    odds.Append(2 * i + 1);
  }
  EXPECT_FALSE(evens.InMemory());
  EXPECT_EQ(evens.size(), kCount);
  const std::vector<std::uint64_t> even_numbers = Numbers(evens);
  const std::vector<std::uint64_t> odd_numbers = Numbers(odds);
  ASSERT_EQ(even_numbers.size(), kCount);
  ASSERT_EQ(odd_numbers.size(), kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(even_numbers[i], 2 * i);
    ASSERT_EQ(odd_numbers[i], 2 * i + 1);
  }
  EXPECT_EQ(scratch.problem(), nullptr);
}

TEST(ScratchFile, FewValuesNeedNone) {
  ScratchFile scratch;
  LongSequence<std::uint64_t> sequence(&scratch);
  for (std::uint64_t i = 0; i < LongSequence<std::uint64_t>::kPiece; ++i) {
    sequence.Append(i);
  }
  EXPECT_TRUE(sequence.InMemory());
  *sequence.Last() = 7;
  EXPECT_EQ(sequence.values().back(), 7U);
}

// A file that may not grow is what a full disk looks like.
TEST(ScratchFile, RemembersThatTheDiskIsFullAndReadsZeros) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit least = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &least), 0);
  ScratchFile scratch;
  const std::vector<std::byte> bytes(3000, std::byte{9});
  const std::uint64_t first = scratch.Append(bytes);
  EXPECT_EQ(scratch.problem(), nullptr);
  scratch.Append(bytes);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_NE(scratch.problem(), nullptr);
  EXPECT_EQ(scratch.problem()->kind, ErrorKind::kFailed);
  const std::string text = scratch.problem()->Text();
  EXPECT_NE(text.find("temporary file"), std::string::npos) << text;
  EXPECT_NE(text.find("TMPDIR"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  std::vector<std::byte> out(bytes.size(), std::byte{1});
  scratch.Read(first, out);
  EXPECT_EQ(out, std::vector<std::byte>(bytes.size()));
}

}  // namespace
}  // namespace dynosim
