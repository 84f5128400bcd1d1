// SPDX-License-Identifier: Apache-2.0
// A fixture for tests of trace formats: writes a file, loads it as a replay would, and tells what
// came out. Not part of the program.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/agentic_source.h"
#include "workload/load.h"
#include "workload/request.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::workload {

class TraceTestCase : public testing::Test {
 protected:
  explicit TraceTestCase(std::string format, std::string file = "t.jsonl")
      : file_(std::move(file)) {
    spec_.trace.emplace().format = std::move(format);
  }
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              fmt::format("{}_{}", test.test_suite_name(), test.name());
    std::filesystem::create_directories(folder_);
    spec_.trace->files = {(folder_ / file_).string()};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  Result<LoadedWorkload> TryLoad(std::string_view text) {
    Write(file_, text);
    return LoadWorkload(spec_, engine_block_size_);
  }
  RequestSource& Load(std::string_view text) {
    Write(file_, text);
    return LoadFiles();
  }
  RequestSource& LoadFiles() {
    auto loaded = LoadWorkload(spec_, engine_block_size_);
    if (!loaded) {
      ADD_FAILURE() << loaded.error().Text();
      std::abort();
    }
    warnings_ = loaded->warnings;
    source_ = std::move(loaded->source);
    return *source_;
  }
  // The error without the folder of the file.
  std::string ErrorOf(std::string_view text) {
    const auto loaded = TryLoad(text);
    if (loaded) {
      return "no error";
    }
    std::string message = loaded.error().Text();
    const std::string folder = folder_.string() + "/";
    for (std::size_t at = message.find(folder); at != message.npos; at = message.find(folder)) {
      message.erase(at, folder.size());
    }
    return message;
  }
  // What is ready by `now_ms`, in order: the number of the request, or its id in a graph.
  std::vector<std::string> Release(double now_ms) {
    std::vector<std::string> names;
    Request request;
    while (source_->Release(now_ms, request)) {
      requests_.push_back(request);
      names.push_back(Name(request.id));
    }
    return names;
  }
  void Complete(const std::string& name, double now_ms,
                TerminalStatus status = TerminalStatus::kCompleted) {
    for (std::uint32_t id = 0; id < source_->RequestCount(); ++id) {
      if (Name(id) == name) {
        source_->OnTerminal(id, now_ms, status, 1);
        return;
      }
    }
    ADD_FAILURE() << "no request " << name;
  }
  std::string Name(std::uint32_t id) const {
    const AgenticSource* const agentic = source_->Agentic();
    return agentic != nullptr ? agentic->graph().nodes[id].id : std::to_string(id);
  }
  // "source trigger relation delay" of all edges into a node of a graph.
  std::vector<std::string> EdgesInto(const std::string& name) const {
    const AgenticGraph& graph = source_->Agentic()->graph();
    std::vector<std::string> edges;
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].id != name) {
        continue;
      }
      for (const AgenticEdge& edge : graph.EdgesInto(n)) {
        edges.push_back(fmt::format("{} {} {} {}", graph.nodes[edge.source].id,
                                    TriggerName(edge.trigger), RelationName(edge.relation),
                                    edge.delay_ms));
      }
    }
    return edges;
  }
  std::vector<std::uint32_t> Prompt(std::uint32_t id) const {
    std::vector<std::uint32_t> tokens;
    source_->PromptTokens(id, tokens);
    return tokens;
  }

  std::string file_;
  std::filesystem::path folder_;
  WorkloadSpec spec_;
  std::uint64_t engine_block_size_ = 4;
  std::vector<std::string> warnings_;
  std::unique_ptr<RequestSource> source_;
  std::vector<Request> requests_;
};

}  // namespace dynosim::workload
