// SPDX-License-Identifier: Apache-2.0
// --set: what it makes and replaces, and every refusal.
#include "config/overrides.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"

namespace dynosim::config {
namespace {

std::string Set(std::string_view document, std::string_view text) {
  Json json = *ParseJson(document, "");
  const auto set = ApplyOverride(json, text, "f.yaml");
  return set ? DumpJson(json) : set.error().Text();
}

TEST(Overrides, ReplaceTheLastNameAndMakeTheWay) {
  EXPECT_EQ(Set(R"({"a":{"b":1,"c":2}})", "a.b=3"), R"({"a":{"b":3,"c":2}})");
  EXPECT_EQ(Set("{}", "a.b.c=[1, x]"), R"({"a":{"b":{"c":[1,"x"]}}})");
  EXPECT_EQ(Set(R"({"a":null})", "a.b={p: 1.5}"), R"({"a":{"b":{"p":1.5}}})");
  EXPECT_EQ(Set(R"({"a":{"b":1}})", "a="), R"({"a":null})");
  EXPECT_EQ(Set("{}", "a=x=y"), R"({"a":"x=y"})");
}

TEST(Overrides, RefusalsNameTheTextAndTheReason) {
  EXPECT_EQ(Set("{}", "a"), R"(f.yaml: --set "a" must have the form PATH=VALUE)");
  EXPECT_EQ(Set("{}", "=1"), R"(f.yaml: --set "=1" must have the form PATH=VALUE)");
  EXPECT_EQ(Set("{}", "a.0=1"),
            R"(f.yaml: --set path "a.0": lists have no index here; replace the whole list)");
  EXPECT_EQ(Set("{}", "a..b=1"), R"(f.yaml: --set path "a..b" has an empty name between dots)");
  EXPECT_EQ(Set(R"({"a":{"b":5}})", "a.b.c=1"),
            R"(f.yaml: --set path "a.b.c" goes through a value that is no mapping: 5 before "c")");
  EXPECT_EQ(Set("{}", "a=[1").substr(0, 35), R"(f.yaml: value of --set "a":1: malfo)");
  std::string path = "a";
  for (int i = 0; i < 40; ++i) {
    path += ".a";
  }
  EXPECT_NE(Set("{}", path + "=1").find("has more than 32 names"), std::string::npos);
}

}  // namespace
}  // namespace dynosim::config
