// SPDX-License-Identifier: Apache-2.0
// One declaration reads and describes: schemas of every kind of field, and the forms of a tagged
// object.
#include "config/schema.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "config/decode.h"

namespace dynosim::config {
namespace {

struct Shape {
  std::size_t kind = 0;
  std::uint64_t side = 4;
  double width = 1.5;
  std::optional<std::uint64_t> height;
  std::vector<std::string> labels;
};

void ShapeFields(Decoder& v, Shape& s) {
  const std::array forms = {Variant{"square", "Equal sides.",
                                    [&](Decoder& form) {
                                      form.Doc("In cm.").Field("side", s.side,
                                                               IntegerRange{.min = 1, .max = 9});
                                    }},
                            Variant{"box", "Two sides.", [&](Decoder& form) {
                                      form.Require("width");
                                      form.Field("width", s.width, kAboveZero);
                                      form.Field("height", s.height, kPositive, "auto");
                                      form.Field("labels", s.labels);
                                    }}};
  s.kind = v.Variants("type", forms);
}

std::string Read(std::string_view text, Shape& shape) {
  const Json json = *ParseJson(text, "");
  Decoder v(json, "shape");
  ShapeFields(v, shape);
  const auto done = v.Finish("f");
  return done ? "" : done.error().message;
}

TEST(Schema, DescribesTheFormsOfATaggedObject) {
  Shape shape;
  EXPECT_EQ(
      DumpJson(DescribeFields([&](Decoder& v) { ShapeFields(v, shape); })),
      R"({"oneOf":[{"type":"object","properties":{)"
      R"("type":{"const":"square","description":"Equal sides.","default":"square"},)"
      R"("side":{"type":"integer","minimum":1,"maximum":9,"description":"In cm.","default":4}},)"
      R"("additionalProperties":false},)"
      R"({"type":"object","properties":{"type":{"const":"box","description":"Two sides."},)"
      R"("width":{"type":"number","exclusiveMinimum":0.0,"default":1.5},)"
      R"("height":{"anyOf":[{"type":"integer","minimum":1},{"const":"auto"}],"default":"auto"},)"
      R"("labels":{"type":"array","items":{"type":"string"},"minItems":1}},)"
      R"("required":["type","width"],"additionalProperties":false}]})");
}

TEST(Schema, DescribesPlainFields) {
  bool flag = true;
  std::optional<double> bound;
  std::string name;
  const Json schema = DescribeFields([&](Decoder& v) {
    v.Field("flag", flag);
    v.Field("bound", bound, kNonNegative);
    v.Field("name", name);
    v.OptionalObject("inner", [](Decoder&) {});
  });
  EXPECT_EQ(DumpJson(*schema.Find("properties")),
            R"({"flag":{"type":"boolean","default":true},)"
            R"("bound":{"type":["number","null"],"minimum":0.0},"name":{"type":"string"},)"
            R"("inner":{"anyOf":[{"type":"object","properties":{},"additionalProperties":false},)"
            R"({"type":"null"}]}})");
}

TEST(Forms, TheTagChoosesAndTheFirstIsTheDefault) {
  Shape shape;
  EXPECT_EQ(Read(R"({"side":7})", shape), "");
  EXPECT_EQ(shape.kind, 0U);
  EXPECT_EQ(shape.side, 7U);
  EXPECT_EQ(Read(R"({"type":"box","width":2,"height":3,"labels":["a","b"]})", shape), "");
  EXPECT_EQ(shape.kind, 1U);
  EXPECT_EQ(shape.width, 2.0);
  EXPECT_EQ(shape.height, 3U);
  EXPECT_EQ(shape.labels, (std::vector<std::string>{"a", "b"}));
  Shape other;
  EXPECT_EQ(Read(R"({"type":"box","width":2,"height":"auto"})", other), "");
  EXPECT_EQ(other.height, std::nullopt);
}

TEST(Forms, RefusalsSayWhoseAFieldIs) {
  Shape shape;
  EXPECT_EQ(Read(R"({"width":2})", shape),
            "shape.width: belongs to type box and is not accepted with square");
  EXPECT_EQ(Read(R"({"type":"boxx"})", shape),
            R"(shape.type: must be one of square, box, got "boxx"; did you mean box?)");
  EXPECT_EQ(Read(R"({"type":"box"})", shape), "shape.width: is required");
  EXPECT_EQ(Read(R"({"type":"box","width":0})", shape),
            "shape.width: must be a finite number > 0, got 0");
  EXPECT_EQ(Read(R"({"type":"box","width":1,"height":null})", shape),
            "shape.height: must be an integer >= 1 or auto, got null");
  EXPECT_EQ(Read(R"({"type":"box","width":1,"labels":[]})", shape),
            "shape.labels: must be a list of at least one string, got an empty one");
  EXPECT_EQ(Read(R"({"sid":1})", shape), R"(shape: unknown field "sid"; did you mean "side"?)");
}

}  // namespace
}  // namespace dynosim::config
