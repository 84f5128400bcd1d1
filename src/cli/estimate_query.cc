// SPDX-License-Identifier: Apache-2.0
#include "cli/estimate_query.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "perfdb/catalog.h"
#include "perfdb/pack.h"
#include "timing/op_level/database.h"
#include "timing/op_level/memory.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::cli {
namespace {

using config::Choice;
using timing::Deployment;

constexpr std::array kPhases = {Choice<EstimatePhase>("prefill", EstimatePhase::kPrefill),
                                Choice<EstimatePhase>("decode", EstimatePhase::kDecode),
                                Choice<EstimatePhase>("capacity", EstimatePhase::kCapacity),
                                Choice<EstimatePhase>("operations", EstimatePhase::kOperations)};

void ParallelFields(config::Decoder& v, Deployment& d) {
  v.Field("tp_size", d.tp, config::kPositive);
  v.Field("pp_size", d.pp, config::kPositive);
  v.Field("attention_dp_size", d.attention_dp, config::kPositive);
  v.Field("moe_tp_size", d.moe_tp, config::kPositive);
  v.Field("moe_ep_size", d.moe_ep, config::kPositive);
  v.Field("nextn", d.nextn);
  v.Field("gemm_quant_mode", d.modes.gemm);
  v.Field("moe_quant_mode", d.modes.moe);
  v.Field("fmha_quant_mode", d.modes.fmha);
  v.Field("kvcache_quant_mode", d.modes.kv);
  v.Field("comm_quant_mode", d.modes.comm);
}

std::string KeyOf(const Deployment& d) {
  const auto mode = [](const std::optional<std::string>& value) { return value.value_or("-"); };
  return fmt::format("{}\n{}\n{}\n{}\n{} {} {} {} {} {}\n{} {} {} {}", d.model, d.system, d.backend,
                     d.backend_version, d.tp, d.pp, d.attention_dp, d.moe_tp, d.moe_ep, d.nextn,
                     mode(d.modes.gemm), mode(d.modes.moe), mode(d.modes.fmha), mode(d.modes.kv));
}

Json CapacityJson(const timing::PassModel& model, const timing::Capacity& capacity) {
  Json use;
  use.Add("weights_bytes", capacity.use.weights);
  use.Add("activations_bytes", capacity.use.activations);
  use.Add("comm_overhead_bytes", capacity.use.communication);
  use.Add("runtime_overhead_bytes", capacity.use.runtime);
  use.Add("cuda_graph_reserved_bytes", capacity.use.cuda_graphs);
  Json json;
  json.Add("num_gpu_blocks", capacity.blocks);
  json.Add("total_kv_size_tokens", capacity.tokens);
  json.Add("total_kv_size_bytes", capacity.budget_bytes);
  json.Add("kv_size_per_token_bytes", capacity.bytes_of_one_token);
  json.Add("kvcache_quant_mode", model.modes().kv);
  json.Add("total_gpu_capacity_bytes", model.database().system().mem_capacity);
  json.Add("memory_breakdown", std::move(use));
  return json;
}

// The lists, and the data types they were made for.
Json OperationsJson(const timing::PassModel& model) {
  Json json;
  json.Add("gemm_quant_mode", model.modes().gemm);
  json.Add("moe_quant_mode", model.modes().moe);
  json.Add("fmha_quant_mode", model.modes().fmha);
  json.Add("kvcache_quant_mode", model.modes().kv);
  json.Add("context_ops", timing::ToJson(model.graph().context));
  json.Add("generation_ops", timing::ToJson(model.graph().generation));
  return json;
}

}  // namespace

std::unexpected<Error> PassError(const timing::Failure& failure) {
  const bool data = failure.kind == timing::Failure::Kind::kMissingData;
  return FailedError("", (data ? "missing performance data: " : "") + failure.text);
}

