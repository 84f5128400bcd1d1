// SPDX-License-Identifier: Apache-2.0
// The one table of engines.
#include <memory>

#include "engine/core.h"
#include "engine/settings.h"
#include "engine/sglang/core.h"
#include "engine/vllm/core.h"

namespace dynosim::engine {

std::unique_ptr<SchedulerCore> MakeCore(const EngineSettings& settings,
                                        const CoreOptions& options) {
  switch (settings.backend) {
    case Backend::kVllm:
    case Backend::kTrtllm:
      return std::make_unique<vllm::VllmCore>(settings, options);
    case Backend::kSglang:
      return std::make_unique<sglang::SglangCore>(settings, options);
  }
  return nullptr;
}

}  // namespace dynosim::engine
