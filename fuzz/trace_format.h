// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets of trace formats have in common: any bytes as a file of the format, read
// and gone through as a replay would. The result is a workload or an error of one line; every
// request of the workload must come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file_descriptor.h"
#include "workload/load.h"
#include "workload/spec.h"
#include "workload/trace_facts.h"

namespace dynosim {

struct FuzzedTrace {
  std::string_view format;
  std::string_view file_ending{};  // for formats that look at it
  std::optional<std::int64_t> concurrency{};
  std::optional<std::int64_t> lanes{};
};

// A file in memory with an optional ending of its name.
class FuzzedFile {
 public:
  FuzzedFile(std::string_view bytes, std::string_view ending)
      : file_(memfd_create("trace", 0)), path_(fmt::format("/proc/self/fd/{}", file_.value())) {
    DYNO_CHECK(pwrite(file_.value(), bytes.data(), bytes.size(), 0) ==
               static_cast<ssize_t>(bytes.size()));
    if (!ending.empty()) {
      link_ = fmt::format("/tmp/dynosim_fuzz_{}{}", getpid(), ending);
      unlink(link_.c_str());
      DYNO_CHECK(symlink(path_.c_str(), link_.c_str()) == 0);
    }
  }
  ~FuzzedFile() {
    if (!link_.empty()) {
      unlink(link_.c_str());
    }
  }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;
  const std::string& Path() const { return link_.empty() ? path_ : link_; }

 private:
  FileDescriptor file_;
  std::string path_;
  std::string link_;
};

inline void FuzzTrace(const std::uint8_t* data, std::size_t size, const FuzzedTrace& trace) {
  // Packed bytes could ask for a gigabyte.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd")) {
    return;
  }
  const FuzzedFile file(bytes, trace.file_ending);
  workload::WorkloadSpec spec;
  spec.replay_concurrency = trace.concurrency;
  workload::TraceSpec& of_trace = spec.trace.emplace();
  of_trace.files = {file.Path()};
  of_trace.format = trace.format;
  of_trace.execution_model = "any";
  of_trace.agentic_lanes = trace.lanes;
  const auto loaded = workload::LoadWorkload(spec, 16);
  if (!loaded) {
    DYNO_CHECK(!loaded.error().message.empty());
    return;
  }
  const workload::TraceFacts facts = workload::FindTraceFacts(*loaded->source, 16);
  DYNO_CHECK(facts.requests == loaded->source->RequestCount());
  DYNO_CHECK(loaded->source->Exhausted());
  DYNO_CHECK(facts.reusable_tokens <= facts.input.total);
}

}  // namespace dynosim
