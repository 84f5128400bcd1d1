// SPDX-License-Identifier: Apache-2.0
// Cost of the measured-kernel timing model, with the performance data that comes with the program:
// opening a deployment, and one pass of it, new, in a growing decode batch, and asked before.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "timing/ais.h"
#include "timing/model.h"

namespace dynosim::timing {
namespace {

AisConfig DeploymentOf(std::int64_t choice) {
  AisConfig config;
  config.deployment.system = "h200_sxm";
  config.deployment.backend = "vllm";
  if (choice == 0) {
    config.deployment.model = "Qwen/Qwen3-32B";
    config.deployment.tp = 2;
  } else {
    config.deployment.model = "deepseek-ai/DeepSeek-V3";
    config.deployment.tp = 8;
    config.deployment.moe_ep = 8;
  }
  return config;
}

std::shared_ptr<const AisTiming> Open(benchmark::State& state) {
  auto timing = AisTiming::Make(DeploymentOf(state.range(0)));
  if (!timing) {
    state.SkipWithError(timing.error().Text().c_str());
    std::exit(1);
  }
  return *std::move(timing);
}

void OpenDeployment(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Open(state));
  }
}
BENCHMARK(OpenDeployment)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);

void NewPrefill(benchmark::State& state) {
  const auto timing = Open(state);
  PrefillBatch batch{.requests = 1, .mean_new = 100, .mean_prefix = 0};
  for (auto _ : state) {
    batch.mean_new = 100 + (batch.mean_new + 37) % 8000;
    batch.mean_prefix = (batch.mean_prefix + 131) % 5000;
    benchmark::DoNotOptimize(timing->PrefillMs(batch));
  }
}
BENCHMARK(NewPrefill)->DenseRange(0, 1);

// A batch whose contexts grow by a token from pass to pass.
void DecodeFrom(benchmark::State& state, std::uint64_t shortest) {
  const auto timing = Open(state);
  std::uint64_t grown = 0;
  for (auto _ : state) {
    grown = (grown + 1) % 30000;
    benchmark::DoNotOptimize(timing->DecodeMs(
        {.requests = 48, .context_tokens = 48 * (shortest + grown), .capacity_tokens = 1U << 20U}));
  }
}

void GrowingDecode(benchmark::State& state) { DecodeFrom(state, 1000); }
BENCHMARK(GrowingDecode)->DenseRange(0, 1);

// Contexts longer than any that was measured with so many requests.
void FarDecode(benchmark::State& state) { DecodeFrom(state, 20000); }
BENCHMARK(FarDecode)->DenseRange(0, 1);

void AskedBefore(benchmark::State& state) {
  const auto timing = Open(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(timing->DecodeMs({.requests = 48,
                                               .context_tokens = std::uint64_t{48} * 2000,
                                               .capacity_tokens = 1U << 20U}));
  }
}
BENCHMARK(AskedBefore)->DenseRange(0, 1);

}  // namespace
}  // namespace dynosim::timing
