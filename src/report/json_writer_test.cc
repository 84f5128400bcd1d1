// SPDX-License-Identifier: Apache-2.0
// JsonWriter and FieldTable: the same text as DumpJson, in both orders.
#include "report/json_writer.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/fields.h"
#include "report/sample_outcome.h"

namespace dynosim::report {
namespace {

TEST(JsonWriter, WritesWhatDumpJsonWritesInEveryStyle) {
  const auto value = ParseJson(
      R"({"b":[1,-2,[],{}],"a":{"y":null,"x":[true,"\u00e9\n"]},"c":1.5,"d":18446744073709551615})",
      "");
  ASSERT_TRUE(value);
  for (const JsonStyle style :
       {JsonStyle{}, JsonStyle{.indent = 2, .sort_keys = false},
        JsonStyle{.indent = 0, .sort_keys = true}, JsonStyle{.indent = 3, .sort_keys = true}}) {
    EXPECT_EQ(TextOf(style, [&](JsonWriter& out) { out.Value(*value); }), DumpJson(*value, style));
  }
}

TEST(JsonWriter, SeparatesMembersAndLines) {
  EXPECT_EQ(TextOf({},
                   [](JsonWriter& out) {
                     out.BeginObject();
                     out.Key("a");
                     out.BeginArray();
                     out.Integer(1);
                     out.Null();
                     out.Bool(false);
                     out.EndArray();
                     out.Key("b");
                     out.String("x\"y");
                     out.EndObject();
                     out.EndLine();
                     out.Number(2.0);
                     out.EndLine();
                   }),
            "{\"a\":[1,null,false],\"b\":\"x\\\"y\"}\n2.0\n");
}

TEST(JsonWriter, NumbersThatAreNotFiniteAreNull) {
  EXPECT_EQ(TextOf({},
                   [](JsonWriter& out) {
                     out.BeginArray();
                     out.Number(std::numeric_limits<double>::quiet_NaN());
                     out.Number(std::numeric_limits<double>::infinity());
                     out.NumberOrNull(std::nullopt);
                     out.IntegerOrNull(std::nullopt);
                     out.IntegerOrNull(3);
                     out.EndArray();
                   }),
            "[null,null,null,null,3]");
}

struct Pet {
  bool named = false;
};
constexpr FieldTable kPetFields({
    Field<Pet>{"legs", [](JsonWriter& out, const Pet&) { out.Integer(4); }},
    {"age", [](JsonWriter& out, const Pet&) { out.Integer(2); }},
    {"a_note", [](JsonWriter& out, const Pet&) { out.String("!"); }, nullptr, true},
    {"name", [](JsonWriter& out, const Pet&) { out.String("Rex"); },
     [](const Pet& pet) { return pet.named; }},
});

TEST(FieldTable, SortsAtCompileTimeAndKeepsLastMembersLast) {
  const auto write = [](JsonWriter& out) { kPetFields.Write(out, {.named = true}); };
  EXPECT_EQ(TextOf({}, write), R"({"legs":4,"age":2,"a_note":"!","name":"Rex"})");
  EXPECT_EQ(TextOf({.indent = 0, .sort_keys = true}, write),
            R"({"age":2,"legs":4,"name":"Rex","a_note":"!"})");
}

TEST(FieldTable, LeavesOutMembersThatAreNotPresent) {
  EXPECT_EQ(TextOf({}, [](JsonWriter& out) { kPetFields.Write(out, {}); }),
            R"({"legs":4,"age":2,"a_note":"!"})");
}

}  // namespace
}  // namespace dynosim::report
