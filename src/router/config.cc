// SPDX-License-Identifier: Apache-2.0
// Every field of the KV router once, with its rule. Fields of the live router are accepted where a
// replay gives the same result with any value, and refused where it does not know them.
#include "router/config.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "router/policy_profile.h"

namespace dynosim::router {
namespace {

using config::Choice;
using config::Decoder;

enum class LoadModel : std::uint8_t { kNone, kPredicted };
enum class CachePolicy : std::uint8_t { kTtl, kLru };
enum class SharedCache : std::uint8_t { kNone, kHicache };
enum class TrackingHash : std::uint8_t { kPublic, kKeyed };
enum class BypassPolicy : std::uint8_t { kLength, kLoad, kEither };

void CostFields(Decoder& v, KvRouterConfig& c) {
  v.Doc("Weight of the blocks that a target has cached.")
      .Field("overlap_score_credit", c.overlap_score_credit, config::kNonNegative);
  v.Doc("How fast that credit falls with the prompt tokens that wait at the target.")
      .Field("overlap_score_credit_decay", c.overlap_score_credit_decay, config::kNonNegative);
  v.Doc("Weight of the prompt tokens to compute and to wait for.")
      .Field("prefill_load_scale", c.prefill_load_scale, config::kNonNegative);
  std::optional<double> weight;
  v.Doc("Older name: sets prefill_load_scale, and 0 the credit to 0 too.")
      .Field("overlap_score_weight", weight, config::kNonNegative);
  if (weight) {  // an older name, which wins
    c.prefill_load_scale = *weight;
    c.overlap_score_credit = *weight == 0.0 ? 0.0 : c.overlap_score_credit;
  }
  v.Doc("Cost of a placed request, in blocks.")
      .Field("decode_active_request_weight", c.decode_active_request_weight, config::kNonNegative);
  v.Doc("Above 0: targets are drawn by a softmax of their costs.")
      .Field("router_temperature", c.temperature, config::kNonNegative);
  double host_weight = 0.75;
  double disk_weight = 0.25;
  v.Field("host_cache_hit_weight", host_weight, config::kShare);
  v.Field("disk_cache_hit_weight", disk_weight, config::kShare);
}

void TrackingFields(Decoder& v, KvRouterConfig& c) {
  v.Doc("Blocks in use count in the cost.")
      .Field("router_track_active_blocks", c.track_active_blocks);
  bool output_blocks = false;
  v.Field("router_track_output_blocks", output_blocks);
  if (output_blocks && !c.track_active_blocks) {
    v.Fail("router_track_output_blocks", "requires router_track_active_blocks=true");
  }
  v.Doc("Equal prefix blocks of several requests on a target count once.")
      .Field("router_assume_kv_reuse", c.assume_kv_reuse);
  v.Doc("Prompt tokens to compute count in the cost.")
      .Field("router_track_prefill_tokens", c.track_prefill_tokens);
  constexpr std::array kModels = {Choice<LoadModel>{"none", LoadModel::kNone},
                                  Choice<LoadModel>{"ais", LoadModel::kPredicted},
                                  Choice<LoadModel>{"aic", LoadModel::kPredicted}};
  LoadModel model = LoadModel::kNone;
  v.Doc(
       "ais: prompt tokens to compute count down in the time that measured kernels predict; aic is "
       "another name.")
      .Field("router_prefill_load_model", model, kModels);
  c.predict_prefill = model == LoadModel::kPredicted;
}

void QueueFields(Decoder& v, KvRouterConfig& c) {
  v.Doc(
       "Requests wait while every target has more prompt tokens than this share of its token "
       "budget; null: no queue.")
      .Field("router_queue_threshold", c.queue_threshold, config::kNonNegative);
  constexpr std::array kPolicies = {Choice<QueuePolicy>{"fcfs", QueuePolicy::kFcfs},
                                    Choice<QueuePolicy>{"lcfs", QueuePolicy::kLcfs},
                                    Choice<QueuePolicy>{"wspt", QueuePolicy::kWspt}};
  v.Doc("Order of that queue: arrival, latest first, least uncached prompt first.")
      .Field("router_queue_policy", c.queue_policy, kPolicies);
  std::optional<std::string> file;
  v.Doc("YAML file with the classes of the queue.").Field("router_policy_config", file);
  c.policy_config = file.value_or("");
  for (const std::string_view name : {"router_prefill_policy", "router_decode_policy"}) {
    std::optional<std::string> policy;
    v.Field(name, policy);
    if (policy && *policy != "default") {
      v.Fail(name, "custom worker-selection policy \"" + *policy + "\" is not supported by replay");
    }
  }
}

// How a live router learns what is cached; a replay always uses the events.
void IndexFields(Decoder& v, KvRouterConfig& config) {
  v.Doc("serve: caches are known from events, else from placements.")
      .Field("use_kv_events", config.use_kv_events);
  v.Doc("serve without events: seconds that a placement is taken to stay cached.")
      .Field("router_ttl_secs", config.ttl_secs, config::kNonNegative);
  constexpr std::array kCachePolicies = {Choice<CachePolicy>{"ttl", CachePolicy::kTtl},
                                         Choice<CachePolicy>{"lru", CachePolicy::kLru}};
  CachePolicy cache = CachePolicy::kTtl;
  v.Doc(
       "serve without events: placements expire by age, or as in a cache of the size of the "
       "target.")
      .Field("router_approximate_cache_policy", cache, kCachePolicies);
  config.lru_cache = cache == CachePolicy::kLru;
  if (config.lru_cache && config.use_kv_events) {
    v.Fail("router_approximate_cache_policy", "lru requires use_kv_events=false");
  }
  v.Doc("serve with events: seconds that a placement also counts as cached, before events say so.")
      .Field("router_predicted_ttl_secs", config.predicted_ttl_secs, config::kNonNegative);
  if (config.predicted_ttl_secs && !config.use_kv_events) {
    v.Fail("router_predicted_ttl_secs", "requires use_kv_events=true");
  }
  std::uint32_t threads = 4;
  v.Field("router_event_threads", threads, config::kPositive);
  bool remote = false;
  bool serve = false;
  bool sessions = false;
  v.Field("use_remote_indexer", remote);
  v.Field("serve_indexer", serve);
  v.Field("enable_session_prefix_index", sessions);
  if (remote && serve) {
    v.Fail("serve_indexer", "cannot be combined with use_remote_indexer");
  }
  if (remote && sessions) {
    v.Fail("enable_session_prefix_index", "cannot be combined with use_remote_indexer");
  }
  constexpr std::array kShared = {Choice<SharedCache>{"none", SharedCache::kNone},
                                  Choice<SharedCache>{"hicache", SharedCache::kHicache}};
  SharedCache shared = SharedCache::kNone;
  v.Field("shared_cache_type", shared, kShared);
  std::optional<double> multiplier;
  v.Field("shared_cache_multiplier", multiplier, config::kShare);
}

// Fields that change nothing in a replay, whatever they are.
void LiveFields(Decoder& v) {
  bool off = false;
  v.Field("router_replica_sync", off);
  constexpr std::array kHashes = {Choice<TrackingHash>{"public-xxh3-v1", TrackingHash::kPublic},
                                  Choice<TrackingHash>{"keyed-xxh3-v1", TrackingHash::kKeyed}};
  TrackingHash hash = TrackingHash::kPublic;
  std::optional<std::string> key_file;
  std::optional<std::string> key_id;
  v.Field("router_tracking_hash", hash, kHashes);
  v.Field("router_tracking_key_file", key_file);
  v.Field("router_tracking_key_id", key_id);
  if (hash == TrackingHash::kKeyed && !(key_file && key_id)) {
    v.Fail("router_tracking_hash",
           "keyed-xxh3-v1 requires router_tracking_key_file and router_tracking_key_id");
  }
  v.Field("conditional_disagg_enabled", off);
  constexpr std::array kBypass = {Choice<BypassPolicy>{"isl_bounding", BypassPolicy::kLength},
                                  Choice<BypassPolicy>{"prefill_load", BypassPolicy::kLoad},
                                  Choice<BypassPolicy>{"isl_or_load", BypassPolicy::kEither}};
  BypassPolicy bypass = BypassPolicy::kLength;
  v.Field("conditional_disagg_policy", bypass, kBypass);
  std::uint64_t tokens = 2048;
  double ratio = 0.7;
  std::optional<double> threshold;
  v.Field("conditional_disagg_eff_isl_threshold", tokens);
  v.Field("conditional_disagg_eff_isl_ratio_threshold", ratio, config::kNonNegative);
  v.Field("conditional_disagg_prefill_busy_threshold", threshold, config::kNonNegative);
  v.Field("conditional_disagg_decode_busy_threshold", threshold, config::kNonNegative);
  bool durable = false;
  v.Field("durable_kv_events", durable);
  if (durable) {
    v.Fail("durable_kv_events", "true is not supported");
  }
  std::optional<std::uint64_t> snapshot;
  v.Field("router_snapshot_threshold", snapshot);
  v.Field("router_reset_states", off);
  v.Field("skip_initial_worker_wait", off);
}

}  // namespace

Json KvRouterConfigSchema() {
  return config::DescribeFields([](Decoder& v) {
    KvRouterConfig c;
    CostFields(v, c);
    TrackingFields(v, c);
    QueueFields(v, c);
    IndexFields(v, c);
    LiveFields(v);
  });
}

Result<KvRouterConfig> DecodeKvRouterConfig(const Json& value, std::string_view where) {
  KvRouterConfig c;
  if (!value.is_object()) {
    return UsageError(std::string(where), "must be a JSON object");
  }
  Decoder v(value, "");
  CostFields(v, c);
  TrackingFields(v, c);
  QueueFields(v, c);
  IndexFields(v, c);
  LiveFields(v);
  DYNO_TRY_VOID(v.Finish(where));
  return c;
}

KvRouterConfig PrefillPoolConfig(KvRouterConfig config) {
  config.track_active_blocks = false;
  return config;
}

KvRouterConfig DecodePoolConfig(KvRouterConfig config) {
  config.overlap_score_credit = 0.0;
  config.assume_kv_reuse = false;
  config.track_prefill_tokens = false;
  config.predict_prefill = false;
  return config;
}

}  // namespace dynosim::router
