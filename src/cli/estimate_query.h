// SPDX-License-Identifier: Apache-2.0
// EstimateQuery: one question to the performance model, from flags or from a line of JSON, and its
// answer. Databases and models are kept, so that many questions about the same ones are cheap.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/catalog.h"
#include "timing/op_level/database.h"
#include "timing/op_level/memory.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::cli {

enum class EstimatePhase { kPrefill, kDecode, kCapacity, kOperations };

struct EstimateQuery {
  EstimatePhase phase = EstimatePhase::kPrefill;
  timing::Deployment deployment;
  std::uint64_t batch = 1;
  std::uint64_t isl = 0;      // prefill: tokens of a sequence, the cached prefix included
  std::uint64_t prefix = 0;   // prefill: cached tokens
  std::uint64_t context = 0;  // decode: tokens of a sequence, the current one included
  timing::CapacityQuestion capacity;
};

// Reads one JSON object: phase, model, system, backend, backend_version, parallel {...}, and the
// sizes of the phase. `where` names the line for errors.
Result<EstimateQuery> DecodeEstimateQuery(const Json& json, std::string_view where);
// The whole numbers that a phase needs are there and make sense.
Result<void> CheckEstimateQuery(const EstimateQuery& query);

class Estimator {
 public:
  explicit Estimator(perfdb::Catalog catalog) : catalog_(std::move(catalog)) {}

  const perfdb::Catalog& catalog() const { return catalog_; }
  // The model of a deployment; valid as long as the estimator.
  Result<const timing::PassModel*> ModelOf(const timing::Deployment& deployment);
  // {"ms": x}, {"num_gpu_blocks": n, ...} or {"context_ops": [...], "generation_ops": [...]}.
  Result<Json> Answer(const EstimateQuery& query);

 private:
  Result<timing::PerfDatabase*> DatabaseOf(const timing::Deployment& deployment);

  perfdb::Catalog catalog_;
  std::map<std::string, std::unique_ptr<timing::PerfDatabase>> databases_;
  // The model that was asked last; its database stays open.
  std::string last_key_;
  std::unique_ptr<timing::PassModel> last_;
};

// Error of a question that the data cannot answer.
std::unexpected<Error> PassError(const timing::Failure& failure);

}  // namespace dynosim::cli
