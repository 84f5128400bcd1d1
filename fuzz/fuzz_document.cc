// SPDX-License-Identifier: Apache-2.0
// Any bytes as a YAML document of predict: a value or an error, never a crash. What decodes has one
// workload and the workers of its mode. The part behind a zero byte is an override of the part
// before it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/result.h"
#include "config/overrides.h"
#include "config/yaml_to_json.h"
#include "scenario/prediction.h"
#include "scenario/traffic_section.h"

namespace {

using dynosim::Error;
using dynosim::Json;

void CheckError(const Error& error) { DYNO_CHECK(!error.message.empty()); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = text.find('\0');
  auto document = dynosim::config::ParseYaml(text.substr(0, zero), "input");
  if (!document) {
    CheckError(document.error());
    return 0;
  }
  static_cast<void>(dynosim::DumpJson(*document));
  if (document->is_object() && zero != std::string_view::npos) {
    const auto set = dynosim::config::ApplyOverride(*document, text.substr(zero + 1), "input");
    if (!set) {
      CheckError(set.error());
    }
  }
  for (const auto stack : {dynosim::scenario::Stack::kEngine, dynosim::scenario::Stack::kDynamo}) {
    const auto decoded = dynosim::scenario::DecodePrediction(*document, stack, "input");
    if (!decoded) {
      CheckError(decoded.error());
      continue;
    }
    const auto workload = dynosim::scenario::MakeWorkload(decoded->traffic, decoded->engine.model);
    DYNO_CHECK(workload.synthetic.has_value() != workload.trace.has_value());
    const bool pair = decoded->engine.prefill && decoded->engine.decode;
    DYNO_CHECK(pair != decoded->engine.aggregated.has_value());
  }
  return 0;
}
