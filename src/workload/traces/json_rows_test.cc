// SPDX-License-Identifier: Apache-2.0
// Reading JSON in place: nested values, objects over several lines, and broken text.
#include "workload/traces/json_rows.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/text_file.h"

namespace dynosim::workload {
namespace {

// Keeps the bytes behind the text readable.
class Rows {
 public:
  explicit Rows(std::string_view text, JsonRows::Framing framing = JsonRows::Framing::kLines)
      : text_(std::string(text) + std::string(TextFile::kPadding, '\0')),
        rows_("t", std::string_view(text_).substr(0, text.size()), framing) {}
  JsonRows* operator->() { return &rows_; }
  // Skips everything; the problem, if there is one.
  std::string SkipAll() {
    while (rows_.NextRow()) {
      while (rows_.NextMember()) {
        rows_.Skip();
      }
    }
    return rows_.Failed() ? rows_.Problem().Text() : "";
  }

 private:
  std::string text_;
  JsonRows rows_;
};

TEST(JsonRows, NestedValuesAreReadToTheirEndAndLeft) {
  Rows rows(R"({"a":{"b":[{"c":1},{"c":2},null]},"d":3})");
  ASSERT_TRUE(rows->NextRow());
  std::vector<std::uint64_t> numbers;
  std::optional<std::uint64_t> number;
  bool entered = false;
  ASSERT_TRUE(rows->NextMember() && rows->EnterObject(entered) && entered);
  ASSERT_TRUE(rows->NextMember() && rows->EnterList(entered) && entered);
  while (rows->NextElement()) {
    ASSERT_TRUE(rows->EnterObject(entered));
    while (entered && rows->NextMember()) {
      ASSERT_TRUE(rows->ReadUnsigned(9, number));
      numbers.push_back(*number);
    }
  }
  EXPECT_FALSE(rows->NextMember());  // the end of a
  ASSERT_TRUE(rows->NextMember());
  EXPECT_EQ(rows->Key(), "d");
  ASSERT_TRUE(rows->ReadUnsigned(9, number));
  EXPECT_FALSE(rows->NextMember());
  EXPECT_FALSE(rows->Failed());
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 2}));
}

TEST(JsonRows, ErrorsNameThePathOfTheValue) {
  Rows rows(R"({"a":{"b":[{"c":1},{"c":"x"}]}})");
  ASSERT_TRUE(rows->NextRow());
  bool entered = false;
  std::optional<std::uint64_t> number;
  ASSERT_TRUE(rows->NextMember() && rows->EnterObject(entered));
  ASSERT_TRUE(rows->NextMember() && rows->EnterList(entered));
  while (rows->NextElement() && rows->EnterObject(entered)) {
    while (rows->NextMember() && rows->ReadUnsigned(9, number)) {
    }
  }
  ASSERT_TRUE(rows->Failed());
  EXPECT_EQ(rows->Problem().Text(), "t:1: a.b[1].c must be a whole number of at least 0");
}

TEST(JsonRows, ARowCanBeReadAgain) {
  Rows rows(R"({"a":1})");
  ASSERT_TRUE(rows->NextRow());
  for (int i = 0; i < 2; ++i) {
    std::optional<std::uint64_t> number;
    ASSERT_TRUE(rows->NextMember() && rows->ReadUnsigned(9, number));
    EXPECT_EQ(number, 1U);
    EXPECT_FALSE(rows->NextMember());
    EXPECT_EQ(rows->Rewind(), true);
  }
}

TEST(JsonRows, ObjectsMaySpanLinesAndShareThem) {
  Rows rows("\n{\n\"a\": \"}\\\"{\"\n} {\"b\":{}}\n\n{}", JsonRows::Framing::kObjects);
  std::vector<std::uint32_t> lines;
  while (rows->NextRow()) {
    lines.push_back(rows->Line());
    while (rows->NextMember()) {
      rows->Skip();
    }
  }
  EXPECT_FALSE(rows->Failed());
  EXPECT_EQ(lines, (std::vector<std::uint32_t>{2, 4, 6}));
}

TEST(JsonRows, OtherValuesThanObjectsCanBePassedOver) {
  Rows rows("[1, {\"a\": 2}]\n\"text\"\n3\nnull\n{}\n");
  rows->SkipOtherValues();
  EXPECT_TRUE(rows->NextRow());
  EXPECT_EQ(rows->Line(), 5U);
  for (const std::string_view text : {"[1", "tru", "\"x", "1 2", "\"a\" \"b\"", "[1] 2"}) {
    Rows broken(text);
    broken->SkipOtherValues();
    EXPECT_FALSE(broken->NextRow()) << text;
    EXPECT_TRUE(broken->Failed()) << text;
  }
}

TEST(JsonRows, BrokenTextInAValueThatNobodyWantsIsRefused) {
  for (const std::string_view text :
       {R"({"r":[1,"out":1}]})", R"({"r":[{"h":[1,"out":1}]})", R"({"r":[1,2}]})",
        R"({"r":{"h":1]}})", R"({"r":["a" "b"]})", R"({"r":[1,]})", R"({"r":{"a":1,}})",
        R"({"r":[[[[[}})", R"({"r":01})", R"({"r":tru})"}) {
    EXPECT_NE(Rows(text).SkipAll(), "") << text;
    EXPECT_NE(Rows(text, JsonRows::Framing::kObjects).SkipAll(), "") << text;
  }
  EXPECT_EQ(Rows(R"({"r":["a", {"b": ["c"]}, -1.5e300, true, null, ""]})").SkipAll(), "");
}

}  // namespace
}  // namespace dynosim::workload
