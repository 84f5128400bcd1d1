// SPDX-License-Identifier: Apache-2.0
// PolynomialTiming: the default model. Prefill time is a quadratic of the new tokens of the pass,
// decode time a quadratic of the share of the KV pool that the contexts fill, at least 1 ms.
#pragma once

#include <span>

#include "timing/model.h"

namespace dynosim::timing {

class PolynomialTiming final : public TimingModel {
 public:
  double PrefillMs(const PrefillBatch& batch) const override;
  double DecodeMs(const DecodeBatch& batch) const override;
  void DecodeRunMs(const DecodeBatch& first, std::span<double> out) const override;
};

}  // namespace dynosim::timing
