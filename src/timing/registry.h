// SPDX-License-Identifier: Apache-2.0
// The one table of timing models: from the `timing_model` object of a configuration to a model.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "timing/ais.h"
#include "timing/model.h"

namespace dynosim::timing {

struct NamedTiming {
  std::shared_ptr<const TimingModel> model;  // never null
  Json config;                               // the object that makes the same model again
  // The same model when it is the measured one, which also knows the size of the KV cache.
  std::shared_ptr<const AisTiming> ais = nullptr;
};

// `path` is the dotted path of the object and `where` the flag or file, both for errors. Profiles
// are read from disk here.
Result<NamedTiming> MakeTiming(const Json& spec, const std::string& path, std::string_view where);

// What an absent object means.
NamedTiming DefaultTiming();

// JSON schema of the object.
Json TimingModelSchema();

}  // namespace dynosim::timing
