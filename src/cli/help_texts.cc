// SPDX-License-Identifier: Apache-2.0
// Examples run in the folder of the repository; the reference page shows them, and a test runs what
// that page shows.
#include "cli/help_texts.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace dynosim::cli {
namespace {

using Flag = std::string_view;

constexpr std::string_view kListens = "test: background";

constexpr std::array<Example, 3> kProgram = {{
    {.text = "dynosim predict -c examples/aggregated.yaml --output-dir build/prediction"},
    {.text = "dynosim replay examples/conversation_trace.jsonl.zst --num-workers 4"},
    {.text = "dynosim serve --prefill-ms 20 --decode-ms 5"},
}};

constexpr std::array<Example, 3> kPredict = {{
    {.text = "dynosim predict -c examples/aggregated.yaml --output-dir build/prediction"},
    {.text = "dynosim predict -c examples/aggregated.yaml --output-dir build/wider \\\n"
             "    --set engine.workers.aggregated.parallelism.tensor=4"},
    {.text = "dynosim predict -c examples/trace_kv_router.yaml --stack dynamo --output-dir "
             "build/routed"},
}};

constexpr std::array<Example, 2> kRecommend = {{
    {.text = "dynosim recommend -c examples/recommend.yaml --output-dir build/search --top 3"},
    {.text = "dynosim recommend -c examples/recommend.yaml --output-dir build/front \\\n"
             "    --set optimization.target=pareto --report-html build/front.html"},
}};

constexpr std::array<Example, 3> kReplay = {{
    {.text = "dynosim replay --input-tokens 1024 --output-tokens 128 --request-count 1000 "
             "--request-rate 8"},
    {.text = "dynosim replay examples/conversation_trace.jsonl.zst --num-workers 4 \\\n"
             "    --router-mode kv_router --capture-routing --report-json build/report.json"},
    {.text = "dynosim replay --input-tokens 512 --output-tokens 64 --request-count 100 \\\n"
             "    --replay-concurrency 8 --extra-engine-args '{\"engine\": {\"backend\": "
             "\"sglang\"}}'"},
}};
constexpr std::array<Flag, 20> kReplayFlags = {
    "--trace-format",        "--input-tokens",        "--output-tokens",
    "--request-count",       "--request-rate",        "--turns-per-session",
    "--shared-prefix-ratio", "--num-prefix-groups",   "--replay-concurrency",
    "--extra-engine-args",   "--num-workers",         "--prefill-engine-args",
    "--decode-engine-args",  "--num-prefill-workers", "--num-decode-workers",
    "--router-mode",         "--report-json",         "--report-html",
    "--trace-out",           "--capture-routing",
};

constexpr std::array<Example, 3> kEstimate = {{
    {.text = "dynosim estimate --model Qwen/Qwen3-32B --system h200_sxm --backend vllm --isl 1024 "
             "--breakdown"},
    {.text = "dynosim estimate --model Qwen/Qwen3-32B --system h200_sxm --backend vllm --tp 2 \\\n"
             "    --phase decode --batch 32 --ctx 4096"},
    {.text =
         "dynosim estimate --model Qwen/Qwen3-32B --system h200_sxm --backend sglang --tp 2 \\\n"
         "    --phase capacity --block-size 1"},
}};
constexpr std::array<Flag, 19> kEstimateFlags = {
    "--phase", "--model",  "--system",       "--backend",    "--backend-version", "--tp",
    "--pp",    "--nextn",  "--attention-dp", "--moe-tp",     "--moe-ep",          "--batch",
    "--isl",   "--prefix", "--ctx",          "--block-size", "--memory-fraction", "--breakdown",
    "--json",
};

constexpr std::array<Example, 2> kServe = {{
    {.text = "dynosim serve --num-workers 2 --prefill-ms 20 --decode-ms 5", .mark = kListens},
    {.text =
         "dynosim serve --http-port 8001 --model-name demo --engine-type sglang --speedup-ratio 10",
     .mark = kListens},
}};
constexpr std::array<Flag, 21> kServeFlags = {
    "--http-host",
    "--http-port",
    "--extra-engine-args",
    "--engine-type",
    "--num-gpu-blocks-override",
    "--block-size",
    "--max-num-seqs",
    "--max-num-batched-tokens",
    "--data-parallel-size",
    "--speedup-ratio",
    "--prefill-ms",
    "--decode-ms",
    "--num-workers",
    "--startup-time",
    "--zmq-kv-events-ports",
    "--model-name",
    "--router-mode",
    "--default-max-tokens",
    "--echo",
    "--failure-injection-rate",
    "--max-requests-per-worker",
};

constexpr std::array<Example, 1> kMocker = {{
    {.text = "dynosim mocker --discovery-dir build/workers --http-port 0 --num-workers 2",
     .mark = kListens},
}};
constexpr std::array<Flag, 21> kMockerFlags = {
    "--http-host",           "--http-port",           "--advertise-host",
    "--extra-engine-args",   "--engine-type",         "--num-gpu-blocks-override",
    "--block-size",          "--max-num-seqs",        "--max-num-batched-tokens",
    "--data-parallel-size",  "--speedup-ratio",       "--prefill-ms",
    "--decode-ms",           "--num-workers",         "--startup-time",
    "--zmq-kv-events-ports", "--model-name",          "--discovery-backend",
    "--discovery-dir",       "--disaggregation-mode", "--zmq-replay-ports",
};

constexpr std::array<Example, 1> kFrontend = {{
    {.text = "dynosim frontend --discovery-dir build/workers --http-port 8002", .mark = kListens},
}};
constexpr std::array<Flag, 14> kFrontendFlags = {
    "--http-host",
    "--http-port",
    "--worker",
    "--model-name",
    "--router-mode",
    "--default-max-tokens",
    "--echo",
    "--migration-limit",
    "--drain-timeout-ms",
    "--failure-injection-rate",
    "--max-requests-per-worker",
    "--overload-status",
    "--discovery-backend",
    "--discovery-dir",
};

constexpr std::array<Example, 2> kTraceCheck = {{
    {.text = "dynosim trace check examples/conversation_trace.jsonl.zst"},
    {.text = "dynosim trace check examples/conversation_trace.jsonl.zst --json"},
}};
constexpr std::array<Example, 1> kTraceStats = {{
    {.text = "dynosim trace stats examples/conversation_trace.jsonl.zst"},
}};
constexpr std::array<Example, 1> kTraceConvert = {{
    {.text = "dynosim trace convert examples/conversation_trace.jsonl.zst --fix --output "
             "build/rows.jsonl"},
}};

constexpr std::array<Example, 1> kExplain = {{
    {.text = "dynosim explain build/report.json --request 7"},
}};
constexpr std::array<Example, 2> kCompare = {{
    {.text = "dynosim compare build/prediction/prediction.json build/wider/prediction.json",
     .mark = "test: exit 1"},
    {.text = "dynosim compare build/report.json examples/aiperf_measurement.json --tolerance 10%",
     .mark = "test: exit 1"},
}};
constexpr std::array<Example, 1> kModels = {{
    {.text = "dynosim models"},
}};
constexpr std::array<Example, 1> kSystems = {{
    {.text = "dynosim systems"},
}};
constexpr std::array<Example, 2> kSchema = {{
    {.text = "dynosim schema > build/predict.schema.json"},
    {.text = "dynosim schema --stack dynamo > build/predict.schema.json"},
}};
constexpr std::array<Example, 3> kCompletion = {{
    {.text = "source <(dynosim completion bash)"},
    {.text = "dynosim completion zsh > ~/.zsh/completions/_dynosim"},
    {.text = "dynosim completion fish > ~/.config/fish/completions/dynosim.fish"},
}};

constexpr std::array kTexts = {
    HelpText{.command = "", .examples = kProgram, .common = {}},
    HelpText{.command = "predict", .examples = kPredict, .common = {}},
    HelpText{.command = "recommend", .examples = kRecommend, .common = {}},
    HelpText{.command = "replay", .examples = kReplay, .common = kReplayFlags},
    HelpText{.command = "estimate", .examples = kEstimate, .common = kEstimateFlags},
    HelpText{.command = "serve", .examples = kServe, .common = kServeFlags},
    HelpText{.command = "mocker", .examples = kMocker, .common = kMockerFlags},
    HelpText{.command = "frontend", .examples = kFrontend, .common = kFrontendFlags},
    HelpText{.command = "trace check", .examples = kTraceCheck, .common = {}},
    HelpText{.command = "trace stats", .examples = kTraceStats, .common = {}},
    HelpText{.command = "trace convert", .examples = kTraceConvert, .common = {}},
    HelpText{.command = "explain", .examples = kExplain, .common = {}},
    HelpText{.command = "compare", .examples = kCompare, .common = {}},
    HelpText{.command = "models", .examples = kModels, .common = {}},
    HelpText{.command = "systems", .examples = kSystems, .common = {}},
    HelpText{.command = "schema", .examples = kSchema, .common = {}},
    HelpText{.command = "completion", .examples = kCompletion, .common = {}},
};

}  // namespace

HelpText HelpTextOf(std::string_view command) {
  const auto found = std::ranges::find(kTexts, command, &HelpText::command);
  return found == kTexts.end() ? HelpText{.command = command, .examples = {}, .common = {}}
                               : *found;
}

std::span<const HelpText> HelpTexts() { return kTexts; }

}  // namespace dynosim::cli
