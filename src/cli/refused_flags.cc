// SPDX-License-Identifier: Apache-2.0
#include "cli/refused_flags.h"

#include <array>
#include <string>

#include <CLI/CLI.hpp>

namespace dynosim::cli {
namespace {

struct RefusedFlag {
  const char* names;
  const char* instead;
};

constexpr const char* kPoolsInstead =
    "prefill and decode workers are pools of one process: give --prefill-engine-args and "
    "--decode-engine-args";
constexpr const char* kTransferInstead =
    "is a property of the handoff: give it in --prefill-engine-args and --decode-engine-args";
constexpr const char* kHostTier = "a cache tier in host memory is not simulated";
constexpr const char* kPlane =
    "requests travel over HTTP/1.1 between the processes, and events over ZeroMQ";

constexpr std::array kOfWorkers = {
    RefusedFlag{"--endpoint",
                "processes are found by --discovery-dir, --etcd-endpoint or --worker"},
    RefusedFlag{"--disaggregation-mode", kPoolsInstead},
    RefusedFlag{"--is-prefill-worker", kPoolsInstead},
    RefusedFlag{"--is-decode-worker", kPoolsInstead},
    RefusedFlag{"--bootstrap-ports", kPoolsInstead},
    RefusedFlag{"--kv-transfer-bandwidth", kTransferInstead},
    RefusedFlag{"--kv-transfer-timing-mode", kTransferInstead},
    RefusedFlag{"--kv-bytes-per-token", kTransferInstead},
    RefusedFlag{"--kv-cache-dtype",
                "the size of a token's KV is kv_transfer_bytes_per_token in --prefill-engine-args"},
    RefusedFlag{"--num-host-blocks", kHostTier},
    RefusedFlag{"--host-offload-d2h-bandwidth-gbps", kHostTier},
    RefusedFlag{"--host-offload-h2d-bandwidth-gbps", kHostTier},
    RefusedFlag{"--stagger-delay", "workers of a process start together, after --startup-time"},
    RefusedFlag{"--request-plane", kPlane},
    RefusedFlag{"--response-plane", kPlane},
    RefusedFlag{"--event-plane", kPlane},
};
constexpr const char* kFrontends = "is a flag of dynosim frontend, which makes the answers";
constexpr std::array kOfFrontends = {
    RefusedFlag{"--reasoning", kFrontends},
    RefusedFlag{"--response-replay-trace-path", kFrontends},
    RefusedFlag{"--sglang-generate", kFrontends},
};

// Not in the help. An error names only options of a group, so the option gets one then; and only a
// value is checked, so a flag without one has a value as well.
void Refuse(CLI::App& command, const RefusedFlag& flag) {
  CLI::Option* const option = command.add_option(flag.names);
  option->expected(0, 1)->default_str("given")->group("")->check(CLI::Validator(
      [option, flag](const std::string&) {
        option->group("Refused");
        return std::string(flag.instead);
      },
      ""));
}

}  // namespace

void RefuseWorkerFlags(CLI::App& command, LiveCommand which) {
  for (const RefusedFlag& flag : kOfWorkers) {
    Refuse(command, flag);
  }
  if (which == LiveCommand::kMocker) {
    for (const RefusedFlag& flag : kOfFrontends) {
      Refuse(command, flag);
    }
  }
}

}  // namespace dynosim::cli
