// SPDX-License-Identifier: Apache-2.0
#include "cli/version.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/cmd_estimate.h"
#include "perfdb/catalog.h"

#ifndef DYNO_VERSION
#define DYNO_VERSION "0.1.0"
#endif

namespace dynosim::cli {
namespace {

#ifdef __clang__
constexpr std::string_view kCompiler = "clang " __clang_version__;
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif
#ifdef __OPTIMIZE__
constexpr std::string_view kOptimized = "optimized";
#else
constexpr std::string_view kOptimized = "not optimized";
#endif
#ifdef NDEBUG
constexpr std::string_view kChecks = "without debug checks";
#else
constexpr std::string_view kChecks = "with debug checks";
#endif
#ifdef __SANITIZE_ADDRESS__
constexpr std::string_view kSanitized = ", address sanitizer";
#else
constexpr std::string_view kSanitized;
#endif

// "h200_sxm: sglang 0.5.14, vllm 0.24.0", one line a system.
std::string DataLines(const perfdb::Catalog& catalog) {
  if (catalog.packs().empty()) {
    return "\ndata: none; python3 -m dynosim.perfdata install";
  }
  std::map<std::string, std::vector<std::string>> systems;
  for (const perfdb::PackName& pack : catalog.packs()) {
    systems[pack.system].push_back(pack.backend + " " + pack.version);
  }
  std::string text;
  for (const auto& [system, packs] : systems) {
    text += fmt::format("\ndata: {}: {}", system, fmt::join(packs, ", "));
  }
  return text;
}

}  // namespace

std::string VersionText() {
  const perfdb::Catalog catalog = OpenCatalog({});
  return fmt::format("dynosim " DYNO_VERSION "\nbuild: {}, {}, {}{}{}\nmodels: {}", kCompiler,
                     kOptimized, kChecks, kSanitized, DataLines(catalog), catalog.models().size());
}

}  // namespace dynosim::cli
