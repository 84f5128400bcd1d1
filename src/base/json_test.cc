// SPDX-License-Identifier: Apache-2.0
// Json: strict parsing with located errors, order of members, text of numbers.
#include "base/json.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include <gtest/gtest.h>

namespace dynosim {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseJson(text, "file");
  return parsed ? "parsed" : parsed.error().Text();
}

std::string NumberText(double value) {
  std::string out;
  AppendJsonNumber(out, value);
  return out;
}

TEST(Json, KeepsMemberOrderAndNumberKinds) {
  const auto parsed =
      ParseJson(R"({"b":1,"a":-2,"c":[1.0,18446744073709551615,null,true,"x"]})", "");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(DumpJson(*parsed), R"({"b":1,"a":-2,"c":[1.0,18446744073709551615,null,true,"x"]})");
  EXPECT_TRUE(std::holds_alternative<std::uint64_t>(parsed->Find("b")->value()));
  EXPECT_TRUE(std::holds_alternative<std::int64_t>(parsed->Find("a")->value()));
  EXPECT_EQ(parsed->Find("a")->number(), -2.0);
  EXPECT_EQ(parsed->Find("missing"), nullptr);
}

TEST(Json, DuplicateKeysAreErrorsInSmallAndLargeObjects) {
  EXPECT_EQ(ErrorOf(R"({"a":1,"a":2})"), "file: line 1, column 10: duplicate key \"a\"");
  std::string large = "{";
  for (int i = 0; i < 40; ++i) {
    large += "\"k" + std::to_string(i) + "\":0,\n";
  }
  EXPECT_EQ(ErrorOf(large + "\"k39\":1}"), "file: line 41, column 5: duplicate key \"k39\"");
  EXPECT_EQ(ErrorOf(large + "\"k3\":1}"), "file: line 41, column 4: duplicate key \"k3\"");
  EXPECT_EQ(ErrorOf(large + "\"k40\":1}"), "parsed");
  EXPECT_EQ(ErrorOf(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})"), "parsed");
}

TEST(Json, SyntaxErrorsNameLineAndColumn) {
  EXPECT_TRUE(ErrorOf("{\n \"a\" 1}").starts_with("file: line 2, column 7: syntax error"))
      << ErrorOf("{\n \"a\" 1}");
  for (const std::string_view bad :
       {"",      " ",       "{",     "[1,]",     "{\"a\":1,}", "01",       "1 2",
        "nul",   "'a'",     "NaN",   "Infinity", "1e999",      "\"\xff\"", "\"\n\"",
        "[1] x", "// c\n1", "{a:1}", "+1",       ".5",         "1.",       "\"\\ud800\""}) {
    const auto parsed = ParseJson(bad, "file");
    ASSERT_FALSE(parsed) << bad;
    EXPECT_TRUE(parsed.error().Text().starts_with("file: line ")) << parsed.error().Text();
  }
}

TEST(Json, NestingIsBounded) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ(ErrorOf(nested(256)), "parsed");
  EXPECT_EQ(ErrorOf(nested(257)), "file: line 1, column 257: nested deeper than 256 levels");
  EXPECT_NE(ErrorOf(std::string(1000000, '[')), "parsed");
}

TEST(Json, DoublesPrintShortestWithAPointOrAnExponent) {
  EXPECT_EQ(NumberText(1.0), "1.0");
  EXPECT_EQ(NumberText(-0.0), "-0.0");
  EXPECT_EQ(NumberText(100000.0), "100000.0");
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(0.0001), "0.0001");
  EXPECT_EQ(NumberText(0.00001), "1e-05");
  EXPECT_EQ(NumberText(-123.456), "-123.456");
  EXPECT_EQ(NumberText(999999999999999.0), "999999999999999.0");
  EXPECT_EQ(NumberText(9007199254740992.0), "9.007199254740992e+15");
  EXPECT_EQ(NumberText(5e-324), "5e-324");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(NumberText(std::nan("")), "null");
}

TEST(Json, StringsAreEscapedAndReadBack) {
  const std::string text = "a\"\\\n\r\t\b\f\x01 \xc3\xaf";
  std::string quoted;
  AppendJsonString(quoted, text);
  EXPECT_EQ(quoted, "\"a\\\"\\\\\\n\\r\\t\\b\\f\\u0001 \xc3\xaf\"");
  const auto parsed = ParseJson(quoted, "");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->string(), text);
}

TEST(Json, IndentedAndSortedOutput) {
  Json value;
  value.Add("b", Json::Array{1, 2});
  value.Add("a", Json::Object{});
  EXPECT_EQ(DumpJson(value, {.indent = 2, .sort_keys = true}),
            "{\n  \"a\": {},\n  \"b\": [\n    1,\n    2\n  ]\n}");
}

}  // namespace
}  // namespace dynosim
