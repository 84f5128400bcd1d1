// SPDX-License-Identifier: Apache-2.0
#include "cli/document.h"

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "config/decode.h"
#include "config/overrides.h"
#include "config/yaml_to_json.h"
#include "scenario/prediction.h"

namespace dynosim::cli {
namespace {

constexpr std::size_t kMaxDocument = std::size_t{16} << 20U;
constexpr const char* kStackHelp =
    "engine (default): workers alone; dynamo: with the router around them";

}  // namespace

void AddStackOption(CLI::App& command, std::string& stack) {
  command.add_option("--stack", stack, kStackHelp)->type_name("NAME:{engine,dynamo}")->take_last();
}

void AddDocumentOptions(CLI::App& command, std::string& config, std::vector<std::string>& overrides,
                        std::string& stack) {
  command.add_option("-c,--config", config, "The document; see dynosim schema")
      ->type_name("FILE")
      ->required();
  AddStackOption(command, stack);
  command
      .add_option("--set", overrides,
                  "Replaces a value: traffic.stop.requests=10; may be repeated, the last wins")
      ->type_name("PATH=YAML")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

Result<scenario::Stack> ReadStack(const std::string& name) {
  if (name != "engine" && name != "dynamo") {
    return UsageError("--stack", "must be engine or dynamo, got '" + name + "'");
  }
  return name == "engine" ? scenario::Stack::kEngine : scenario::Stack::kDynamo;
}

Result<Json> ReadDocument(const std::string& path, const std::vector<std::string>& overrides) {
  auto file = MappedFile::Open(path);
  if (!file) {
    file.error().kind = ErrorKind::kUsage;
    return std::unexpected(std::move(file).error());
  }
  if (file->Text().size() > kMaxDocument) {
    return UsageError(path, "is larger than 16 MiB");
  }
  return ReadDocumentText(file->Text(), path, overrides);
}

Result<Json> ReadDocumentText(std::string_view text, const std::string& where,
                              const std::vector<std::string>& overrides) {
  DYNO_TRY(Json document, config::ParseYaml(text, where));
  if (!document.is_object()) {
    return UsageError(where, "must contain one mapping, got " + config::Shown(document));
  }
  for (const std::string& assignment : overrides) {
    DYNO_TRY_VOID(config::ApplyOverride(document, assignment, where));
  }
  return document;
}

}  // namespace dynosim::cli
