// SPDX-License-Identifier: Apache-2.0
// Catalog: what performance data and model configurations are at hand. A data folder holds
// packs/<system>--<backend>--<version>.pack and models/<organization>--<name>.json (or .json.zst);
// of several folders the first that has a file wins.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/pack.h"

namespace dynosim::perfdb {

// $DYNOSIM_PERFDATA, the user's data folder, and the one that comes with the program, in this
// order.
std::vector<std::string> DefaultDataFolders();

struct PackName {
  std::string system;
  std::string backend;
  std::string version;
  std::string path;
};

struct ModelFile {
  std::string name;  // as asked for
  Json config;
  Json quantization;      // hf_quant_config.json, null when there is none
  bool packaged = false;  // by name, not from a folder of the user's
};

// The version slots of a (system, backend): {"current", "0.24.0"}, ...
using Slots = std::vector<std::pair<std::string, std::string>>;

class Catalog {
 public:
  explicit Catalog(std::vector<std::string> folders);

  const std::vector<std::string>& folders() const { return folders_; }
  // Sorted by system, backend, version.
  const std::vector<PackName>& packs() const { return packs_; }
  // Names of the packaged models, sorted.
  const std::vector<std::string>& models() const { return models_; }

  // The pack of a version: a slot name, a version that is a slot, or empty for the current one.
  // Errors say what is available, or how to install it.
  Result<Pack> OpenPack(std::string_view system, std::string_view backend,
                        std::string_view version) const;
  // Version slots; empty when there is no pack.
  Slots SlotsOf(std::string_view system, std::string_view backend) const;

  // `model` is the name of a packaged model, or a folder with config.json and perhaps
  // hf_quant_config.json.
  Result<ModelFile> OpenModel(const std::string& model) const;

 private:
  std::vector<std::string> Systems() const;
  std::vector<std::string> Backends(std::string_view system) const;
  std::unexpected<Error> NoPack(std::string_view system, std::string_view backend) const;

  std::vector<std::string> folders_;
  std::vector<PackName> packs_;
  std::vector<std::string> models_;
};

}  // namespace dynosim::perfdb
