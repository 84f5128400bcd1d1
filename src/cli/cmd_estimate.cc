// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd_estimate.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "cli/estimate_query.h"
#include "cli/program.h"
#include "perfdb/catalog.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::cli {
namespace {

// One answer a line, in the order of the questions; an error is an answer too.
Result<void> AnswerFile(Estimator& estimator, const std::string& path) {
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  std::string out;
  std::string_view rest = file.Text();
  for (std::uint64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    const std::string where = fmt::format("{}:{}", path, line);
    DYNO_TRY(const Json json, ParseJson(text, where));
    const Result<EstimateQuery> query = DecodeEstimateQuery(json, "");
    Result<Json> answer = query ? estimator.Answer(*query) : std::unexpected(query.error());
    if (!answer) {
      Json error;
      error.Add("error", answer.error().Text());
      answer = std::move(error);
    }
    out += DumpJson(*answer) + "\n";
  }
  return Print(out);
}

timing::PassQuery QueryOf(const timing::PassModel& model, const EstimateQuery& query) {
  if (query.phase == EstimatePhase::kDecode) {
    return model.DecodeQuery(query.batch, query.context);
  }
  return {.context = true,
          .batch = query.batch,
          .tokens = query.isl - query.prefix,
          .prefix = query.prefix};
}

std::string BreakdownTable(const std::vector<timing::PassModel::Part>& parts, double total) {
  std::string text = fmt::format("{:<40}{:>14}{:>9}\n", "operation", "ms", "share");
  for (const timing::PassModel::Part& part : parts) {
    text += fmt::format("{:<40}{:>14.6f}{:>8.2f}%\n", part.name, part.ms, part.share * 100.0);
  }
  return text + fmt::format("{:<40}{:>14.6f}\n", "pass", total);
}

Json BreakdownJson(const std::vector<timing::PassModel::Part>& parts) {
  Json::Array list;
  for (const timing::PassModel::Part& part : parts) {
    Json json;
    json.Add("name", part.name);
    json.Add("ms", part.ms);
    json.Add("share", part.share);
    list.emplace_back(std::move(json));
  }
  return list;
}

std::string CapacityTable(const Json& answer) {
  std::string text;
  for (const Json::Member& member : answer.object()) {
    if (member.second.is_object()) {
      for (const Json::Member& part : member.second.object()) {
        text += fmt::format("  {:<30}{:>20.0f}\n", part.first, part.second.number());
      }
    } else if (member.second.is_number()) {
      text += fmt::format("{:<32}{:>20.0f}\n", member.first, member.second.number());
    } else {
      text += fmt::format("{:<32}{:>20}\n", member.first, member.second.string());
    }
  }
  return text;
}

Result<void> Estimate(const EstimateOptions& options) {
  Estimator estimator(OpenCatalog(options.perfdata));
  if (!options.queries.empty()) {
    return AnswerFile(estimator, options.queries);
  }
  EstimateQuery query = options.query;
  for (const auto& [flag, value] :
       {std::pair<const char*, const std::string&>("--model", query.deployment.model),
        {"--system", query.deployment.system},
        {"--backend", query.deployment.backend}}) {
    if (value.empty()) {
      return UsageError(flag, "is required without --queries");
    }
  }
  query.phase = options.phase == "decode"       ? EstimatePhase::kDecode
                : options.phase == "capacity"   ? EstimatePhase::kCapacity
                : options.phase == "operations" ? EstimatePhase::kOperations
                                                : EstimatePhase::kPrefill;
  query.capacity.memory_fraction = options.memory_fraction;
  DYNO_TRY(Json answer, estimator.Answer(query));
  if (query.phase == EstimatePhase::kOperations) {
    return Print(DumpJson(answer, {.indent = 2}) + "\n");
  }
  if (query.phase == EstimatePhase::kCapacity) {
    return Print(options.json ? DumpJson(answer, {.indent = 2}) + "\n" : CapacityTable(answer));
  }
  const double total = answer.Find("ms")->number();
  if (!options.breakdown) {
    return Print(options.json ? DumpJson(answer) + "\n" : fmt::format("{:.6f} ms\n", total));
  }
  DYNO_TRY(const timing::PassModel* const model, estimator.ModelOf(query.deployment));
  const auto parts = model->Breakdown(QueryOf(*model, query));
  if (!parts) {
    return PassError(parts.error());
  }
  if (!options.json) {
    return Print(BreakdownTable(*parts, total));
  }
  answer.Add("operations", BreakdownJson(*parts));
  return Print(DumpJson(answer, {.indent = 2}) + "\n");
}

void AddDeploymentOptions(CLI::App& command, timing::Deployment& d) {
  command.add_option("--model", d.model, "Name of a packaged model, or a folder with config.json")
      ->type_name("MODEL");
  command.add_option("--system", d.system, "GPU system, as `dynosim systems` lists them")
      ->type_name("SYSTEM");
  command.add_option("--backend", d.backend, "Serving engine: vllm, sglang or trtllm")
      ->type_name("BACKEND");
  command
      .add_option("--backend-version", d.backend_version,
                  "Version, or current, previous, next (default: current)")
      ->type_name("VERSION");
  command.add_option("--tp", d.tp, "Tensor-parallel ranks")->capture_default_str();
  command.add_option("--pp", d.pp, "Pipeline stages")->capture_default_str();
  command.add_option("--attention-dp", d.attention_dp, "Attention replicas")->capture_default_str();
  command.add_option("--moe-tp", d.moe_tp, "Tensor-parallel ranks of the experts")
      ->capture_default_str();
  command.add_option("--moe-ep", d.moe_ep, "Expert-parallel ranks")->capture_default_str();
  command.add_option("--nextn", d.nextn, "Draft tokens per step, 0 to 5")->capture_default_str();
  command.add_option("--gemm-quant-mode", d.modes.gemm, "Data type of GEMMs")->type_name("MODE");
  command.add_option("--moe-quant-mode", d.modes.moe, "Data type of experts")->type_name("MODE");
  command.add_option("--fmha-quant-mode", d.modes.fmha, "Data type of context attention")
      ->type_name("MODE");
  command.add_option("--kvcache-quant-mode", d.modes.kv, "Data type of the KV cache")
      ->type_name("MODE");
}

}  // namespace

