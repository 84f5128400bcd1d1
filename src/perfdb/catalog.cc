// SPDX-License-Identifier: Apache-2.0
#include "perfdb/catalog.h"

#include <algorithm>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "config/decode.h"
#include "perfdb/pack.h"

namespace dynosim::perfdb {
namespace {

namespace fs = std::filesystem;

// An address inside this program or library.
const char kLibraryMark = 0;

constexpr std::string_view kPackSuffix = ".pack";
constexpr std::string_view kJson = ".json";
constexpr std::string_view kPackedJson = ".json.zst";
constexpr std::string_view kSeparator = "--";

std::vector<fs::path> FilesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<PackName> ParsePackName(const fs::path& path) {
  std::string name = path.filename().string();
  if (!name.ends_with(kPackSuffix)) {
    return std::nullopt;
  }
  name.resize(name.size() - kPackSuffix.size());
  const std::size_t first = name.find(kSeparator);
  const std::size_t second =
      first == std::string::npos ? first : name.find(kSeparator, first + kSeparator.size());
  if (second == std::string::npos) {
    return std::nullopt;
  }
  return PackName{
      .system = name.substr(0, first),
      .backend = name.substr(first + kSeparator.size(), second - first - kSeparator.size()),
      .version = name.substr(second + kSeparator.size()),
      .path = path.string()};
}

// "org--name.json" is "org/name".
std::optional<std::string> ParseModelName(const fs::path& path) {
  std::string name = path.filename().string();
  const std::string_view suffix = name.ends_with(kPackedJson) ? kPackedJson : kJson;
  if (!name.ends_with(suffix)) {
    return std::nullopt;
  }
  name.resize(name.size() - suffix.size());
  if (const std::size_t at = name.find(kSeparator); at != std::string::npos) {
    name.replace(at, kSeparator.size(), "/");
  }
  return name;
}

// Configuration files of models may hold bare NaN and Infinity; they are read as null.
std::string PlainJson(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) {
      out.append(text.substr(i, 2));
      i += 2;
      continue;
    }
    quoted = quoted != (c == '"');
    std::size_t token = 0;
    for (const std::string_view bare : {"NaN", "Infinity", "-Infinity"}) {
      if (!quoted && text.substr(i).starts_with(bare)) {
        token = bare.size();
      }
    }
    out += token > 0 ? "null" : std::string(1, c);
    i += std::max<std::size_t>(token, 1);
  }
  return out;
}

Result<Json> ReadJson(const std::string& path) {
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  if (file.Text().find("NaN") != std::string_view::npos ||
      file.Text().find("Infinity") != std::string_view::npos) {
    return ParseJson(PlainJson(file.Text()), path);
  }
  return ParseJson(file.Text(), path);
}

