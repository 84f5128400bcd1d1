// SPDX-License-Identifier: Apache-2.0
// Bytes of a model's weights on one GPU, from the operations of the context phase.
#pragma once

#include "base/result.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {

Result<double> WeightBytes(const PassModel& model);

}  // namespace dynosim::timing
