// SPDX-License-Identifier: Apache-2.0
// ModelFacts: what a prediction needs to know of its model beside the timing of passes. The model
// is looked up when the first question comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "perfdb/catalog.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::scenario {

class ModelFacts {
 public:
  // `model` is the name of a known model, or a directory with config.json.
  explicit ModelFacts(std::string model);

  const perfdb::Catalog& catalog() const { return catalog_; }

  // The longest sequence in tokens that the model is made for.
  Result<std::uint64_t> MaxContextLength();
  // KV bytes of a token that workers send to each other; `tensor` is the width of the sender.
  Result<std::uint64_t> TransferBytesPerToken(std::uint64_t tensor);
  // KV bytes of a token on one rank of a deployment.
  Result<std::uint64_t> CacheBytesPerToken(const timing::Deployment& deployment) const;

 private:
  Result<const perfdb::ModelFile*> File();

  std::string model_;
  perfdb::Catalog catalog_;
  std::optional<perfdb::ModelFile> file_;
};

}  // namespace dynosim::scenario
