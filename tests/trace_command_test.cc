// SPDX-License-Identifier: Apache-2.0
// `dynosim trace` as users run it: what it prints, what it writes, and how it fails.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"

namespace dynosim {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int code = -1;
  std::string text;  // both outputs
};

class TraceCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "trace_command_test_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Finished Run(const std::string& arguments) const {
    const std::string out = folder_ + "out";
    const std::string command = std::string(DYNO_PROGRAM) + " " + arguments + " >" + out + " 2>&1";
    const int status = std::system(command.c_str());
    return {.code = WEXITSTATUS(status), .text = Content(out)};
  }
  std::string Write(const std::string& name, std::string_view content) const {
    std::ofstream(folder_ + name, std::ios::binary) << content;
    return folder_ + name;
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
};

constexpr std::string_view kSeconds =
    R"({"timestamp":1700000000.5,"input_length":4,"output_length":1,"hash_ids":[7]}
{"timestamp":1700000000.25,"input_length":4,"output_length":1,"hash_ids":[8]}
)";

TEST_F(TraceCommand, CheckNamesWhatIsOdd) {
  const Finished check = Run("trace check --json " + Write("t.jsonl", kSeconds));
  EXPECT_EQ(check.code, 0);
  const auto json = ParseJson(check.text, "output");
  ASSERT_TRUE(json.has_value()) << check.text;
  EXPECT_EQ(json->Find("format")->string(), "mooncake");
  EXPECT_EQ(json->Find("time_unit")->string(), "seconds");
  EXPECT_EQ(json->Find("verdict")->string(), "can be replayed, with warnings");
  ASSERT_EQ(json->Find("warnings")->array().size(), 2U);
  EXPECT_NE(json->Find("warnings")->array()[0].string().find("look like seconds"),
            std::string::npos);
}

TEST_F(TraceCommand, FixOrdersTheTraceInMilliseconds) {
  const std::string out = folder_ + "fixed.jsonl";
  const Finished convert =
      Run("trace convert --fix --output " + out + " " + Write("t.jsonl", kSeconds));
  EXPECT_EQ(convert.code, 0);
  EXPECT_EQ(convert.text, "Wrote " + out + ": --trace-format mooncake --trace-block-size 512\n");
  EXPECT_EQ(Content(out),
            R"({"timestamp": 0.0, "input_length": 4, "output_length": 1, "hash_ids": [1]}
{"timestamp": 250.0, "input_length": 4, "output_length": 1, "hash_ids": [0]}
)");
}

TEST_F(TraceCommand, StatsCountLengthsAndSharing) {
  const Finished stats =
      Run("trace stats --json --trace-block-size 4 " +
          Write("t.jsonl",
                R"({"timestamp":0,"input_length":8,"output_length":1,"hash_ids":[1,2]}
{"timestamp":9,"input_length":8,"output_length":3,"hash_ids":[1,3]}
)"));
  const auto json = ParseJson(stats.text, "output");
  ASSERT_TRUE(json.has_value()) << stats.text;
  EXPECT_EQ(json->Find("reusable_prompt_tokens")->number(), 4.0);
  EXPECT_EQ(json->Find("reusable_prompt_ratio")->number(), 0.25);
  EXPECT_EQ(json->Find("output_tokens")->Find("max")->number(), 3.0);
}

TEST_F(TraceCommand, ErrorsAreOneLineAndTellTheExitCode) {
  const Finished missing = Run("trace check " + folder_ + "none");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.text.find("dynosim: error: "), 0U);
  const Finished unknown = Run("trace stats " + Write("t.txt", "hello\n"));
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.text.find("is not recognised; name it with --format"), std::string::npos);
  const Finished unit = Run("trace convert --time-unit h " + Write("t.jsonl", kSeconds));
  EXPECT_EQ(unit.code, 2);
  EXPECT_EQ(unit.text, "dynosim: error: --time-unit: must be s, ms, us or ns, got 'h'\n");
  EXPECT_EQ(Run("trace").code, 2);
}

}  // namespace
}  // namespace dynosim
