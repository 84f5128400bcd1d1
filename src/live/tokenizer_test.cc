// SPDX-License-Identifier: Apache-2.0
#include "live/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "live/builtin_tokenizer.h"
#include "live/live_request.h"
#include "live/text_stream.h"

namespace dynosim::live {
namespace {

std::string Decoded(const Tokenizer& tokenizer, const std::vector<std::uint32_t>& ids) {
  std::string out;
  Utf8Stream utf8;
  for (const std::uint32_t id : ids) {
    utf8.Push(tokenizer.Bytes(id), out);
  }
  utf8.Flush(out);
  return out;
}

TEST(BuiltinTokenizer, GivesTheTextBackAndTakesWordsAsOneToken) {
  const BuiltinTokenizer tokenizer;
  for (const std::string text : {"the end of the line", " the  the", "Hello, World! 42",
                                 "na\u00efve \u96ea \U0001f642", "\n\t", ""}) {
    std::vector<std::uint32_t> ids;
    ASSERT_TRUE(tokenizer.Encode(text, true, ids));
    EXPECT_EQ(Decoded(tokenizer, ids), text);
  }
  std::vector<std::uint32_t> ids;
  ASSERT_TRUE(tokenizer.Encode(" the of is", true, ids));
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{1000, 1002, 1003}));
}

TEST(BuiltinTokenizer, EveryOutputTokenHasTextOfItsOwn) {
  const BuiltinTokenizer tokenizer;
  for (std::uint32_t id = kFirstOutputToken; id < kFirstOutputToken + kOutputTokens; ++id) {
    ASSERT_GT(tokenizer.Bytes(id).size(), 1U) << id;
    std::vector<std::uint32_t> ids;
    ASSERT_TRUE(tokenizer.Encode(tokenizer.Bytes(id), true, ids));
    ASSERT_EQ(ids, std::vector<std::uint32_t>{id});
  }
}

TEST(Utf8Stream, HoldsHeadsOfCharactersBackAndReplacesWhatCannotBecomeOne) {
  const auto pushed = [](std::initializer_list<std::string_view> parts) {
    Utf8Stream utf8;
    std::vector<std::string> out;
    for (const std::string_view part : parts) {
      out.emplace_back();
      utf8.Push(part, out.back());
    }
    out.emplace_back();
    utf8.Flush(out.back());
    return out;
  };
  using Texts = std::vector<std::string>;
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(pushed({"\xE9", "\x9B", "\xAA"}), (Texts{"", "", "\u96ea", ""}));
  EXPECT_EQ(pushed({"\xE9", "a"}), (Texts{"", bad + "a", ""}));
  EXPECT_EQ(pushed({"\xE9\x9B"}), (Texts{"", bad}));
  EXPECT_EQ(pushed({"\x80"}), (Texts{bad, ""}));
  EXPECT_EQ(pushed({"\xED", "\xA0"}), (Texts{"", bad + bad, ""}));  // a surrogate
  EXPECT_EQ(pushed({"\xF0\x9F", "\x99\x82"}), (Texts{"", "\U0001f642", ""}));
}

TEST(StopMatcher, FindsStopsAcrossPiecesAndShowsOnlyWhatIsSafe) {
  StopMatcher matcher({"abc", "cx"});
  std::string out;
  EXPECT_FALSE(matcher.Push("1ab", out));
  EXPECT_EQ(out, "1");
  EXPECT_FALSE(matcher.Push("ab", out));
  EXPECT_EQ(out, "1ab");
  EXPECT_TRUE(matcher.Push("cx", out));
  EXPECT_EQ(out, "1ab");
  StopMatcher other({"zz"});
  out.clear();
  EXPECT_FALSE(other.Push("az", out));
  other.Flush(out);
  EXPECT_EQ(out, "az");
}

}  // namespace
}  // namespace dynosim::live
