// SPDX-License-Identifier: Apache-2.0
// Cost of reading a trace: the conversation trace that comes with the program, unpacked, from the
// file to the finished source of requests.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <benchmark/benchmark.h>

#include "base/text_file.h"
#include "workload/spec.h"
#include "workload/traces/registry.h"

namespace dynosim::workload {
namespace {

// A plain copy of the packed example, which is removed at the end.
class PlainTrace {
 public:
  PlainTrace() : path_(std::filesystem::temp_directory_path() / "dynosim_bench_traces.jsonl") {
    const auto packed = TextFile::Read("examples/conversation_trace.jsonl.zst");
    if (!packed) {
      std::fprintf(stderr, "%s\n", packed.error().Text().c_str());
      std::exit(1);
    }
    std::ofstream(path_, std::ios::binary) << packed->Text();
  }
  PlainTrace(const PlainTrace&) = delete;
  PlainTrace& operator=(const PlainTrace&) = delete;
  ~PlainTrace() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void ReadConversationTrace(benchmark::State& state) {
  const PlainTrace trace;
  WorkloadSpec workload;
  TraceSpec spec;
  spec.files = {trace.path()};
  for (auto _ : state) {
    const auto loaded = ReadTrace(workload, spec);
    benchmark::DoNotOptimize(loaded.has_value());
  }
}
BENCHMARK(ReadConversationTrace)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dynosim::workload
