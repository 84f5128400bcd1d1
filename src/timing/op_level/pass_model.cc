// SPDX-License-Identifier: Apache-2.0
// A pass is the sum over operation names, in the order of their first appearance, of the sums of
// the operations of that name. In the generation phase only the attention depends on the length of
// the context; the rest is kept per batch size.
#include "timing/op_level/pass_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/result.h"
#include "perfdb/catalog.h"
#include "perfdb/pack.h"
#include "timing/op_level/database.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {
namespace {

// One phase: timers, and the slot of the name of each.
struct Phase {
  struct Step {
    OpTimer timer;
    std::size_t slot = 0;
    bool moves = false;  // its name's total changes with the context length
  };
  std::vector<Step> steps;
  std::vector<std::string> names;

  Phase(const std::vector<Operation>& operations, PerfDatabase& db) {
    std::vector<bool> moves;
    for (const Operation& operation : operations) {
      const auto found = std::find(names.begin(), names.end(), operation.name);
      const auto slot = static_cast<std::size_t>(found - names.begin());
      if (found == names.end()) {
        names.push_back(operation.name);
        moves.push_back(false);
      }
      moves[slot] = moves[slot] || DependsOnContext(operation);
      steps.push_back({.timer = CompileOperation(operation, db), .slot = slot});
    }
    for (Step& step : steps) {
      step.moves = moves[step.slot];
    }
  }

  // Adds the steps that `wanted` picks to the totals of their names.
  template <class Wanted>
  std::expected<void, Failure> AddTo(std::vector<double>& totals, const PassQuery& query,
                                     const Wanted& wanted) const {
    for (const Step& step : steps) {
      if (wanted(step)) {
        Timed time = step.timer(query);
        if (!time) {
          return std::unexpected(std::move(time).error());
        }
        totals[step.slot] += *time;
      }
    }
    return {};
  }
};

double SumOf(const std::vector<double>& totals) {
  double sum = 0.0;
  for (const double total : totals) {
    sum += total;
  }
  return sum;
}

Result<void> CheckDeployment(const Deployment& d) {
  constexpr std::uint64_t kMaxWidth = 1U << 20;
  constexpr std::uint64_t kMaxNextn = 5;
  const std::pair<std::string_view, std::uint64_t> widths[] = {{"tp", d.tp},
                                                               {"pp", d.pp},
                                                               {"attention_dp", d.attention_dp},
                                                               {"moe_tp", d.moe_tp},
                                                               {"moe_ep", d.moe_ep}};
  for (const auto& [name, value] : widths) {
    if (value == 0 || value > kMaxWidth) {
      return UsageError(std::string(name), fmt::format("must be at least 1, got {}", value));
    }
  }
  if (d.nextn > kMaxNextn) {
    return UsageError("nextn", fmt::format("must be at most {}, got {}", kMaxNextn, d.nextn));
  }
  for (const std::string_view backend : {"vllm", "sglang", "trtllm"}) {
    if (d.backend == backend) {
      return {};
    }
  }
  return UsageError("backend",
                    fmt::format("must be one of vllm, sglang, trtllm, got \"{}\"", d.backend));
}

}  // namespace

struct PassModel::State {
  Deployment deployment;
  ModelSpec spec;
  QuantModes modes;
  std::unique_ptr<PerfDatabase> owned;
  PerfDatabase* database = nullptr;
  ModelGraph graph;
  std::vector<Operation> weight_operations;  // empty: the context list
  std::string shared_expert_mode;
  std::unique_ptr<Phase> context, generation;
  // Totals of the names of a decode pass without the attention, by batch size.
  FlatMap<std::uint64_t, std::vector<double>> decode_totals;
  std::vector<double> scratch;
};

PassModel::PassModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
PassModel::~PassModel() = default;

Result<std::unique_ptr<PassModel>> PassModel::Make(const Deployment& deployment,
                                                   const perfdb::Catalog& catalog) {
  DYNO_TRY_VOID(CheckDeployment(deployment));
  DYNO_TRY(const perfdb::ModelFile file, catalog.OpenModel(deployment.model));
  DYNO_TRY(ModelSpec spec, ReadModelSpec(file));
  DYNO_TRY(perfdb::Pack pack,
           catalog.OpenPack(deployment.system, deployment.backend, deployment.backend_version));
  DYNO_TRY(PerfDatabase opened, PerfDatabase::FromPack(std::move(pack)));
  auto database = std::make_unique<PerfDatabase>(std::move(opened));
  DYNO_TRY(std::unique_ptr<PassModel> model, Make(deployment, std::move(spec), *database));
  model->state_->owned = std::move(database);
  return model;
}

