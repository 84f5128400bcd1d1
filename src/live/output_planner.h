// SPDX-License-Identifier: Apache-2.0
// OutputPlanner: which tokens a request will generate: random words, an echo of the prompt, the
// recorded answer of a trace row, with or without reasoning in front (chapter 95, section 3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/result.h"
#include "live/api_request.h"
#include "live/live_request.h"
#include "live/tokenizer.h"

namespace dynosim::live {

struct ReasoningOptions {
  std::uint32_t start_token = 0;
  std::uint32_t end_token = 0;
  double ratio = 0.0;  // of the output limit, 0 to 1
};

// The JSON object of --reasoning.
Result<ReasoningOptions> ParseReasoning(std::string_view text);

// Recorded answers by key: the request id of a row, else its session and turn, else its line.
class ReplayTable {
 public:
  static Result<ReplayTable> Load(const std::string& path);
  const std::vector<std::uint32_t>* Find(std::string_view key) const;
  std::size_t size() const { return rows_.size(); }
  // Largest id of all answers; 0 when there are none.
  std::uint32_t LargestId() const;

 private:
  std::vector<std::vector<std::uint32_t>> rows_;
  FlatMap<std::string, std::size_t> by_key_;
};

class OutputPlanner {
 public:
  struct Options {
    std::uint64_t seed = 42;
    bool echo = false;
    std::optional<ReasoningOptions> reasoning{};
    std::optional<ReplayTable> replay{};
  };
  // The tokenizer outlives this.
  OutputPlanner(Options options, const Tokenizer& tokenizer)
      : options_(std::move(options)), tokenizer_(tokenizer) {}

  // Fills the output of a sequence whose limit is `output_tokens`, which may become shorter or, for
  // recorded answers, longer. `choice` counts the choices of one prompt.
  void Plan(const ApiRequest& request, std::uint32_t choice, LiveRequest& out);

 private:
  Options options_;
  const Tokenizer& tokenizer_;
  std::uint64_t sequences_ = 0;
};

}  // namespace dynosim::live
