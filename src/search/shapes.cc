// SPDX-License-Identifier: Apache-2.0
#include "search/shapes.h"

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/catalog.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::search {
namespace {

// Zero divides nothing and limits nothing: the file does not say.
bool Divides(std::uint64_t parts, std::uint64_t whole) { return whole % parts == 0; }

std::vector<Shape> DenseWorkers(const ModelWidth& model, std::uint64_t gpus) {
  if (!Divides(gpus, model.heads)) {
    return {};
  }
  return {Shape{.tensor = gpus}};
}

std::vector<Shape> ExpertWorkers(const ModelWidth& model, std::uint64_t gpus) {
  std::vector<Shape> workers;
  for (const bool copied : {false, true}) {
    for (const bool spread : {false, true}) {
      const bool fits = (copied || Divides(gpus, model.heads)) &&
                        Divides(gpus, spread ? model.experts : model.expert_inter);
      // On one GPU all four are the same.
      if (!fits || (gpus == 1 && (copied || spread))) {
        continue;
      }
      workers.push_back({.tensor = copied ? 1 : gpus,
                         .attention_data = copied ? gpus : 1,
                         .moe_tensor = spread ? 1 : gpus,
                         .moe_expert = spread ? gpus : 1});
    }
  }
  return workers;
}

}  // namespace

Json Shape::ToJson() const {
  Json json;
  json.Add("replicas", replicas);
  json.Add("tensor", tensor);
  json.Add("pipeline", pipeline);
  json.Add("attention_data", attention_data);
  json.Add("moe_tensor", moe_tensor);
  json.Add("moe_expert", moe_expert);
  return json;
}

Result<ModelWidth> ReadModelWidth(const std::string& model, const std::string& where) {
  const perfdb::Catalog catalog(perfdb::DefaultDataFolders());
  auto file = catalog.OpenModel(model);
  if (!file) {
    return FailedError(where + ": engine.model", file.error().message);
  }
  const auto spec = timing::ReadModelSpec(*file);
  if (!spec) {
    return FailedError(where + ": engine.model", spec.error().Text());
  }
  return ModelWidth{
      .heads = spec->heads, .experts = spec->experts, .expert_inter = spec->moe_inter};
}

std::vector<Shape> LegalShapes(const ModelWidth& model, std::uint64_t max_gpus) {
  std::vector<Shape> shapes;
  for (const std::uint64_t gpus : {1, 2, 4, 8, 16}) {
    const std::vector<Shape> workers =
        model.experts == 0 ? DenseWorkers(model, gpus) : ExpertWorkers(model, gpus);
    for (Shape shape : workers) {
      for (shape.replicas = 1; shape.replicas * gpus <= max_gpus; ++shape.replicas) {
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

}  // namespace dynosim::search
