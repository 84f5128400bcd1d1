// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace dynosim {
namespace {

TEST(Base64, TheVectorsOfTheStandardGoBothWays) {
  for (const auto& [bytes, text] : {std::pair<std::string_view, std::string_view>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    const auto back = DecodeBase64(text);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, bytes);
  }
}

TEST(Base64, AnythingElseIsAnError) {
  for (const std::string_view text : {"Zg=", "Z", "Z===", "Zg==Zg==", "Zm9 ", "Zm9\n", "Zm9-"}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

}  // namespace
}  // namespace dynosim
