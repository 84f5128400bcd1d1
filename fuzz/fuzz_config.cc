// SPDX-License-Identifier: Apache-2.0
// Any bytes as an engine configuration and as an NPZ profile: a value or an error of one line,
// never a crash. What decodes must decode to the same settings from its own JSON text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "engine/settings_decode.h"
#include "timing/npz.h"

namespace {

void Configuration(std::string_view text) {
  const auto json = dynosim::ParseJson(text, "input");
  if (!json) {
    DYNO_CHECK(json.error().message.find('\n') == std::string_view::npos);
    return;
  }
  const auto again = dynosim::ParseJson(dynosim::DumpJson(*json), "output");
  DYNO_CHECK(again && *again == *json);
  // A profile would read the path that the input names.
  if (text.find("dynamo_profile") == std::string_view::npos) {
    const auto settings = dynosim::engine::DecodeEngineSettings(*json, "input");
    DYNO_CHECK(!settings || settings->timing != nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Configuration(text);
  constexpr std::string_view kNames[] = {"a", "prefill_isl"};
  const auto arrays = dynosim::timing::ParseNpz(text, kNames);
  DYNO_CHECK(arrays || !arrays.error().message.empty());
  return 0;
}
