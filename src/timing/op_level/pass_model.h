// SPDX-License-Identifier: Apache-2.0
// PassModel: how long a whole forward pass of a deployment takes, from measured operations. Built
// once per deployment; questions are answered from grids, and remembered. Memory of the GPUs and
// the KV pool that is left follow from the same lists (memory.h).
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/catalog.h"
#include "timing/op_level/database.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {

// One replica of a model on a system, as the user names it.
struct Deployment {
  std::string model;  // name, or folder with config.json
  std::string system;
  std::string backend;          // vllm, sglang, trtllm
  std::string backend_version;  // version, slot, or empty for the current one
  std::uint64_t tp = 1;
  std::uint64_t pp = 1;
  std::uint64_t attention_dp = 1;
  std::uint64_t moe_tp = 1;
  std::uint64_t moe_ep = 1;
  std::uint64_t nextn = 0;
  ModeChoice modes;
};

class PassModel {
 public:
  // Opens the model's configuration and the performance data, and builds both lists. Errors are one
  // line each and say what is available.
  static Result<std::unique_ptr<PassModel>> Make(const Deployment& deployment,
                                                 const perfdb::Catalog& catalog);
  // With an open database, for many deployments on the same one. It must outlive the model.
  static Result<std::unique_ptr<PassModel>> Make(const Deployment& deployment, ModelSpec spec,
                                                 PerfDatabase& database);

  struct State;
  explicit PassModel(std::unique_ptr<State> state);
  PassModel(const PassModel&) = delete;
  PassModel& operator=(const PassModel&) = delete;
  ~PassModel();

  // Milliseconds of a prefill pass: `batch` sequences add `tokens` behind `prefix` cached ones.
  Timed PrefillMs(std::uint64_t batch, std::uint64_t tokens, std::uint64_t prefix) const;
  // Milliseconds of a decode pass: `batch` sequences of `context` tokens, the current one included.
  Timed DecodeMs(std::uint64_t batch, std::uint64_t context) const;

  struct Part {
    std::string name;
    double ms = 0.0;
    double share = 0.0;  // of the pass
  };
  // The parts of a pass by operation name, in list order; their sum is the pass.
  std::expected<std::vector<Part>, Failure> Breakdown(const PassQuery& query) const;
  // The decode question as the lists see it: draft tokens widen the batch.
  PassQuery DecodeQuery(std::uint64_t batch, std::uint64_t context) const;

  const Deployment& deployment() const;
  const ModelSpec& model() const;
  const QuantModes& modes() const;
  const ModelGraph& graph() const;
  // The operations that hold the weights: the context list without draft tokens.
  const std::vector<Operation>& weight_operations() const;
  // Data type of a shared expert.
  const std::string& shared_expert_mode() const;
  const PerfDatabase& database() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace dynosim::timing
