// SPDX-License-Identifier: Apache-2.0
#include "scenario/prediction.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "scenario/engine_lowering.h"
#include "scenario/engine_section.h"
#include "scenario/prefill_estimate.h"
#include "scenario/router_section.h"
#include "scenario/scenario.h"
#include "scenario/traffic_section.h"
#include "timing/ais.h"

namespace dynosim::scenario {
namespace {

using config::Decoder;

void SlaFields(Decoder& v, Goodput& sla) {
  v.Doc("Bound on the time to the first token, in ms.")
      .Field("ttft_ms", sla.ttft_ms, config::kAboveZero);
  v.Doc("Bound on the mean gap between tokens, in ms.")
      .Field("itl_ms", sla.itl_ms, config::kAboveZero);
  v.Doc("Bound on the whole request, in ms; instead of the other two.")
      .Field("e2e_ms", sla.e2e_ms, config::kAboveZero);
  if (sla.e2e_ms && (sla.ttft_ms || sla.itl_ms)) {
    v.Fail("e2e_ms", "cannot be combined with ttft_ms or itl_ms");
  }
}

// Sections of other commands or stacks.
void RefuseSections(Decoder& v, Stack stack) {
  for (const std::string_view name : {"optimization", "optimizer"}) {
    if (v.Has(name)) {
      v.Fail(name, "is a section of recommendations, not of predictions");
    }
  }
  for (const std::string_view name : {"router", "planner"}) {
    if (v.Has(name) && stack == Stack::kEngine) {
      v.Fail(name,
             "is a section of --stack dynamo; known for --stack engine are: engine, "
             "evaluation, execution, traffic");
    }
  }
}

// The planner is known by name; it can only be switched off.
void PlannerFields(Decoder& v) {
  constexpr std::array<std::string_view, 1> kPolicies = {"disabled"};
  v.Doc("Scaling of the workers during the run; only disabled in this version.")
      .ObjectIfPresent("planner", [&](Decoder& planner) {
        std::string policy = "disabled";
        planner.Field("policy", policy, kPolicies);
      });
}

void DocumentFields(Decoder& v, Stack stack, PredictionDocument& document) {
  RefuseSections(v, stack);
  v.Doc("Requests, their arrival and the end of the run; absent: 100 synthetic requests.")
      .ObjectIfPresent("traffic",
                       [&](Decoder& traffic) { TrafficFields(traffic, document.traffic); });
  v.Require("engine");
  v.Doc("Model, hardware, backend and workers.").Object("engine", [&](Decoder& engine) {
    EngineSectionFields(engine, document.engine);
  });
  v.Doc("What counts as good.").Object("evaluation", [&](Decoder& evaluation) {
    evaluation.Doc("Latency bounds of goodput.").OptionalObject("sla", [&](Decoder& sla) {
      SlaFields(sla, document.sla);
    });
  });
  if (stack == Stack::kDynamo) {
    v.Doc("Where requests go; absent: round robin.")
        .ObjectIfPresent("router", [&](Decoder& router) { RouterFields(router, document.router); });
    PlannerFields(v);
  }
  v.Doc("How the simulation itself runs; nothing to choose so far.")
      .Object("execution", [](Decoder& execution) {
        execution.Refuse("resources", "is not available in this version");
      });
}

// Rules between sections.
void CheckDocument(Decoder& v, const PredictionDocument& document) {
  const SourceSection& source = document.traffic.source;
  if (source.type == SourceType::kTrace && source.format == "mooncake-delta" &&
      document.engine.disaggregated) {
    v.Fail("traffic.source.format", "mooncake-delta requires engine.mode aggregated");
  }
}

}  // namespace

Result<PredictionDocument> DecodePrediction(const Json& json, Stack stack,
                                            const std::string& where) {
  if (!json.is_object()) {
    return UsageError(where, "must contain one mapping, got " + config::Shown(json));
  }
  PredictionDocument document;
  Decoder v(json, "");
  DocumentFields(v, stack, document);
  CheckDocument(v, document);
  DYNO_TRY_VOID(v.Finish(where));
  return document;
}

Result<Scenario> MakeScenario(const PredictionDocument& document, const std::string& where) {
  Scenario scenario;
  scenario.workload = MakeWorkload(document.traffic, document.engine.model);
  scenario.goodput = document.sla;
  if (const auto seconds = document.traffic.stop.max_virtual_time_seconds) {
    scenario.max_sim_time_ms = *seconds * 1000.0;
  }
  DYNO_TRY(scenario.router, MakeRouter(document.router, where));
  DYNO_TRY_VOID(MakeEngines(document.engine, where, scenario));
  if (scenario.router.kv.predict_prefill) {
    const engine::EngineSettings& prefill =
        scenario.prefill_engine ? *scenario.prefill_engine : scenario.engine;
    auto timing = std::dynamic_pointer_cast<const timing::AisTiming>(prefill.timing);
    if (timing == nullptr) {
      return UsageError(where,
                        "router.prefill_load_model.type: ais takes the time of prefills from the "
                        "measured kernels of the engine, which has another timing");
    }
    scenario.router.prefill_ns = PrefillEstimateOf(std::move(timing));
  }
  return scenario;
}

Result<Scenario> BuildPrediction(const Json& json, Stack stack, const std::string& where) {
  DYNO_TRY(const PredictionDocument document, DecodePrediction(json, stack, where));
  return MakeScenario(document, where);
}

Json PredictionSchema(Stack stack) {
  PredictionDocument document;
  Json fields = config::DescribeFields([&](Decoder& v) { DocumentFields(v, stack, document); });
  Json schema;
  schema.Add("$schema", "https://json-schema.org/draft/2020-12/schema");
  schema.Add("title", "Document of dynosim predict");
  for (Json::Member& member : fields.object()) {
    schema.Add(std::move(member.first), std::move(member.second));
  }
  return schema;
}

Error InTermsOfDocument(Error error) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kPaths = {{
      {"--trace-format", "traffic.source.format"},
      {"--trace-block-size", "traffic.source.block_size"},
      {"--weka-nested-timestamp-basis", "traffic.source.nested_timestamp_basis"},
      {"--execution-model", "engine.model"},
      {"--agentic-lanes", "traffic.load.agentic_lanes"},
      {"--replay-concurrency", "traffic.load.concurrency"},
      {"--arrival-speedup-ratio", "traffic.load.speedup"},
      {"--input-tokens", "traffic.source.input_tokens"},
      {"--request-count", "traffic.stop.requests"},
      {"--turns-per-session", "traffic.source.session.turns"},
  }};
  const auto* found = std::ranges::find(kPaths, error.where, [](const auto& p) { return p.first; });
  if (found != kPaths.end()) {
    error.where = found->second;
  }
  return error;
}

}  // namespace dynosim::scenario
