// SPDX-License-Identifier: Apache-2.0
// Collective communication between GPUs: latency over the message size, measured for some group
// sizes and scaled to others by the traffic and bandwidth of the group. Sizes are elements.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "perfdb/grid.h"
#include "perfdb/system_spec.h"
#include "timing/op_level/database.h"
#include "timing/op_level/op_timer.h"

namespace dynosim::timing {

// One collective over one group.
class Collective {
 public:
  // A backend's own all-reduce. Where nodes hold 72 GPUs, groups above 4 use the library's.
  static Collective AllReduce(PerfDatabase& db, std::uint64_t gpus);
  // The communication library: all_gather, reduce_scatter, all_reduce, of half precision.
  static Collective Library(PerfDatabase& db, std::string_view operation, std::uint64_t gpus);

  // Milliseconds; 0 for a group of one.
  Timed At(double elements) const;

 private:
  bool alone_ = false;
  perfdb::Curve curve_;
  double scale_ = 1.0;
  std::string missing_;
};

}  // namespace dynosim::timing
