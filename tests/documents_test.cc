// SPDX-License-Identifier: Apache-2.0
// The documents are true: the reference page is the one that the program writes, completion scripts
// complete, and every command of every page runs (tests/docs/run).
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cases_for_test.h"

namespace dynosim {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int code = -1;
  std::string out;  // both outputs
};

// Runs a line of the shell in the folder of the repository.
Finished Shell(const std::string& line) {
  Finished done;
  const std::string command = std::string("cd " DYNO_SOURCE_DIR " && { ") + line + "; } 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return done;
  }
  std::array<char, 4096> part = {};
  while (std::fgets(part.data(), static_cast<int>(part.size()), pipe) != nullptr) {
    done.out += part.data();
  }
  done.code = WEXITSTATUS(pclose(pipe));
  return done;
}

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Reference, IsTheOneThatTheProgramWrites) {
  const Finished written = Shell(DYNO_PROGRAM " reference");
  ASSERT_EQ(written.code, 0);
  EXPECT_TRUE(written.out == Content(DYNO_SOURCE_DIR "/docs/reference.md"))
      << "docs/reference.md is stale: build/dynosim reference > docs/reference.md";
}

TEST(Version, NamesTheBuildAndTheMeasuredData) {
  const Finished version = Shell(DYNO_PROGRAM " --version");
  EXPECT_EQ(version.code, 0);
  EXPECT_NE(version.out.find("\nbuild: "), std::string::npos) << version.out;
  EXPECT_NE(version.out.find("\ndata: h200_sxm: sglang 0.5.14, "), std::string::npos)
      << version.out;
}

// What bash offers for the last of the words.
std::string BashOffers(const std::string& words, int last) {
  return Shell("bash -c 'source <(" DYNO_PROGRAM " completion bash); COMP_WORDS=(" + words +
               "); COMP_CWORD=" + std::to_string(last) +
               "; _dynosim; printf \"%s \" \"${COMPREPLY[@]}\"'")
      .out;
}

TEST(Completion, OfBashOffersCommandsFlagsValuesAndFiles) {
  EXPECT_EQ(BashOffers("dynosim re", 1), "recommend replay ");
  EXPECT_EQ(BashOffers("dynosim trace c", 2), "check convert ");
  EXPECT_EQ(BashOffers("dynosim replay --num-p", 2), "--num-prefix-groups --num-prefill-workers ");
  EXPECT_EQ(BashOffers("dynosim replay --router-mode r", 3), "round_robin random ");
  EXPECT_EQ(BashOffers("dynosim replay --router-mode = k", 4), "kv_router ");
  EXPECT_EQ(BashOffers("dynosim replay --num-workers \"\"", 3), " ");
  EXPECT_EQ(BashOffers("dynosim predict -c examples/sg", 3), "examples/sglang.yaml ");
  EXPECT_EQ(BashOffers("dynosim replay examples/conv", 2),
            "examples/conversation_trace.jsonl.zst ");
  EXPECT_EQ(BashOffers("dynosim completion f", 2), "fish ");
}

// Shells that are not there are skipped by name.
bool Installed(const std::string& shell) { return Shell("command -v " + shell).code == 0; }

// What fish offers for a line that is being typed.
std::string FishOffers(const std::string& line) {
  return Shell("fish -N -c '" DYNO_PROGRAM " completion fish | source; complete -C \"" + line +
               "\" | string replace -r \"\\t.*\" \"\" | string join \" \"'")
      .out;
}

TEST(Completion, OfFishOffersCommandsFlagsValuesAndFiles) {
  if (!Installed("fish")) {
    GTEST_SKIP() << "fish is not installed";
  }
  EXPECT_EQ(FishOffers("dynosim re"), "recommend replay\n");
  EXPECT_EQ(FishOffers("dynosim trace c"), "check convert\n");
  EXPECT_EQ(FishOffers("dynosim replay --num-p"), "--num-prefill-workers --num-prefix-groups\n");
  EXPECT_EQ(FishOffers("dynosim replay --router-mode r"), "random round_robin\n");
  EXPECT_EQ(FishOffers("dynosim predict -c examples/sg"), "examples/sglang.yaml\n");
}

// What zsh offers for a line that is being typed: its completion wants a terminal, which zpty is.
std::string ZshOffers(const std::string& line) {
  const std::string folder = testing::TempDir() + "zsh_completion_" + std::to_string(getpid());
  fs::create_directories(folder);
  const Finished done =
      Shell("cd " DYNO_SOURCE_DIR " && zsh -f tests/docs/zsh_offers " DYNO_PROGRAM " " + folder +
            " '" + line + "'");
  fs::remove_all(folder);
  return done.out;
}

TEST(Completion, OfZshOffersCommandsFlagsValuesAndFiles) {
  if (!Installed("zsh")) {
    GTEST_SKIP() << "zsh is not installed";
  }
  EXPECT_EQ(ZshOffers("dynosim re"), "recommend replay\n");
  EXPECT_EQ(ZshOffers("dynosim trace c"), "check convert\n");
  EXPECT_EQ(ZshOffers("dynosim replay --num-p"), "--num-prefill-workers --num-prefix-groups\n");
  EXPECT_EQ(ZshOffers("dynosim replay --router-mode r"), "random round_robin\n");
  EXPECT_EQ(ZshOffers("dynosim predict -c examples/sg"), "sglang.yaml\n");
}

TEST(Completion, OfOtherShellsIsReadByThem) {
  for (const std::string shell : {"zsh", "fish"}) {
    const Finished script = Shell(DYNO_PROGRAM " completion " + shell);
    EXPECT_EQ(script.code, 0);
    EXPECT_NE(script.out.find("num-prefill-workers"), std::string::npos);
    if (Installed(shell)) {
      const Finished read = Shell(DYNO_PROGRAM " completion " + shell + " | " + shell + " -n");
      EXPECT_EQ(read.code, 0) << read.out;
    }
  }
  EXPECT_EQ(Shell(DYNO_PROGRAM " completion tcsh").code, 2);
}

// One test a page, so that they run side by side and a failure names its page.
class Document : public testing::TestWithParam<std::string> {};

TEST_P(Document, ShowsCommandsThatRun) {
  if (kSanitized) {
    GTEST_SKIP() << "whole commands take minutes under the sanitizers";
  }
  const Finished run = Shell("tests/docs/run --bin " DYNO_PROGRAM " " + GetParam());
  EXPECT_EQ(run.code, 0) << run.out;
}

std::vector<std::string> Documents() {
  std::vector<std::string> pages = {"README.md", "CONTRIBUTING.md", "examples/README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(DYNO_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") {
      pages.push_back(fs::relative(entry.path(), DYNO_SOURCE_DIR).string());
    }
  }
  std::ranges::sort(pages);
  return pages;
}

INSTANTIATE_TEST_SUITE_P(Pages, Document, testing::ValuesIn(Documents()), [](const auto& page) {
  std::string name = page.param;
  std::ranges::replace_if(name, [](char c) { return c == '/' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace dynosim
