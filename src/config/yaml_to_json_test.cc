// SPDX-License-Identifier: Apache-2.0
// YAML documents: types of scalars, anchors and merges, and every error with its line.
#include "config/yaml_to_json.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"

namespace dynosim::config {
namespace {

std::string Read(std::string_view text) {
  const auto value = ParseYaml(text, "f.yaml");
  return value ? DumpJson(*value) : value.error().Text();
}

TEST(Yaml, PlainScalarsHaveTheTypesOfYaml11) {
  EXPECT_EQ(Read("[true, Yes, on, FALSE, no, Off, y, n]"),
            R"([true,true,true,false,false,false,"y","n"])");
  EXPECT_EQ(Read("[~, null, NULL, '']"), R"([null,null,null,""])");
  EXPECT_EQ(Read("[0, 12, -3, +4, 1_000, 0x1F, 0b101, 010, -0]"), "[0,12,-3,4,1000,31,5,8,0]");
  EXPECT_EQ(Read("[1.5, -.5, 1., 1e3, 1.0e-3, 6.02E+23]"), "[1.5,-0.5,1.0,1000.0,0.001,6.02e+23]");
  EXPECT_EQ(Read("[1:30, 2024-01-01, 08, 0x, 1.2.3, abc, inf, nan, -, 1e]"),
            R"(["1:30","2024-01-01","08","0x","1.2.3","abc","inf","nan","-","1e"])");
  EXPECT_EQ(Read("['12', \"true\", !!str 5, !!int '7', !!float 2]"), R"(["12","true","5",7,2.0])");
}

TEST(Yaml, IntegersBeyond64BitsAreNumbers) {
  const auto value = ParseYaml("[9223372036854775808, 18446744073709551616, .inf]", "f");
  ASSERT_TRUE(value);
  EXPECT_TRUE(value->array()[0].is_integer());
  EXPECT_TRUE(value->array()[1].is_double());
  EXPECT_EQ(value->array()[1].number(), 18446744073709551616.0);
  EXPECT_GT(value->array()[2].number(), 1e308);
}

TEST(Yaml, ReadsTheStylesOfOneValueAlike) {
  const std::string expected = R"({"a":{"b":[1,"two"],"c":null}})";
  EXPECT_EQ(Read("a:\n  b:\n    - 1\n    - two\n  c:\n"), expected);
  EXPECT_EQ(Read("a: {b: [1, two], c: ~}"), expected);
  EXPECT_EQ(Read(R"({"a": {"b": [1, "two"], "c": null}})"), expected);
  EXPECT_EQ(Read("# nothing\n"), "null");
}

TEST(Yaml, AliasesCopyAndMergesKeepOwnKeys) {
  EXPECT_EQ(Read("a: &x [1, 2]\nb: *x\n"), R"({"a":[1,2],"b":[1,2]})");
  EXPECT_EQ(Read("base: &b {p: 1, q: 2}\nc:\n  <<: *b\n  q: 3\n"),
            R"({"base":{"p":1,"q":2},"c":{"q":3,"p":1}})");
  EXPECT_EQ(Read("c: {<<: [{p: 1}, {p: 2, q: 4}]}"), R"({"c":{"p":1,"q":4}})");
}

TEST(Yaml, ErrorsNameTheLine) {
  EXPECT_EQ(Read("a: 1\nb: [1,\n"), "f.yaml:3: malformed YAML: end of sequence flow not found");
  EXPECT_EQ(Read("a:\n  b: 1\n  b: 2\n"), "f.yaml:2: the key \"b\" is given twice in one mapping");
  EXPECT_EQ(Read("a: 1\n? [x]\n: 2\n"), "f.yaml:2: a key must be a plain word");
  EXPECT_EQ(Read("a: !color red\n"), "f.yaml:1: the tag \"!color\" is not supported for \"red\"");
  EXPECT_EQ(Read("a: !!int x\n"),
            "f.yaml:1: the tag \"tag:yaml.org,2002:int\" is not supported for \"x\"");
  EXPECT_EQ(Read("a: 1\n---\nb: 2\n"), "f.yaml: must contain one YAML document and nothing else");
  EXPECT_EQ(Read("a: {<<: 3}"), "f.yaml:1: << takes a mapping or a list of mappings");
  EXPECT_EQ(Read("a: *nowhere\n"),
            "f.yaml:1: malformed YAML: the referenced anchor is not defined");
}

// The parser takes the comma for the start of an empty document again and again.
TEST(Yaml, TextThatIsNoDocumentEnds) {
  EXPECT_EQ(Read(",NANmode.\n"), "f.yaml: must contain one YAML document and nothing else");
}

TEST(Yaml, AnAliasInsideItsOwnValueIsAnError) {
  EXPECT_EQ(Read("a: &x [1, *x]\n"), "f.yaml:1: an alias must not stand inside the value it names");
}

TEST(Yaml, AliasesThatBlowUpTheDocumentAreAnError) {
  std::string text = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) {
      text += (k > 0 ? ", " : "") + before;
    }
    text += "]\n";
  }
  EXPECT_NE(Read(text).find("the document is too large once its aliases are expanded"),
            std::string::npos);
}

TEST(Yaml, DeepNestingIsAnError) {
  EXPECT_EQ(Read(std::string(101, '[') + std::string(101, ']')),
            "f.yaml:1: is nested over 100 levels deep");
  EXPECT_EQ(Read(std::string(100'000, '[')).substr(0, 8), "f.yaml:1");
}

}  // namespace
}  // namespace dynosim::config
