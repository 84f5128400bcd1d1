// SPDX-License-Identifier: Apache-2.0
#include "search/search.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "scenario/prediction.h"
#include "search/candidate.h"
#include "search/paths.h"
#include "search/settings.h"
#include "search/space.h"
#include "search/trials.h"

namespace dynosim::search {
namespace {

// A mistake in the document shows in every candidate, and then it is an error of the document. A
// combination that does not exist shows in some.
Result<void> CheckAnyReads(const Search& search) {
  constexpr std::size_t kMaxProbes = 256;
  const CandidateSetup setup{.stack = search.stack,
                             .settings = &search.settings,
                             .where = search.where,
                             .stopped = {},
                             .timed_out = {},
                             .warn = {}};
  // With no plan, random points stand for what will be suggested.
  std::vector<Trial> drawn;
  if (search.plan.trials.empty()) {
    drawn = DrawTrials(search.space, kMaxProbes, search.settings.seed);
  }
  const std::vector<Trial>& trials = drawn.empty() ? search.plan.trials : drawn;
  std::optional<Error> first;
  const std::size_t stride = std::max<std::size_t>(1, trials.size() / kMaxProbes);
  for (std::size_t trial = 0; trial < trials.size(); trial += stride) {
    const auto read = ReadCandidate(search.DocumentOf(trials[trial]), setup);
    if (read || read.error().kind != ErrorKind::kUsage) {
      return {};
    }
    if (!first) {
      first = read.error();
    }
  }
  return first ? Result<void>(std::unexpected(*first)) : Result<void>();
}

std::string ContentHash(std::string_view text) {
  return fmt::format("{:016x}", Xxh3(std::as_bytes(std::span(text)), 0));
}

}  // namespace

Json Search::ChoicesOf(std::size_t trial) const {
  const Trial& t = plan.trials[trial];
  Json choices = Json::Object();
  for (Assignment& assignment : space[t.branch].Values(t.point)) {
    choices.Add(std::move(assignment.path), std::move(assignment.value));
  }
  return choices;
}

std::vector<std::string> Search::Inputs() const {
  std::vector<std::string> files;
  if (const Json* paths = FindPath(document, "traffic.source.paths");
      paths != nullptr && paths->is_array()) {
    for (const Json& path : paths->array()) {
      if (path.is_string()) {
        files.push_back(path.string());
      }
    }
  }
  if (const Json* model = FindPath(document, "engine.model");
      model != nullptr && model->is_string()) {
    const std::filesystem::path config = std::filesystem::path(model->string()) / "config.json";
    std::error_code error;
    if (std::filesystem::is_regular_file(config, error)) {
      files.push_back(config.string());
    }
  }
  return files;
}

Result<Json> Search::Subject(const std::string& sampler) const {
  Json subject;
  subject.Add("document", WithoutExecution(document));
  subject.Add("stack", stack == scenario::Stack::kDynamo ? "dynamo" : "engine");
  Json inputs;
  for (const std::string& file : Inputs()) {
    DYNO_TRY(const TextFile text, TextFile::Read(file));
    inputs.Add(file, ContentHash(text.Text()));
  }
  subject.Add("inputs", std::move(inputs));
  if (!sampler.empty()) {
    subject.Add("sampler", sampler);
  }
  return subject;
}

Result<Search> PrepareSearch(Json document, scenario::Stack stack, const std::string& where) {
  Search search{.document = std::move(document),
                .stack = stack,
                .where = where,
                .settings = {},
                .space = {},
                .plan = {}};
  DYNO_TRY(search.settings, DecodeSearchSettings(search.document, where));
  DYNO_TRY(search.space, BuildSpace(search.document, search.settings, where));
  DYNO_TRY(search.plan, PlanTrials(search.space, search.settings, where));
  DYNO_TRY_VOID(CheckAnyReads(search));
  return search;
}

}  // namespace dynosim::search