void AddEstimateCommand(CLI::App& app, EstimateOptions& options) {
  CLI::App* const command = app.add_subcommand(
      "estimate", "Time of one pass, or the KV capacity, of a model on a system");
  EstimateQuery& query = options.query;
  command->add_option("--phase", options.phase, "prefill (default), decode, capacity or operations")
      ->check(CLI::IsMember({"prefill", "decode", "capacity", "operations"}));
  AddDeploymentOptions(*command, query.deployment);
  command->add_option("--batch", query.batch, "Sequences in the pass")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--isl", query.isl, "prefill: tokens per sequence, cached ones included");
  command->add_option("--prefix", query.prefix, "prefill: cached tokens per sequence");
  command->add_option("--ctx", query.context,
                      "decode: tokens per sequence, the current one included");
  command->add_option("--block-size", query.capacity.block_size, "capacity: tokens per KV block")
      ->capture_default_str();
  command
      ->add_option("--max-num-tokens", query.capacity.max_batched_tokens,
                   "capacity: tokens of one pass")
      ->capture_default_str();
  command
      ->add_option("--max-batch-size", query.capacity.max_requests, "capacity: running sequences")
      ->capture_default_str();
  command->add_option("--memory-fraction", options.memory_fraction,
                      "capacity: share of the memory (default: that of the engine)");
  command->add_option("--cuda-graph-reserved-bytes", query.capacity.cuda_graph_bytes,
                      "capacity: bytes set aside for captured graphs");
  command->add_option("--queries", options.queries, "File with one question a line, as JSON")
      ->type_name("FILE");
  command->add_flag("--breakdown", options.breakdown, "Shows the time of every operation");
  command->add_flag("--json", options.json, "Prints JSON");
  command->add_option("--perfdata", options.perfdata, "Folder with performance data")
      ->type_name("DIR");
}

int RunEstimate(const EstimateOptions& options) {
  const Result<void> done = Estimate(options);
  return done ? kExitOk : ReportError(done.error());
}

}  // namespace dynosim::cli
