// SPDX-License-Identifier: Apache-2.0
// Any bytes as a mooncake trace that is read while it is replayed: the same error or the same
// requests with the same reuse as of one that was read before, whatever is forgotten on the way.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "trace_format.h"
#include "workload/load.h"
#include "workload/request.h"
#include "workload/source.h"
#include "workload/spec.h"
#include "workload/trace_facts.h"

namespace dynosim {
namespace {

Result<workload::LoadedWorkload> Load(const FuzzedFile& file, bool streams) {
  workload::WorkloadSpec spec;
  workload::TraceSpec& trace = spec.trace.emplace();
  trace.files = {file.Path()};
  trace.format = "mooncake";
  trace.block_size = 16;
  if (streams) {
    trace.stream_from_bytes = 0;
    trace.streamed_prefixes = 2;
  }
  return workload::LoadWorkload(spec, 16);
}

// Releases everything, some requests staying in flight for a while, and forgets what it may.
std::uint64_t ReleaseAll(workload::RequestSource& source) {
  constexpr std::size_t kFlying = 3;
  std::vector<std::uint32_t> flying;
  std::vector<workload::BlockExtent> extents;
  workload::Request request;
  std::uint64_t tokens = 0;
  while (source.Release(std::numeric_limits<double>::infinity(), request)) {
    tokens += request.prompt_tokens;
    source.Blocks(request.id, 16, extents);
    DYNO_CHECK(!extents.empty());
    flying.push_back(request.id);
    if (flying.size() > kFlying) {
      const std::size_t ends = request.id % flying.size();
      source.OnTerminal(flying[ends], 0.0, workload::TerminalStatus::kCompleted, 1);
      flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(ends));
    }
    if (source.WantsHeldGroups()) {
      source.OnHeldGroups({});
    }
  }
  DYNO_CHECK(source.Exhausted() && source.Problem() == nullptr);
  return tokens;
}

void Fuzz(std::string_view bytes) {
  // Packed bytes could ask for a gigabyte.
  if (bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd")) {
    return;
  }
  const FuzzedFile file(bytes, "");
  const auto whole = Load(file, false);
  const auto streamed = Load(file, true);
  DYNO_CHECK(whole.has_value() == streamed.has_value());
  if (!whole) {
    DYNO_CHECK(whole.error().Text() == streamed.error().Text());
    return;
  }
  DYNO_CHECK(whole->warnings == streamed->warnings);
  if (!streamed->source->InOrder()) {
    return;  // it was read whole as well
  }
  const workload::TraceFacts want = workload::FindTraceFacts(*whole->source, 16);
  const workload::TraceFacts got = workload::FindTraceFacts(*streamed->source, 16);
  DYNO_CHECK(got.requests == want.requests && got.input.total == want.input.total &&
             got.output.total == want.output.total && got.reusable_tokens == want.reusable_tokens);
  const auto again = Load(file, true);
  DYNO_CHECK(again && ReleaseAll(*again->source) == want.input.total);
}

}  // namespace
}  // namespace dynosim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dynosim::Fuzz(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
