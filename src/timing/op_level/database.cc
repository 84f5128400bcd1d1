// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/database.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "perfdb/pack.h"
#include "perfdb/sites.h"
#include "perfdb/system_spec.h"
#include "perfdb/table.h"
#include "timing/op_level/modes.h"

namespace dynosim::timing {
namespace {

// How much of a table one attention kernel fills.
struct Lane {
  std::string name;
  double keys = 0.0;
  double points = 0.0;
  double primary_keys = 0.0;
  double primary_points = 0.0;
};

double Count(const Json& lane, std::string_view name) {
  const Json* const value = lane.Find(name);
  return value != nullptr && value->is_number() ? value->number() : 0.0;
}

std::vector<Lane> ReadLanes(const Json& header, std::string_view table) {
  std::vector<Lane> lanes;
  const Json* const all = header.Find("lanes");
  const Json* const list = all == nullptr ? nullptr : all->Find(table);
  if (list == nullptr || !list->is_array()) {
    return lanes;
  }
  for (const Json& lane : list->array()) {
    const Json* const name = lane.Find("name");
    if (name != nullptr && name->is_string()) {
      lanes.push_back({.name = name->string(),
                       .keys = Count(lane, "keys"),
                       .points = Count(lane, "points"),
                       .primary_keys = Count(lane, "primary_keys"),
                       .primary_points = Count(lane, "primary_points")});
    }
  }
  return lanes;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Names by falling density, then by name.
void SortByDensity(std::vector<std::string>& names, const std::vector<Lane>& lanes, bool primary) {
  const auto rank = [&](const std::string& name) {
    const auto lane =
        std::find_if(lanes.begin(), lanes.end(), [&name](const Lane& l) { return l.name == name; });
    if (lane == lanes.end()) {
      return std::tuple(0.0, 0.0, name);
    }
    return primary ? std::tuple(-lane->primary_keys, -lane->primary_points, name)
                   : std::tuple(-lane->keys, -lane->points, name);
  };
  std::sort(names.begin(), names.end(),
            [&rank](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

// Donors first, then the default, then whatever else the table has.
std::vector<std::string> Walk(const std::vector<std::string>& pinned,
                              const std::vector<Lane>& lanes, bool primary) {
  std::vector<std::string> donors;
  for (const char* const donor : {"fa3", "fla", "flashinfer", "triton", "trtllm_mha"}) {
    if (!Contains(pinned, donor)) {
      donors.emplace_back(donor);
    }
  }
  SortByDensity(donors, lanes, primary);
  donors.emplace_back("default");
  std::vector<std::string> others;
  for (const Lane& lane : lanes) {
    if (!Contains(pinned, lane.name) && !Contains(donors, lane.name)) {
      others.push_back(lane.name);
    }
  }
  SortByDensity(others, lanes, primary);
  donors.insert(donors.end(), others.begin(), others.end());
  return donors;
}

}  // namespace

Result<PerfDatabase> PerfDatabase::FromPack(perfdb::Pack pack) {
  PerfDatabase database(std::move(pack));
  const Json& header = database.pack_.header();
  const auto text = [&header](std::string_view name) {
    const Json* const value = header.Find(name);
    return value != nullptr && value->is_string() ? value->string() : std::string();
  };
  const Json* const spec = header.Find("spec");
  if (spec == nullptr) {
    return FailedError(database.pack_.where(), "the header has no description of the system");
  }
  DYNO_TRY(database.system_,
           perfdb::SystemSpec::FromJson(*spec, text("system"), database.pack_.where()));
  database.backend_ = text("backend");
  database.version_ = text("version");
  return database;
}

const perfdb::Table* PerfDatabase::Find(std::string_view name) {
  auto at = tables_.find(name);
  if (at == tables_.end()) {
    auto loaded = pack_.Load(name);
    if (!loaded && !damage_) {
      damage_ = loaded.error();
    }
    at = tables_.emplace(std::string(name), loaded ? *std::move(loaded) : std::nullopt).first;
  }
  return at->second ? &*at->second : nullptr;
}

const perfdb::GemmSites* PerfDatabase::Gemms(std::string_view dtype) {
  auto at = gemms_.find(dtype);
  if (at == gemms_.end()) {
    std::unique_ptr<perfdb::GemmSites> sites;
    const perfdb::Table* const table = Find("gemm");
    const double bytes = BytesOf(dtype);
    const double mem_bw = system_.mem_bw;
    const std::optional<double> flops = Flops(dtype);
    // Without the arithmetic no least time raises the measured ones; such a mode is refused anyway.
    const perfdb::GemmSol sol = [=](double m, double n, double k) {
      return flops ? std::max(2.0 * m * n * k / *flops * 1000.0,
                              bytes * (m * n + m * k + n * k) / mem_bw * 1000.0)
                   : 0.0;
    };
    if (table != nullptr) {
      if (auto found = perfdb::GemmSites::FromTable(*table, dtype, sol)) {
        sites = std::make_unique<perfdb::GemmSites>(*std::move(found));
      }
    }
    at = gemms_.emplace(std::string(dtype), std::move(sites)).first;
  }
  return at->second.get();
}

std::optional<double> PerfDatabase::Flops(std::string_view mode) const {
  const Mode* const found = FindMode(mode);
  return found == nullptr ? std::nullopt
                          : system_.flops[static_cast<std::size_t>(found->arithmetic)];
}

std::vector<std::string> PerfDatabase::LanesOf(std::string_view table) const {
  std::vector<std::string> names;
  for (const Lane& lane : ReadLanes(pack_.header(), table)) {
    names.push_back(lane.name);
  }
  return names;
}

std::vector<std::string> PerfDatabase::LaneOrder(std::string_view table,
                                                 std::string_view architecture) const {
  const Json* known = pack_.header().Find("default_lane");
  const Json* const by_architecture = pack_.header().Find("architecture_lanes");
  if (by_architecture != nullptr && by_architecture->is_object() &&
      by_architecture->Find(architecture) != nullptr) {
    known = by_architecture->Find(architecture);
  }
  if (known == nullptr || !known->is_string()) {
    return {"default"};
  }
  std::vector<std::string> order;
  if (known->string() != "default") {
    order.push_back(known->string());
  }
  const std::vector<std::string> pinned = order;
  const std::vector<Lane> lanes = ReadLanes(pack_.header(), table);
  const auto in_primary = [&lanes](std::string_view name) {
    return std::any_of(lanes.begin(), lanes.end(), [name](const Lane& lane) {
      return lane.name == name && lane.primary_keys > 0.0;
    });
  };
  for (const bool primary : {true, false}) {
    for (const std::string& name : Walk(pinned, lanes, primary)) {
      if (in_primary(name) == primary) {
        order.push_back(name);
      }
    }
  }
  return order;
}

}  // namespace dynosim::timing
