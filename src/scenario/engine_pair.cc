// SPDX-License-Identifier: Apache-2.0
#include "scenario/engine_pair.h"

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"

namespace dynosim::scenario {

Result<void> CheckEngineRole(std::string_view flag, const engine::EngineSettings& settings,
                             engine::WorkerRole role) {
  const std::string name(engine::WorkerRoleName(role));
  if (settings.worker_role != role) {
    return UsageError(std::string(flag),
                      "worker_type must be " + name + " for " + name + " workers, got " +
                          std::string(engine::WorkerRoleName(settings.worker_role)));
  }
  return {};
}

Result<void> CheckEnginePair(const engine::EngineSettings& prefill,
                             const engine::EngineSettings& decode) {
  if (prefill.backend != decode.backend) {
    return UsageError(std::string(kDecodeEngineFlag),
                      "prefill and decode need matching backend engine types, got " +
                          std::string(engine::BackendName(prefill.backend)) + " and " +
                          std::string(engine::BackendName(decode.backend)));
  }
  if (prefill.backend == engine::Backend::kTrtllm) {
    return UsageError(std::string(kPrefillEngineFlag),
                      "backend trtllm does not support prefill/decode disaggregation; use vllm or "
                      "sglang");
  }
  if (prefill.block_size != decode.block_size) {
    return UsageError(std::string(kDecodeEngineFlag),
                      "prefill and decode need a matching block_size, got " +
                          std::to_string(prefill.block_size) + " and " +
                          std::to_string(decode.block_size));
  }
  return {};
}

}  // namespace dynosim::scenario