Result<EstimateQuery> DecodeEstimateQuery(const Json& json, std::string_view where) {
  config::Decoder v(json, "");
  EstimateQuery query;
  Deployment& d = query.deployment;
  v.Require("phase");
  v.Field("phase", query.phase, kPhases);
  for (const std::string_view name : {"model", "system", "backend"}) {
    v.Require(name);
  }
  v.Field("model", d.model);
  v.Field("system", d.system);
  v.Field("backend", d.backend);
  std::optional<std::string> version;
  v.Field("backend_version", version);
  d.backend_version = version.value_or("");
  v.Object("parallel", [&d](config::Decoder& parallel) { ParallelFields(parallel, d); });
  v.Field("batch", query.batch, config::kPositive);
  v.Field("isl", query.isl);
  v.Field("prefix", query.prefix);
  v.Field("ctx", query.context);
  v.Field("block_size", query.capacity.block_size, config::kPositive);
  v.Field("max_num_tokens", query.capacity.max_batched_tokens, config::kPositive);
  v.Field("max_batch_size", query.capacity.max_requests, config::kPositive);
  v.Field("memory_fraction", query.capacity.memory_fraction, config::kShare);
  v.Field("cuda_graph_reserved_bytes", query.capacity.cuda_graph_bytes);
  DYNO_TRY_VOID(v.Finish(where));
  return query;
}

Result<void> CheckEstimateQuery(const EstimateQuery& query) {
  if (query.phase == EstimatePhase::kPrefill && query.isl <= query.prefix) {
    return UsageError("isl", fmt::format("must be greater than the prefix of {}, got {}",
                                         query.prefix, query.isl));
  }
  if (query.phase == EstimatePhase::kDecode && query.context == 0) {
    return UsageError("ctx", "must be > 0");
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  for (const std::uint64_t size : {query.batch, query.isl, query.context}) {
    if (size > kMost) {
      return UsageError("", fmt::format("sizes must be at most {}, got {}", kMost, size));
    }
  }
  return {};
}

Result<timing::PerfDatabase*> Estimator::DatabaseOf(const Deployment& d) {
  const std::string key = d.system + "\n" + d.backend + "\n" + d.backend_version;
  std::unique_ptr<timing::PerfDatabase>& held = databases_[key];
  if (held == nullptr) {
    DYNO_TRY(perfdb::Pack pack, catalog_.OpenPack(d.system, d.backend, d.backend_version));
    DYNO_TRY(timing::PerfDatabase opened, timing::PerfDatabase::FromPack(std::move(pack)));
    held = std::make_unique<timing::PerfDatabase>(std::move(opened));
  }
  return held.get();
}

Result<const timing::PassModel*> Estimator::ModelOf(const Deployment& deployment) {
  const std::string key = KeyOf(deployment);
  if (last_ == nullptr || key != last_key_) {
    last_.reset();
    DYNO_TRY(const perfdb::ModelFile file, catalog_.OpenModel(deployment.model));
    DYNO_TRY(timing::ModelSpec spec, timing::ReadModelSpec(file));
    DYNO_TRY(timing::PerfDatabase * database, DatabaseOf(deployment));
    DYNO_TRY(last_, timing::PassModel::Make(deployment, std::move(spec), *database));
    last_key_ = key;
  }
  return last_.get();
}

Result<Json> Estimator::Answer(const EstimateQuery& query) {
  DYNO_TRY_VOID(CheckEstimateQuery(query));
  DYNO_TRY(const timing::PassModel* const model, ModelOf(query.deployment));
  if (query.phase == EstimatePhase::kCapacity) {
    DYNO_TRY(const timing::Capacity capacity, timing::FindCapacity(*model, query.capacity));
    return CapacityJson(*model, capacity);
  }
  if (query.phase == EstimatePhase::kOperations) {
    return OperationsJson(*model);
  }
  const timing::Timed time =
      query.phase == EstimatePhase::kPrefill
          ? model->PrefillMs(query.batch, query.isl - query.prefix, query.prefix)
          : model->DecodeMs(query.batch, query.context);
  if (!time) {
    return PassError(time.error());
  }
  Json json;
  json.Add("ms", *time);
  return json;
}

}  // namespace dynosim::cli
