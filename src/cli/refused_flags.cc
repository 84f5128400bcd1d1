// SPDX-License-Identifier: Apache-2.0
#include "cli/refused_flags.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dynosim::cli {
namespace {

struct RefusedFlag {
  std::string_view name;
  const char* instead;
};

constexpr const char* kPoolsInstead =
    "prefill and decode workers are pools of one process here: give --prefill-engine-args and "
    "--decode-engine-args; dynosim mocker runs either alone";
constexpr const char* kTransferInstead =
    "is a property of the handoff: give it in --prefill-engine-args and --decode-engine-args";
constexpr const char* kHostTier = "a cache tier in host memory is not simulated";
constexpr const char* kPlane =
    "requests travel over HTTP/1.1 between the processes, and events over ZeroMQ";

constexpr std::array kOfWorkers = {
    RefusedFlag{"--endpoint",
                "processes are found by --discovery-dir, --etcd-endpoint or --worker"},
    RefusedFlag{"--bootstrap-ports",
                "a prefill worker needs no port of its own: the frontend brings its two halves "
                "together"},
    RefusedFlag{"--kv-cache-dtype",
                "the size of a token's KV is given with --kv-bytes-per-token, or with "
                "kv_transfer_bytes_per_token in --prefill-engine-args"},
    RefusedFlag{"--num-host-blocks", kHostTier},
    RefusedFlag{"--host-offload-d2h-bandwidth-gbps", kHostTier},
    RefusedFlag{"--host-offload-h2d-bandwidth-gbps", kHostTier},
    RefusedFlag{"--stagger-delay", "workers of a process start together, after --startup-time"},
    RefusedFlag{"--request-plane", kPlane},
    RefusedFlag{"--response-plane", kPlane},
    RefusedFlag{"--event-plane", kPlane},
};
constexpr std::array kOfServe = {
    RefusedFlag{"--disaggregation-mode", kPoolsInstead},
    RefusedFlag{"--is-prefill-worker", kPoolsInstead},
    RefusedFlag{"--is-decode-worker", kPoolsInstead},
    RefusedFlag{"--handoff-session-timeout-ms", kPoolsInstead},
    RefusedFlag{"--kv-transfer-bandwidth", kTransferInstead},
    RefusedFlag{"--kv-transfer-timing-mode", kTransferInstead},
    RefusedFlag{"--kv-bytes-per-token", kTransferInstead},
};
constexpr const char* kFrontends = "is a flag of dynosim frontend, which makes the answers";
constexpr std::array kOfFrontends = {
    RefusedFlag{"--reasoning", kFrontends},
    RefusedFlag{"--response-replay-trace-path", kFrontends},
    RefusedFlag{"--sglang-generate", kFrontends},
    RefusedFlag{"--tokenizer", kFrontends},
};

}  // namespace

std::optional<Error> RefusalOf(std::string_view command, std::string_view flag) {
  const bool mocker = command == "mocker";
  const auto* found = std::ranges::find(kOfWorkers, flag, &RefusedFlag::name);
  if ((mocker || command == "serve") && found != kOfWorkers.end()) {
    return Error{.where = std::string(flag), .message = found->instead};
  }
  const auto* of_serve = std::ranges::find(kOfServe, flag, &RefusedFlag::name);
  if (command == "serve" && of_serve != kOfServe.end()) {
    return Error{.where = std::string(flag), .message = of_serve->instead};
  }
  const auto* of_frontends = std::ranges::find(kOfFrontends, flag, &RefusedFlag::name);
  if (mocker && of_frontends != kOfFrontends.end()) {
    return Error{.where = std::string(flag), .message = of_frontends->instead};
  }
  return std::nullopt;
}

}  // namespace dynosim::cli
