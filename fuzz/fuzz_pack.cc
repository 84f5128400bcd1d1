// SPDX-License-Identifier: Apache-2.0
// Any bytes as a performance data pack: an error of one line, or tables that can be searched and
// interpolated without a crash, whatever their numbers are.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "perfdb/grid.h"
#include "perfdb/pack.h"
#include "perfdb/sites.h"
#include "perfdb/table.h"
#include "timing/op_level/database.h"

namespace {

using dynosim::perfdb::Coordinates;
using dynosim::perfdb::Grid;
using dynosim::perfdb::Pack;
using dynosim::perfdb::Table;

void Interpolate(const Table& table) {
  constexpr std::array<std::size_t, 2> kAxes = {0, 1};
  if (table.columns() < 3) {
    return;
  }
  const Grid grid = Grid::FromRows(table, table.All(), kAxes);
  const auto sol = [](const Coordinates& at) { return static_cast<double>(at[0] + at[1]); };
  for (const std::uint64_t x : {0U, 1U, 7U, 1000U}) {
    static_cast<void>(grid.At({x, x / 2}, sol, 1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto pack = Pack::Parse(bytes, "input");
  if (!pack) {
    DYNO_CHECK(pack.error().message.find('\n') == std::string_view::npos);
    return 0;
  }
  for (const std::string& name : pack->TableNames()) {
    const auto table = pack->Load(name);
    if (table && *table) {
      Interpolate(**table);
    }
  }
  auto database = dynosim::timing::PerfDatabase::FromPack(*std::move(pack));
  if (database) {
    const auto* const gemms = database->Gemms("fp8");
    if (gemms != nullptr) {
      static_cast<void>(dynosim::perfdb::GemmShape(*gemms, 100, 200).At(30));
    }
    static_cast<void>(database->LaneOrder("context_attention", "X"));
  }
  return 0;
}
