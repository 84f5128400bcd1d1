// SPDX-License-Identifier: Apache-2.0
// PerfDatabase: a pack as the operations see it: the system, and tables loaded when they are first
// asked for. It outlives the timers that are compiled against it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/pack.h"
#include "perfdb/sites.h"
#include "perfdb/system_spec.h"
#include "perfdb/table.h"

namespace dynosim::timing {

class PerfDatabase {
 public:
  static Result<PerfDatabase> FromPack(perfdb::Pack pack);

  const perfdb::SystemSpec& system() const { return system_; }
  const std::string& backend() const { return backend_; }
  const std::string& version() const { return version_; }

  // nullptr when the pack has no such table (or it is damaged, see damage()).
  const perfdb::Table* Find(std::string_view name);
  // The GEMM measurements of a data type; nullptr when there are none.
  const perfdb::GemmSites* Gemms(std::string_view dtype);
  // The first table that could not be read.
  const std::optional<Error>& damage() const { return damage_; }

  // Operations per second in a mode, when the system has that arithmetic.
  std::optional<double> Flops(std::string_view mode) const;
  // Attention kernels in the order in which they are looked up. `table` is one of the attention
  // tables; backends choose otherwise for some architectures.
  std::vector<std::string> LaneOrder(std::string_view table, std::string_view architecture) const;
  // Kernels of a table in the order of its files.
  std::vector<std::string> LanesOf(std::string_view table) const;

 private:
  explicit PerfDatabase(perfdb::Pack pack) : pack_(std::move(pack)) {}

  perfdb::Pack pack_;
  perfdb::SystemSpec system_;
  std::string backend_, version_;
  std::map<std::string, std::optional<perfdb::Table>, std::less<>> tables_;
  std::map<std::string, std::unique_ptr<perfdb::GemmSites>, std::less<>> gemms_;
  std::optional<Error> damage_;
};

}  // namespace dynosim::timing
