// SPDX-License-Identifier: Apache-2.0
// Block names against tokens: on random traces, two blocks have the same name if and only if all
// their tokens and all tokens before them are equal.
#include "workload/trace_source.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "base/random.h"
#include "workload/load.h"
#include "workload/memory_file_for_test.h"
#include "workload/request.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::workload {
namespace {

using Tokens = std::vector<std::uint64_t>;

struct NaiveRow {
  std::vector<std::uint64_t> ids;
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::optional<std::vector<std::uint32_t>> explicit_output;
  int session = -1;
};

// A random trace and its tokens, written out one by one.
class NaiveTrace {
 public:
  NaiveTrace(ChaCha12& random, std::uint64_t block_size, bool delta)
      : block_size_(block_size), delta_(delta) {
    const std::uint32_t rows = 1 + random.NextBelow(12);
    const std::uint32_t explicit_every = 1 + random.NextBelow(6);
    for (std::uint32_t r = 0; r < rows; ++r) {
      NaiveRow row;
      const std::uint32_t ids = 1 + random.NextBelow(5);
      for (std::uint32_t i = 0; i < ids; ++i) {
        row.ids.push_back(random.NextBelow(10) == 0 ? ~std::uint64_t{0} - random.NextBelow(2)
                                                    : random.NextBelow(3));
      }
      row.input =
          (ids - 1) * block_size + 1 + random.NextBelow(static_cast<std::uint32_t>(block_size));
      row.output = random.NextBelow(10);
      row.session = static_cast<int>(random.NextBelow(3)) - 1;
      if (random.NextBelow(explicit_every) == 0) {
        row.explicit_output.emplace();
        for (std::uint64_t i = 0; i < row.output; ++i) {
          row.explicit_output->push_back(random.NextBelow(3));
        }
      }
      rows_.push_back(row);
      for (const std::uint64_t id : row.ids) {
        numbers_.try_emplace(id, numbers_.size());
      }
    }
  }

  std::string Text() const {
    std::string text;
    for (const NaiveRow& row : rows_) {
      text += fmt::format(R"({{"timestamp":0,"input_length":{},"output_length":{},"hash_ids":[{}])",
                          row.input, row.output, fmt::join(row.ids, ","));
      if (row.session >= 0) {
        text += fmt::format(R"(,"session_id":"s{}")", row.session);
      }
      if (row.explicit_output) {
        text += fmt::format(R"(,"output_token_ids":[{}])", fmt::join(*row.explicit_output, ","));
      }
      text += "}\n";
    }
    return text;
  }

  // The prompt of a row, given what its session holds so far.
  Tokens Prompt(std::uint32_t id) {
    const NaiveRow& row = rows_[id];
    Tokens tokens = delta_ && row.session >= 0 ? sessions_[row.session] : Tokens{};
    for (std::uint64_t i = 0; i < row.input; ++i) {
      tokens.push_back(numbers_.at(row.ids[i / block_size_]));
    }
    return tokens;
  }
  std::uint64_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const {
    const NaiveRow& row = rows_[id];
    return row.explicit_output ? (*row.explicit_output)[ordinal]
                               : (std::uint64_t{id} + 1) << 32 | ordinal;
  }
  void End(std::uint32_t id, Tokens sequence) {
    if (rows_[id].session >= 0) {
      sessions_[rows_[id].session] = std::move(sequence);
    }
  }

 private:
  std::uint64_t block_size_;
  bool delta_;
  std::vector<NaiveRow> rows_;
  std::map<std::uint64_t, std::uint64_t> numbers_;
  std::map<int, Tokens> sessions_;
};

// Names and prefixes seen so far, in both directions.
class Bijection {
 public:
  void Add(const Tokens& prefix, std::pair<std::uint32_t, std::uint32_t> name) {
    EXPECT_EQ(names_.try_emplace(prefix, name).first->second, name) << "one prefix, two names";
    EXPECT_EQ(prefixes_.try_emplace(name, prefix).first->second, prefix)
        << "one name, two prefixes";
  }

