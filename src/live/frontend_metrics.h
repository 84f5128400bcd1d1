// SPDX-License-Identifier: Apache-2.0
// FrontendMetrics: the frontend's own metric families (chapter 95, 8.4). Label values come from
// fixed sets and from the names of served models; everything else is counted as one unknown model.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "live/api_request.h"
#include "live/metrics.h"

namespace dynosim::live {

// How a request ended.
enum class RequestEnd : std::uint8_t {
  kSuccess,
  kValidation,
  kNotFound,
  kOverload,
  kCancelled,
  kInternal,
  kUnavailable,
};
inline constexpr std::size_t kRequestEnds = 7;
inline constexpr std::size_t kApis = 4;

RequestEnd EndOfStatus(int status);

class FrontendMetrics {
 public:
  explicit FrontendMetrics(std::string prefix);

  // The place of a model in the list; the same for all unknown ones.
  std::size_t AddModel(const std::string& name);
  static constexpr std::size_t kUnknownModel = 0;

  void Started(std::size_t model, Api api, bool stream);
  void Ended(std::size_t model, Api api, bool stream, RequestEnd end, double duration_ms);
  void Disconnected() { ++disconnected_; }
  void Migrated() { ++migrations_; }

  struct Model {
    explicit Model(std::string model_name);
    std::string name;
    std::array<std::array<std::array<std::uint64_t, kRequestEnds>, 2>, kApis> requests{};
    std::array<std::array<std::uint64_t, 2>, kApis> started{};
    std::int64_t inflight = 0;
    std::int64_t queued = 0;  // no token yet
    Histogram input_tokens, output_tokens, cached_tokens, ttft_s, itl_s, duration_s;
    std::uint64_t output_tokens_total = 0;
  };
  Model& model(std::size_t place) { return models_[place]; }
  const Model& model(std::size_t place) const { return models_[place]; }
  std::size_t model_count() const { return models_.size(); }

  void Write(MetricsText& out) const;

 private:
  std::string prefix_;
  std::vector<Model> models_;
  std::uint64_t disconnected_ = 0;
  std::uint64_t migrations_ = 0;
};

}  // namespace dynosim::live
