// SPDX-License-Identifier: Apache-2.0
// The parts of every request's time add up exactly in the report of every recorded case, as doubles
// read back from its text.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cases_for_test.h"
#include "base/json.h"

namespace dynosim {
namespace {

namespace fs = std::filesystem;

constexpr std::array kParts = {"queue", "prefill", "transfer", "first_decode_wait", "decode"};

std::string Content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json Parsed(const fs::path& path) {
  const auto json = ParseJson(Content(path), path.string());
  EXPECT_TRUE(json) << json.error().Text();
  return json.value_or(Json());
}

std::string AsArgument(const Json& value) {
  return value.is_string() ? value.string() : DumpJson(value);
}

// The command line of a case, as tests/conformance/README.md describes it.
std::vector<std::string> Arguments(const Json& c, const fs::path& scratch) {
  std::vector<std::string> out = {"replay"};
  if (const Json* const trace = c.Find("trace"); trace != nullptr && trace->is_array()) {
    std::ofstream file(scratch / "trace.jsonl", std::ios::binary);
    for (const Json& row : trace->array()) {
      file << AsArgument(row) << '\n';
    }
    out.push_back((scratch / "trace.jsonl").string());
  } else if (trace != nullptr && trace->is_string()) {
    out.push_back(trace->string());
  }
  if (const Json* const args = c.Find("args"); args != nullptr) {
    for (const Json::Member& member : args->object()) {
      std::string flag = "--" + member.first;
      std::ranges::replace(flag, '_', '-');
      if (member.second.is_null() || member.second == Json(false) ||
          flag == "--capture-per-request") {
        continue;
      }
      out.push_back(std::move(flag));
      if (member.second != Json(true)) {
        out.push_back(AsArgument(member.second));
      }
    }
  }
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kDocuments = {
      {{"engine", "--extra-engine-args"},
       {"prefill_engine", "--prefill-engine-args"},
       {"decode_engine", "--decode-engine-args"},
       {"router", "--router-config"}}};
  for (const auto& [key, flag] : kDocuments) {
    if (const Json* const document = c.Find(key); document != nullptr && !document->is_null()) {
      out.insert(out.end(), {flag, DumpJson(*document)});
    }
  }
  out.insert(out.end(), {"--replay-mode", "offline", "--capture-per-request", "--report-json",
                         (scratch / "report.json").string()});
  return out;
}

// Runs the program in `folder`; true if it wrote a report.
bool Replayed(const std::vector<std::string>& arguments, const fs::path& folder) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::string> words = {DYNO_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) == nullptr ||
        std::freopen("/dev/null", "w", stderr) == nullptr || chdir(folder.c_str()) != 0) {
      _exit(98);
    }
    execv(argv[0], argv.data());
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class TimePartsOfCases : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    scratch_ = fs::path(testing::TempDir()) / ("time_parts_test_" + std::to_string(getpid()));
    fs::create_directories(scratch_);
  }
  void TearDown() override { fs::remove_all(scratch_); }

  void ExpectSum(const Json& row, const char* parts_key, const char* total_key) {
    const Json* const parts = row.Find(parts_key);
    const Json* const total = row.Find(total_key);
    ASSERT_TRUE(parts != nullptr && total != nullptr);
    ASSERT_EQ(parts->is_null(), total->is_null()) << DumpJson(row);
    if (total->is_null()) {
      return;
    }
    double forward = 0.0;
    double backward = 0.0;
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      const double part = parts->Find(kParts[i])->number();
      ASSERT_GE(part, 0.0) << DumpJson(row);
      forward += part;
      backward += parts->Find(kParts[kParts.size() - 1 - i])->number();
    }
    ASSERT_EQ(forward, total->number()) << DumpJson(row);
    ASSERT_EQ(backward, total->number()) << DumpJson(row);
    ++sums_;
  }

  fs::path scratch_;
  std::size_t sums_ = 0;
};

TEST_P(TimePartsOfCases, AddUpExactlyForEveryRequest) {
  const fs::path folder = fs::path(DYNO_SOURCE_DIR) / "tests/conformance/cases" / GetParam();
  std::size_t seen = 0, reports = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || (kSanitized && ++seen % 10 != 0)) {
      continue;
    }
    SCOPED_TRACE(entry.path().filename().string());
    if (!Replayed(Arguments(Parsed(entry.path()), scratch_), folder)) {
      continue;  // cases that must be refused
    }
    ++reports;
    const Json report = Parsed(scratch_ / "report.json");
    ASSERT_TRUE(report.Find("per_request") != nullptr);
    for (const Json& row : report.Find("per_request")->array()) {
      ExpectSum(row, "ttft_parts_ms", "ttft_ms");
      ExpectSum(row, "e2e_parts_ms", "e2e_latency_ms");
    }
  }
  EXPECT_GT(reports, Cases(10));
  EXPECT_GT(sums_, Cases(100));
}

INSTANTIATE_TEST_SUITE_P(Areas, TimePartsOfCases,
                         testing::Values("engine", "workload", "sglang", "disagg", "router"),
                         [](const auto& area) { return std::string(area.param); });

}  // namespace
}  // namespace dynosim
