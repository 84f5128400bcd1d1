// SPDX-License-Identifier: Apache-2.0
// ProfileTiming: times measured on a grid. Prefill is interpolated linearly over the new tokens of
// the pass, decode bilinearly over (active KV tokens, mean context); beyond the grid the outermost
// segment goes on. Prefill is at least 0 ms, decode at least 1 ms.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "timing/model.h"

namespace dynosim::timing {

// Axes have two points or more and rise strictly; every value is finite.
struct Profile {
  std::vector<double> prefill_isl;
  std::vector<double> prefill_ttft_ms;
  std::vector<double> decode_active_kv_tokens;
  std::vector<double> decode_context_length;
  std::vector<double> decode_itl;  // [active][context]
};

// Reads the five arrays from an NPZ file and checks them; errors name the file and the array.
Result<Profile> LoadProfile(const std::string& path);
Result<void> CheckProfile(const Profile& profile);

class ProfileTiming final : public TimingModel {
 public:
  explicit ProfileTiming(Profile profile) : profile_(std::move(profile)) {}

  double PrefillMs(const PrefillBatch& batch) const override;
  double DecodeMs(const DecodeBatch& batch) const override;
  void DecodeRunMs(const DecodeBatch& first, std::span<double> out) const override;

 private:
  Profile profile_;
};

}  // namespace dynosim::timing
