// SPDX-License-Identifier: Apache-2.0
// AisTiming: the timing model made of measured operations (op_level/), for the external providers
// "ais" and "aic". It remembers answers, so an instance must not be asked from two threads at once;
// each simulation makes its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/json.h"
#include "base/result.h"
#include "timing/model.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {

// The `config` object of the provider.
struct AisConfig {
  Deployment deployment;
  std::optional<std::string> worker_type;      // prefill, decode, aggregated
  std::optional<std::uint64_t> kv_block_size;  // must be that of the engine
  std::vector<std::string> data_folders;       // in front of the usual ones
};
Result<AisConfig> DecodeAisConfig(const Json& config, const std::string& path,
                                  std::string_view where);

class AisTiming final : public TimingModel {
 public:
  // Opens the data. A first pass is asked at once, so that missing data is an error here.
  static Result<std::shared_ptr<const AisTiming>> Make(const AisConfig& config);
  AisTiming(AisConfig config, std::unique_ptr<const PassModel> model)
      : config_(std::move(config)), model_(std::move(model)) {}

  const AisConfig& config() const { return config_; }
  const PassModel& passes() const { return *model_; }

  double PrefillMs(const PrefillBatch& batch) const override;
  double DecodeMs(const DecodeBatch& batch) const override;
  void DecodeRunMs(const DecodeBatch& first, std::span<double> out) const override;

 private:
  // Answers by question, in a small table that newer questions overwrite.
  struct Remembered {
    std::uint64_t batch = 0;  // 0: empty
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    double ms = 0.0;
  };
  using Memory = std::vector<Remembered>;
  template <class Ask>
  static double Recall(Memory& memory, const Remembered& question, const Ask& ask);

  AisConfig config_;
  std::unique_ptr<const PassModel> model_;
  mutable Memory prefills_, decodes_;
};

}  // namespace dynosim::timing
