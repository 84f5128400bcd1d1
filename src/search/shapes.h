// SPDX-License-Identifier: Apache-2.0
// Parallel shapes: how a model may be split over the GPUs of a worker, and how many such workers a
// budget holds (chapter 60, C.1, preset default).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace dynosim::search {

struct Shape {
  std::uint64_t replicas = 1;
  std::uint64_t tensor = 1;
  std::uint64_t pipeline = 1;
  std::uint64_t attention_data = 1;
  std::uint64_t moe_tensor = 1;
  std::uint64_t moe_expert = 1;

  std::uint64_t gpus() const { return replicas * tensor * pipeline * attention_data; }
  // The mapping `parallelism` of a document.
  Json ToJson() const;
};

// What limits how a model can be split.
struct ModelWidth {
  std::uint64_t heads = 0;
  std::uint64_t experts = 0;  // 0: a dense model
  std::uint64_t expert_inter = 0;
};

// `model` as in engine.model; errors name `where`.
Result<ModelWidth> ReadModelWidth(const std::string& model, const std::string& where);

// Workers of 1, 2, 4, 8 and 16 GPUs with every count of replicas up to `max_gpus`, small workers
// first. Attention is split by heads or copied, which a mixture of experts may do; experts are
// split by width or spread out whole.
std::vector<Shape> LegalShapes(const ModelWidth& model, std::uint64_t max_gpus);

}  // namespace dynosim::search
