// SPDX-License-Identifier: Apache-2.0
// Decoder: defaults, types, ranges, names, and the wording of every error.
#include "config/decode.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"

namespace dynosim::config {
namespace {

enum class Color : std::uint8_t { kRed, kBlue };
constexpr std::array kColors = {Choice<Color>{"red", Color::kRed},
                                Choice<Color>{"blue", Color::kBlue}};

struct Inner {
  std::uint16_t port = 7;
  std::optional<double> share;
};

struct Outer {
  std::uint64_t blocks = 16;
  std::optional<std::uint32_t> limit;
  std::uint64_t sequences = 256;
  bool cache = true;
  double ratio = 1.0;
  std::optional<std::string> file;
  Color color = Color::kRed;
  Inner inner;
};

void Fields(Decoder& v, Inner& s) {
  v.Field("port", s.port);
  v.Field("share", s.share, kShare);
}

void Fields(Decoder& v, Outer& s) {
  v.Field("blocks", s.blocks, kPositive);
  v.Field("limit", s.limit, {.min = 1, .max = 5});
  v.Limit("sequences", s.sequences, kPositive, 999);
  v.Field("cache", s.cache);
  v.Field("ratio", s.ratio, kNonNegative);
  v.Field("file", s.file);
  v.Field("color", s.color, kColors);
  v.Object("inner", [&](Decoder& inner) { Fields(inner, s.inner); });
  v.Refuse("offload", "is not modelled");
}

std::string Decode(std::string_view text, Outer& out) {
  const auto value = ParseJson(text, "");
  Decoder decoder(*value, "");
  Fields(decoder, out);
  const auto finished = decoder.Finish("--flag");
  return finished ? "" : finished.error().Text();
}
std::string ErrorOf(std::string_view text) {
  Outer out;
  return Decode(text, out);
}

TEST(Decoder, AbsentFieldsKeepTheirDefaults) {
  Outer out;
  EXPECT_EQ(Decode("{}", out), "");
  EXPECT_EQ(out.blocks, 16U);
  EXPECT_EQ(out.limit, std::nullopt);
  EXPECT_EQ(out.inner.port, 7);
}

TEST(Decoder, PresentFieldsAreRead) {
  Outer out;
  EXPECT_EQ(Decode(R"({"blocks":18446744073709551615,"limit":5,"sequences":null,"cache":false,
                       "ratio":2,"file":"x","color":"blue","inner":{"port":65535,"share":0.5},
                       "offload":null})",
                   out),
            "");
  EXPECT_EQ(out.blocks, 18446744073709551615U);
  EXPECT_EQ(out.limit, 5U);
  EXPECT_EQ(out.sequences, 999U);
  EXPECT_FALSE(out.cache);
  EXPECT_EQ(out.ratio, 2.0);
  EXPECT_EQ(out.file, "x");
  EXPECT_EQ(out.color, Color::kBlue);
  EXPECT_EQ(out.inner.port, 65535);
  EXPECT_EQ(out.inner.share, 0.5);
}

TEST(Decoder, ErrorsNamePathValueAndWhatIsAllowed) {
  EXPECT_EQ(ErrorOf("[]"), "--flag: must be an object, got an array");
  EXPECT_EQ(ErrorOf(R"({"blocks":0})"), "--flag: blocks: must be an integer >= 1, got 0");
  EXPECT_EQ(ErrorOf(R"({"blocks":-1})"), "--flag: blocks: must be an integer >= 1, got -1");
  EXPECT_EQ(ErrorOf(R"({"blocks":16.0})"), "--flag: blocks: must be an integer >= 1, got 16.0");
  EXPECT_EQ(ErrorOf(R"({"blocks":null})"), "--flag: blocks: must be an integer >= 1, got null");
  EXPECT_EQ(ErrorOf(R"({"limit":6})"),
            "--flag: limit: must be an integer from 1 to 5 or null, got 6");
  EXPECT_EQ(ErrorOf(R"({"sequences":0})"),
            "--flag: sequences: must be an integer >= 1 or null, got 0");
  EXPECT_EQ(ErrorOf(R"({"cache":1})"), "--flag: cache: must be true or false, got 1");
  EXPECT_EQ(ErrorOf(R"({"ratio":-0.5})"), "--flag: ratio: must be a finite number >= 0, got -0.5");
  EXPECT_EQ(ErrorOf(R"({"ratio":"1"})"), "--flag: ratio: must be a finite number >= 0, got \"1\"");
  EXPECT_EQ(ErrorOf(R"({"file":3})"), "--flag: file: must be a string or null, got 3");
  EXPECT_EQ(ErrorOf(R"({"color":"green"})"),
            "--flag: color: must be one of red, blue, got \"green\"");
  EXPECT_EQ(ErrorOf(R"({"inner":null})"), "--flag: inner: must be an object, got null");
  EXPECT_EQ(ErrorOf(R"({"inner":{"port":65536}})"),
            "--flag: inner.port: must be an integer from 0 to 65535, got 65536");
  EXPECT_EQ(ErrorOf(R"({"inner":{"share":1.5}})"),
            "--flag: inner.share: must be a finite number from 0 to 1 or null, got 1.5");
  EXPECT_EQ(ErrorOf(R"({"offload":{}})"), "--flag: offload: is not modelled");
}

TEST(Decoder, TheFirstErrorWins) {
  EXPECT_EQ(ErrorOf(R"({"foo":1,"ratio":-1,"blocks":0})"),
            "--flag: blocks: must be an integer >= 1, got 0");
}

TEST(Decoder, UnknownNamesSuggestTheNearestOrListAll) {
  EXPECT_EQ(ErrorOf(R"({"block":1})"), "--flag: unknown field \"block\"; did you mean \"blocks\"?");
  EXPECT_EQ(ErrorOf(R"({"inner":{"prot":1}})"),
            "--flag: inner: unknown field \"prot\"; did you mean \"port\"?");
  EXPECT_EQ(ErrorOf(R"({"zzzzzzzz":1})"),
            "--flag: unknown field \"zzzzzzzz\"; allowed are: blocks, limit, sequences, cache, "
            "ratio, file, color, inner");
  EXPECT_EQ(ErrorOf("{\"" + std::string(5000, 'x') + "\":1}").find('\n'), std::string::npos);
  EXPECT_LT(ErrorOf("{\"" + std::string(5000, 'x') + "\":1}").size(), 300U);
}

TEST(Decoder, RequiredFieldsMustBeThere) {
  const auto value = ParseJson("{}", "");
  Decoder decoder(*value, "a.b");
  decoder.Require("c");
  EXPECT_EQ(decoder.FinishOpen("f").error().Text(), "f: a.b.c: is required");
}

TEST(Decoder, OpenObjectsTolerateOtherNames) {
  const auto value = ParseJson(R"({"x":1})", "");
  Decoder decoder(*value, "");
  EXPECT_TRUE(decoder.FinishOpen(""));
  EXPECT_FALSE(decoder.Finish(""));
}

}  // namespace
}  // namespace dynosim::config
