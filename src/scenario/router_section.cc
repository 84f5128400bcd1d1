// SPDX-License-Identifier: Apache-2.0
#include "scenario/router_section.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "router/config.h"
#include "router/registry.h"

namespace dynosim::scenario {
namespace {

using config::Decoder;

}  // namespace

void RouterFields(Decoder& v, RouterSection& r) {
  std::vector<std::string_view> policies;
  for (const router::Policy& policy : router::Policies()) {
    policies.push_back(policy.name);
  }
  constexpr std::array<std::string_view, 3> kLoadModels = {"none", "ais", "aic"};
  v.Doc("Who gets a request.").Field("policy", r.policy, policies);
  v.Doc("Forecast of the prefill work in flight.").Object("prefill_load_model", [&](Decoder& m) {
    m.Doc("none, or ais: measured kernels; aic is another name.")
        .Field("type", r.prefill_load_model, kLoadModels);
  });
  v.Doc("Weight of cached prompt blocks.")
      .Field("overlap_score_credit", r.overlap_score_credit, config::kNonNegative);
  v.Doc("Weight of prefill work.")
      .Field("prefill_load_scale", r.prefill_load_scale, config::kNonNegative);
  v.Doc("0 takes the cheapest worker; above, cheaper ones are more likely.")
      .Field("temperature", r.temperature, config::kNonNegative);
  v.Doc("Seed of the choice between equal workers.").Field("seed", r.seed);
  if (r.policy == router::kKvRouter) {
    return;
  }
  if (r.prefill_load_model != "none") {
    v.Fail("prefill_load_model.type",
           "must be none with policy " + r.policy + ", got \"" + r.prefill_load_model + "\"");
  }
  for (const std::string_view name :
       {"overlap_score_credit", "prefill_load_scale", "temperature"}) {
    if (v.Has(name)) {
      v.Fail(name, "belongs to policy kv_router and is not accepted with " + r.policy);
    }
  }
}

Result<router::RouterSettings> MakeRouter(const RouterSection& section, const std::string& where) {
  router::RouterSettings settings;
  settings.mode = section.policy;
  settings.seed = section.seed;
  if (section.policy != router::kKvRouter) {
    return settings;
  }
  Json kv;
  kv.Add("overlap_score_credit", section.overlap_score_credit);
  kv.Add("prefill_load_scale", section.prefill_load_scale);
  kv.Add("router_temperature", section.temperature);
  kv.Add("router_prefill_load_model", section.prefill_load_model);
  DYNO_TRY(settings.kv, router::DecodeKvRouterConfig(kv, where + ": router"));
  settings.kv_config = std::move(kv);
  return settings;
}

}  // namespace dynosim::scenario
