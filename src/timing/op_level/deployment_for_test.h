// SPDX-License-Identifier: Apache-2.0
// Deployments on the data that comes with the program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "perfdb/catalog.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {

inline perfdb::Catalog ShippedCatalog() {
  return perfdb::Catalog({std::string(DYNO_SOURCE_DIR) + "/data/perfdata"});
}

inline Deployment OnH200(std::string_view model, std::string_view backend, std::uint64_t tp = 1) {
  Deployment deployment;
  deployment.model = model;
  deployment.system = "h200_sxm";
  deployment.backend = backend;
  deployment.tp = tp;
  return deployment;
}

inline Result<std::unique_ptr<PassModel>> Open(const Deployment& deployment) {
  return PassModel::Make(deployment, ShippedCatalog());
}

inline ModelSpec SpecOf(const std::string& model) {
  return *ReadModelSpec(*ShippedCatalog().OpenModel(model));
}

}  // namespace dynosim::timing
