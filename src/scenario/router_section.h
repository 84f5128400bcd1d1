// SPDX-License-Identifier: Apache-2.0
// The `router` section of a prediction document (chapter 60, B.2, stack dynamo): where requests go.
// Absent, they go round robin.
#pragma once

#include <string>

#include "base/result.h"
#include "config/decode.h"
#include "router/config.h"

namespace dynosim::scenario {

struct RouterSection {
  std::string policy = "round_robin";
  std::string prefill_load_model = "none";
  double overlap_score_credit = 1.0;
  double prefill_load_scale = 1.0;
  double temperature = 0.0;
  std::uint64_t seed = 42;
};

// Reads the section, with the rules between its fields.
void RouterFields(config::Decoder& v, RouterSection& router);

// Settings of a checked section; errors name `where`.
Result<router::RouterSettings> MakeRouter(const RouterSection& section, const std::string& where);

}  // namespace dynosim::scenario
