// SPDX-License-Identifier: Apache-2.0
// `dynosim models` and `dynosim systems`.
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "cli/cmd_estimate.h"
#include "cli/program.h"
#include "perfdb/catalog.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::cli {
namespace {

Json ModelJson(const std::string& name, const Result<timing::ModelSpec>& spec) {
  Json json;
  json.Add("model", name);
  if (!spec) {
    json.Add("supported", false);
    json.Add("reason", spec.error().Text());
    return json;
  }
  json.Add("supported", true);
  json.Add("architecture", spec->architecture);
  json.Add("family", timing::FamilyName(spec->family));
  json.Add("layers", spec->layers);
  json.Add("hidden_size", spec->hidden);
  json.Add("attention_heads", spec->heads);
  json.Add("kv_heads", spec->kv_heads);
  json.Add("experts", spec->experts);
  json.Add("context_length", spec->context);
  return json;
}

std::string ModelLine(const std::string& name, const Result<timing::ModelSpec>& spec) {
  if (!spec) {
    return fmt::format("{:<52} not supported: {}\n", name, spec.error().Text());
  }
  return fmt::format("{:<52} {:<12} {:>6} {:>7} {:>6} {:>9}\n", name,
                     timing::FamilyName(spec->family), spec->layers, spec->hidden, spec->experts,
                     spec->context);
}

}  // namespace

perfdb::Catalog OpenCatalog(std::vector<std::string> folders) {
  for (std::string& folder : perfdb::DefaultDataFolders()) {
    folders.push_back(std::move(folder));
  }
  return perfdb::Catalog(std::move(folders));
}

void AddListCommands(CLI::App& app, ListOptions& options) {
  CLI::App* const models = app.add_subcommand("models", "Models whose configuration is packaged");
  CLI::App* const systems =
      app.add_subcommand("systems", "Systems, backends and versions with performance data");
  for (CLI::App* const command : {models, systems}) {
    command->add_flag("--json", options.json, "Prints JSON");
    command->add_option("--perfdata", options.perfdata, "Folder with performance data")
        ->type_name("DIR");
  }
}

int RunModels(const ListOptions& options) {
  const perfdb::Catalog catalog = OpenCatalog(options.perfdata);
  Json::Array list;
  std::string text = fmt::format("{:<52} {:<12} {:>6} {:>7} {:>6} {:>9}\n", "model", "family",
                                 "layers", "hidden", "experts", "context");
  for (const std::string& name : catalog.models()) {
    const Result<perfdb::ModelFile> file = catalog.OpenModel(name);
    const Result<timing::ModelSpec> spec =
        file ? timing::ReadModelSpec(*file)
             : Result<timing::ModelSpec>(std::unexpected(file.error()));
    list.push_back(ModelJson(name, spec));
    text += ModelLine(name, spec);
  }
  return Show(options.json ? DumpJson(list, {.indent = 2}) + "\n" : text);
}

int RunSystems(const ListOptions& options) {
  const perfdb::Catalog catalog = OpenCatalog(options.perfdata);
  Json::Array list;
  std::string text = fmt::format("{:<22} {:<8} {:<14} {:<10} {}\n", "system", "backend", "version",
                                 "slot", "file");
  std::map<std::pair<std::string, std::string>, perfdb::Slots> slots;
  for (const perfdb::PackName& pack : catalog.packs()) {
    const auto [known, fresh] = slots.try_emplace({pack.system, pack.backend});
    if (fresh) {
      known->second = catalog.SlotsOf(pack.system, pack.backend);
    }
    std::string slot;
    for (const auto& [name, version] : known->second) {
      if (version == pack.version && slot.empty()) {
        slot = name;
      }
    }
    Json json;
    json.Add("system", pack.system);
    json.Add("backend", pack.backend);
    json.Add("version", pack.version);
    json.Add("slot", slot.empty() ? Json() : Json(slot));
    json.Add("path", pack.path);
    list.emplace_back(std::move(json));
    text += fmt::format("{:<22} {:<8} {:<14} {:<10} {}\n", pack.system, pack.backend, pack.version,
                        slot, pack.path);
  }
  if (catalog.packs().empty() && !options.json) {
    text = "No performance data is installed: python3 -m dynosim.perfdata install\n";
  }
  return Show(options.json ? DumpJson(list, {.indent = 2}) + "\n" : text);
}

}  // namespace dynosim::cli