// The candidates near a name, for "did you mean".
std::string Nearest(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view nearest = config::NearestName(name, views);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

template <class Values>
std::string Listed(const Values& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

void SortUnique(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

Slots ReadSlots(const Pack& pack) {
  Slots slots;
  const Json* const object = pack.header().Find("slots");
  for (const std::string_view slot : {"current", "previous", "next"}) {
    const Json* const version = object == nullptr ? nullptr : object->Find(slot);
    if (version != nullptr && version->is_string()) {
      slots.emplace_back(slot, version->string());
    }
  }
  return slots;
}

std::string InstallHint(std::string_view system, std::string_view backend) {
  return fmt::format("python3 -m dynosim.perfdata install --system {} --backend {}", system,
                     backend);
}

fs::path FolderOfProgram() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path();
}

// The folder of the shared library that this code is part of; empty in a program.
fs::path FolderOfLibrary() {
  Dl_info info = {};
  if (dladdr(&kLibraryMark, &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  const std::string_view name = info.dli_fname;
  return name.find(".so") == std::string_view::npos ? fs::path() : fs::path(name).parent_path();
}

}  // namespace

std::vector<std::string> DefaultDataFolders() {
  std::vector<std::string> folders;
  // The environment is read, never written, by this program.
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::string() : std::string(value);
  };
  if (const std::string own = variable("DYNOSIM_PERFDATA"); !own.empty()) {
    folders.push_back(own);
  } else if (const std::string share = variable("XDG_DATA_HOME"); !share.empty()) {
    folders.push_back(share + "/dynosim/perfdata");
  } else if (const std::string home = variable("HOME"); !home.empty()) {
    folders.push_back(home + "/.local/share/dynosim/perfdata");
  }
  // What comes with the program: beside an installed one or a library, or in the source tree above
  // a build.
  for (fs::path folder : {FolderOfLibrary(), FolderOfProgram()}) {
    for (int level = 0; level < 4 && folder.has_relative_path(); ++level) {
      for (const char* const place : {"share/dynosim/perfdata", "data/perfdata"}) {
        std::error_code error;
        if (fs::is_directory(folder / place, error)) {
          folders.push_back((folder / place).string());
          return folders;
        }
      }
      folder = folder.parent_path();
    }
  }
  return folders;
}

Catalog::Catalog(std::vector<std::string> folders) : folders_(std::move(folders)) {
  for (const std::string& folder : folders_) {
    for (const fs::path& path : FilesOf(fs::path(folder) / "packs")) {
      const auto name = ParsePackName(path);
      const bool known = name && std::any_of(packs_.begin(), packs_.end(), [&](const PackName& p) {
                           return p.system == name->system && p.backend == name->backend &&
                                  p.version == name->version;
                         });
      if (name && !known) {
        packs_.push_back(*name);
      }
    }
    for (const fs::path& path : FilesOf(fs::path(folder) / "models")) {
      if (auto name = ParseModelName(path)) {
        models_.push_back(*std::move(name));
      }
    }
  }
  std::sort(packs_.begin(), packs_.end(), [](const PackName& a, const PackName& b) {
    return std::tie(a.system, a.backend, a.version) < std::tie(b.system, b.backend, b.version);
  });
  SortUnique(models_);
}

std::vector<std::string> Catalog::Systems() const {
  std::vector<std::string> names;
  for (const PackName& pack : packs_) {
    names.push_back(pack.system);
  }
  SortUnique(names);
  return names;
}

std::vector<std::string> Catalog::Backends(std::string_view system) const {
  std::vector<std::string> names;
  for (const PackName& pack : packs_) {
    if (pack.system == system) {
      names.push_back(pack.backend);
    }
  }
  SortUnique(names);
  return names;
}

std::unexpected<Error> Catalog::NoPack(std::string_view system, std::string_view backend) const {
  const std::vector<std::string> systems = Systems();
  if (systems.empty()) {
    return UsageError(
        "", fmt::format("no performance data is installed; {}", InstallHint(system, backend)));
  }
  if (!std::binary_search(systems.begin(), systems.end(), system)) {
    return UsageError("", fmt::format("no performance data for the system '{}'; available: {}{}; "
                                      "others may be installed: {}",
                                      system, Listed(systems), Nearest(system, systems),
                                      InstallHint(system, backend)));
  }
  return UsageError(
      "", fmt::format("no performance data for {} on {}; available: {}; others may "
                      "be installed: {}",
                      backend, system, Listed(Backends(system)), InstallHint(system, backend)));
}

Slots Catalog::SlotsOf(std::string_view system, std::string_view backend) const {
  for (const PackName& name : packs_) {
    if (name.system == system && name.backend == backend) {
      const auto pack = Pack::Open(name.path);
      return pack ? ReadSlots(*pack) : Slots{};
    }
  }
  return {};
}

Result<Pack> Catalog::OpenPack(std::string_view system, std::string_view backend,
                               std::string_view version) const {
  std::vector<const PackName*> candidates;
  for (const PackName& pack : packs_) {
    if (pack.system == system && pack.backend == backend) {
      candidates.push_back(&pack);
    }
  }
  if (candidates.empty()) {
    return NoPack(system, backend);
  }
  DYNO_TRY(Pack first, Pack::Open(candidates.front()->path));
  const Slots slots = ReadSlots(first);
  const std::string_view wanted = version.empty() ? "current" : version;
  std::string literal;
  std::vector<std::string> available;
  for (const auto& [slot, slot_version] : slots) {
    available.push_back(fmt::format("{} ({})", slot_version, slot));
    if (literal.empty() && (wanted == slot || wanted == slot_version)) {
      literal = slot_version;
    }
  }
  if (literal.empty()) {
    return UsageError("", fmt::format("no performance data for {} {} on {}; available: {}", backend,
                                      wanted, system, Listed(available)));
  }
  for (const PackName* const candidate : candidates) {
    if (candidate->version == literal) {
      return candidate == candidates.front() ? Result<Pack>(std::move(first))
                                             : Pack::Open(candidate->path);
    }
  }
  return UsageError("", fmt::format("the data for {} {} on {} is not installed; {}", backend,
                                    literal, system, InstallHint(system, backend)));
}

Result<ModelFile> Catalog::OpenModel(const std::string& model) const {
  std::error_code error;
  const fs::path folder(model);
  if (fs::is_directory(folder, error)) {
    ModelFile file{.name = model, .config = {}, .quantization = {}, .packaged = false};
    DYNO_TRY(file.config, ReadJson((folder / "config.json").string()));
    if (const fs::path quantization = folder / "hf_quant_config.json";
        fs::exists(quantization, error)) {
      DYNO_TRY(file.quantization, ReadJson(quantization.string()));
    }
    return file;
  }
  std::string stem = model;
  if (const std::size_t at = stem.find('/'); at != std::string::npos) {
    stem.replace(at, 1, kSeparator);
  }
  for (const std::string& data : folders_) {
    for (const std::string_view suffix : {kJson, kPackedJson}) {
      const fs::path path = fs::path(data) / "models" / (stem + std::string(suffix));
      if (stem.find('/') != std::string::npos || !fs::is_regular_file(path, error)) {
        continue;
      }
      DYNO_TRY(const Json json, ReadJson(path.string()));
      const Json* const config = json.Find("config");
      const Json* const quantization = json.Find("hf_quant_config");
      if (config == nullptr) {
        return FailedError(path.string(), "has no member 'config'");
      }
      return ModelFile{.name = model,
                       .config = *config,
                       .quantization = quantization == nullptr ? Json() : *quantization,
                       .packaged = true};
    }
  }
  return UsageError("", fmt::format("the model '{}' is not known{}; see `dynosim models`, or give "
                                    "a folder that holds the config.json of the model",
                                    model, Nearest(model, models_)));
}

}  // namespace dynosim::perfdb
