// SPDX-License-Identifier: Apache-2.0
#include "base/json_argument.h"

#include <cstdio>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace dynosim {
namespace {

TEST(JsonArgument, IsTheTextOrTheFileThatItNames) {
  const std::string path =
      ::testing::TempDir() + "json_argument_" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"({"a": 1})";
  EXPECT_EQ(JsonOfArgument("--flag", path)->Find("a")->number(), 1);
  EXPECT_EQ(JsonOfArgument("--flag", R"( {"a": 2})")->Find("a")->number(), 2);
  std::ofstream(path) << R"({"a": })";
  const auto broken = JsonOfArgument("--flag", path);
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().Text().starts_with(path + ": line 1")) << broken.error().Text();
  std::remove(path.c_str());
  const auto missing = JsonOfArgument("--flag", path);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().Text().starts_with("--flag: ")) << missing.error().Text();
}

}  // namespace
}  // namespace dynosim