Result<std::unique_ptr<PassModel>> PassModel::Make(const Deployment& deployment, ModelSpec spec,
                                                   PerfDatabase& database) {
  DYNO_TRY_VOID(CheckDeployment(deployment));
  auto state = std::make_unique<State>();
  state->deployment = deployment;
  state->spec = std::move(spec);
  state->database = &database;
  const Platform platform{.backend = database.backend(),
                          .version = database.version(),
                          .sm_version = database.system().sm_version,
                          .attention_backend = {}};
  DYNO_TRY(state->modes, FindQuantModes(state->spec, deployment.modes, platform));
  GraphInput input{
      .model = state->spec,
      .layout = {.tp = deployment.tp,
                 .pp = deployment.pp,
                 .moe = {.moe_tp_size = deployment.moe_tp,
                         .moe_ep_size = deployment.moe_ep,
                         .attention_dp_size = deployment.attention_dp}},
      .nextn = deployment.nextn,
      .modes = state->modes,
      .platform = platform,
      .context_lanes = database.LaneOrder("context_attention", state->spec.architecture),
      .generation_lanes = database.LaneOrder("generation_attention", state->spec.architecture)};
  DYNO_TRY(state->graph, BuildGraph(input));
  state->shared_expert_mode = SharedExpertMode(input);
  if (input.nextn > 0) {
    input.nextn = 0;
    DYNO_TRY(ModelGraph plain, BuildGraph(input));
    state->weight_operations = std::move(plain.context);
  }
  state->context = std::make_unique<Phase>(state->graph.context, database);
  state->generation = std::make_unique<Phase>(state->graph.generation, database);
  if (database.damage()) {
    return std::unexpected(*database.damage());
  }
  return std::make_unique<PassModel>(std::move(state));
}

Timed PassModel::PrefillMs(std::uint64_t batch, std::uint64_t tokens, std::uint64_t prefix) const {
  const Phase& phase = *state_->context;
  std::vector<double>& totals = state_->scratch;
  totals.assign(phase.names.size(), 0.0);
  const PassQuery query{.context = true, .batch = batch, .tokens = tokens, .prefix = prefix};
  auto done = phase.AddTo(totals, query, [](const Phase::Step&) { return true; });
  if (!done) {
    return std::unexpected(std::move(done).error());
  }
  return SumOf(totals);
}

PassQuery PassModel::DecodeQuery(std::uint64_t batch, std::uint64_t context) const {
  return {.context = false,
          .batch = batch * (state_->deployment.nextn + 1),
          .tokens = context,
          .prefix = 0};
}

Timed PassModel::DecodeMs(std::uint64_t batch, std::uint64_t context) const {
  const Phase& phase = *state_->generation;
  const PassQuery query = DecodeQuery(batch, context);
  const auto [fixed, fresh] = state_->decode_totals.TryInsert(batch);
  if (fresh) {
    fixed->assign(phase.names.size(), 0.0);
    auto done = phase.AddTo(*fixed, query, [](const Phase::Step& step) { return !step.moves; });
    if (!done) {
      state_->decode_totals.Erase(batch);
      return std::unexpected(std::move(done).error());
    }
  }
  std::vector<double>& totals = state_->scratch;
  totals = *fixed;
  auto done = phase.AddTo(totals, query, [](const Phase::Step& step) { return step.moves; });
  if (!done) {
    return std::unexpected(std::move(done).error());
  }
  return SumOf(totals);
}

std::expected<std::vector<PassModel::Part>, Failure> PassModel::Breakdown(
    const PassQuery& query) const {
  const Phase& phase = query.context ? *state_->context : *state_->generation;
  std::vector<double> totals(phase.names.size(), 0.0);
  auto done = phase.AddTo(totals, query, [](const Phase::Step&) { return true; });
  if (!done) {
    return std::unexpected(std::move(done).error());
  }
  const double sum = SumOf(totals);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    parts.push_back(
        {.name = phase.names[i], .ms = totals[i], .share = sum > 0.0 ? totals[i] / sum : 0.0});
  }
  return parts;
}

const Deployment& PassModel::deployment() const { return state_->deployment; }
const ModelSpec& PassModel::model() const { return state_->spec; }
const QuantModes& PassModel::modes() const { return state_->modes; }
const ModelGraph& PassModel::graph() const { return state_->graph; }
const std::vector<Operation>& PassModel::weight_operations() const {
  return state_->weight_operations.empty() ? state_->graph.context : state_->weight_operations;
}
const std::string& PassModel::shared_expert_mode() const { return state_->shared_expert_mode; }
const PerfDatabase& PassModel::database() const { return *state_->database; }

}  // namespace dynosim::timing