 private:
  std::map<Tokens, std::pair<std::uint32_t, std::uint32_t>> names_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Tokens> prefixes_;
};

// Checks the names of all blocks that the prompt and the planned output fill.
void CheckBlocks(const RequestSource& source, std::uint32_t id, const Tokens& sequence,
                 std::uint64_t block_size, Bijection& seen) {
  std::vector<BlockExtent> extents;
  source.Blocks(id, block_size, extents);
  std::uint64_t block = 0;
  const std::uint64_t blocks = sequence.size() / block_size;
  for (const BlockExtent& extent : extents) {
    ASSERT_GT(extent.count, 0U);
    const std::uint64_t count =
        extent.count == kEndless ? blocks - block : std::uint64_t{extent.count};
    for (std::uint64_t i = 0; i < count; ++i, ++block) {
      const auto end = sequence.begin() + static_cast<std::ptrdiff_t>((block + 1) * block_size);
      seen.Add(Tokens(sequence.begin(), end),
               {extent.group, extent.first + static_cast<std::uint32_t>(i)});
    }
  }
  EXPECT_EQ(block, blocks);
}

void CheckPrompt(const RequestSource& source, std::uint32_t id, const Tokens& prompt) {
  std::vector<std::uint32_t> tokens;
  source.PromptTokens(id, tokens);
  ASSERT_EQ(tokens.size(), prompt.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t owner = prompt[i] >> 32;
    const std::uint64_t expected =
        owner == 0
            ? prompt[i]
            : source.OutputToken(static_cast<std::uint32_t>(owner - 1), prompt[i] & 0xFFFFFFFFU);
    ASSERT_EQ(tokens[i], expected);
  }
}

void RunOne(std::uint64_t seed, MemoryFile& file) {
  ChaCha12 random(seed);
  const std::uint64_t trace_block = 1 + random.NextBelow(9);
  const std::uint64_t engine_block = 1 + random.NextBelow(9);
  const bool delta = random.NextBelow(2) == 0;
  NaiveTrace naive(random, trace_block, delta);
  file.Write(naive.Text());
  WorkloadSpec spec{.trace = TraceSpec{.files = {file.Path()},
                                       .format = delta ? "mooncake-delta" : "mooncake",
                                       .block_size = static_cast<std::int64_t>(trace_block)}};
  if (random.NextBelow(2) == 0) {
    spec.replay_concurrency = 1 + random.NextBelow(3);
  }
  auto loaded = LoadWorkload(spec, engine_block);
  ASSERT_TRUE(loaded) << loaded.error().Text();
  RequestSource& source = *loaded->source;
  Bijection seen;
  Request request;
  std::uint32_t released = 0;
  while (!source.Exhausted()) {
    ASSERT_TRUE(source.NextReadyMs());
    ASSERT_TRUE(source.Release(*source.NextReadyMs(), request));
    ++released;
    Tokens sequence = naive.Prompt(request.id);
    ASSERT_EQ(request.prompt_tokens, sequence.size());
    CheckPrompt(source, request.id, sequence);
    for (std::uint64_t i = 0; i < request.output_tokens; ++i) {
      sequence.push_back(naive.OutputToken(request.id, i));
    }
    CheckBlocks(source, request.id, sequence, engine_block, seen);
    const bool rejected = random.NextBelow(4) == 0;
    const std::uint64_t emitted =
        rejected ? 0 : random.NextBelow(static_cast<std::uint32_t>(request.output_tokens) + 1);
    sequence.resize(request.prompt_tokens + emitted);
    naive.End(request.id, std::move(sequence));
    source.OnTerminal(request.id, released,
                      rejected ? TerminalStatus::kRejected : TerminalStatus::kCompleted, emitted);
  }
  EXPECT_EQ(released, source.RequestCount());
}

TEST(TraceSource, BlocksHaveEqualNamesIfAndOnlyIfTheirPrefixesAreEqual) {
  MemoryFile file;
  for (std::uint64_t seed = 0; seed < Cases(3000) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RunOne(seed, file);
  }
}

}  // namespace
}  // namespace dynosim::workload
