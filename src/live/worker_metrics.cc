// SPDX-License-Identifier: Apache-2.0
#include "live/worker_metrics.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/settings.h"
#include "live/metrics.h"

namespace dynosim::live {

namespace {

using engine::Backend;

constexpr std::array kVllmTtft = {.001, .005, .01, .02, .04, .06, .08, .1,  .25,  .5,   .75,
                                  1.,   2.5,  5.,  7.5, 10., 20., 40., 80., 160., 640., 2560.};
constexpr std::array kVllmItl = {.01, .025, .05, .075, .1,  .15, .2,  .3,  .4, .5,
                                 .75, 1.,   2.5, 5.,   7.5, 10., 20., 40., 80.};
constexpr std::array kVllmE2e = {.3,  .5,  .8,  1.,  1.5,  2.,   2.5,  5.,   10.,   15.,  20.,
                                 30., 40., 50., 60., 120., 240., 480., 960., 1920., 7680.};
constexpr std::array kSglangTtft = {.1, .2,  .4,  .6,  .8,  1.,  2.,   4.,   6.,
                                    8., 10., 20., 40., 60., 80., 100., 200., 400.};
constexpr std::array kSglangItl = {.002, .004, .006, .008, .01, .015, .02, .025,
                                   .03,  .035, .04,  .06,  .08, .1,   .2,  .4,
                                   .6,   .8,   1.,   2.,   4.,  6.,   8.};
constexpr std::array kSglangE2e = {.1,  .2,  .4,  .6,  .8,   1.,   2.,   4.,   6.,    8.,    10.,
                                   20., 40., 60., 80., 100., 200., 400., 600., 1200., 1800., 2400.};
constexpr std::array kTokenBounds = {1.,  2.,  5.,  10., 20., 50., 100., 200., 500., 1e3,
                                     2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5,  5e5,  1e6};
constexpr std::array kLateness = {1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3,
                                  2e-3, 5e-3, 1e-2, 2e-2, 5e-2, .1,   .5};

std::span<const double> Bounds(Backend backend, std::span<const double> sglang,
                               std::span<const double> vllm) {
  return backend == Backend::kSglang ? sglang : vllm;
}

// Writes one rank's series; the name starts with the engine's prefix.
class Family {
 public:
  Family(std::string_view prefix, Labels labels, MetricsText& out)
      : prefix_(prefix), labels_(std::move(labels)), out_(out) {}

  void Gauge(std::string_view name, std::string_view help, double value) {
    out_.Gauge(prefix_ + std::string(name), help, labels_, value);
  }
  void Counter(std::string_view name, std::string_view help, std::uint64_t value) {
    out_.Counter(prefix_ + std::string(name), help, labels_, static_cast<double>(value));
  }
  void Counter(std::string_view name, std::string_view help, std::uint64_t value,
               std::pair<std::string, std::string> label) {
    Labels labels = labels_;
    labels.push_back(std::move(label));
    out_.Counter(prefix_ + std::string(name), help, labels, static_cast<double>(value));
  }
  void Add(std::string_view name, std::string_view help, const Histogram& value) {
    out_.Add(prefix_ + std::string(name), help, labels_, value);
  }

 private:
  std::string prefix_;
  Labels labels_;
  MetricsText& out_;
};

double Share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

void WriteVllmRank(const RankStats& s, Family& f) {
  const auto& g = s.gauges;
  f.Gauge("num_requests_running", "Requests in the running batch",
          static_cast<double>(g.running_requests));
  f.Gauge("num_requests_waiting", "Requests that wait to be admitted",
          static_cast<double>(g.waiting_requests));
  const double usage = Share(g.active_blocks, g.total_blocks);
  f.Gauge("kv_cache_usage_perc", "Share of the KV blocks that requests hold, 0 to 1", usage);
  f.Gauge("gpu_cache_usage_perc", "The same under its older name", usage);
  f.Counter("num_preemptions_total", "Preemptions", g.preemptions_total);
  f.Counter("prompt_tokens_total", "Prompt tokens of first admissions", s.prompt_tokens);
  f.Counter("generation_tokens_total", "Generated tokens", s.output_tokens);
  f.Counter("prefix_cache_queries_total", "Prompt tokens looked up in the cache", s.prefix_queries);
  f.Counter("prefix_cache_hits_total", "Prompt tokens found in the cache", s.prefix_hits);
  constexpr std::string_view kEnded = "Requests that ended, by reason";
  f.Counter("request_success_total", kEnded, s.finished_length, {"finished_reason", "length"});
  f.Counter("request_success_total", kEnded, s.finished_abort, {"finished_reason", "abort"});
  f.Add("time_to_first_token_seconds", "Arrival to first token", s.ttft_s);
  f.Add("inter_token_latency_seconds", "Gap between tokens", s.itl_s);
  f.Add("time_per_output_token_seconds", "The same under its older name", s.itl_s);
  f.Add("e2e_request_latency_seconds", "Arrival to last token", s.e2e_s);
  f.Add("request_queue_time_seconds", "Arrival to admission", s.queue_s);
  f.Add("request_prefill_time_seconds", "Admission to first token", s.prefill_s);
  f.Add("request_decode_time_seconds", "First to last token", s.decode_s);
  f.Add("request_inference_time_seconds", "Admission to last token", s.inference_s);
  f.Add("request_prompt_tokens", "Prompt tokens of a request", s.prompt_tokens_per_request);
  f.Add("request_generation_tokens", "Generated tokens of a request", s.output_tokens_per_request);
  f.Add("request_params_max_tokens", "Output limit of a request", s.max_tokens_param);
}

void WriteVllm(const WorkerStats& stats, const engine::EngineSettings& settings,
               std::string_view prefix, const Labels& base, MetricsText& out) {
  for (std::size_t rank = 0; rank < stats.ranks.size(); ++rank) {
    Labels labels = {{"model_name", stats.model_name}, {"engine", std::to_string(rank)}};
    labels.insert(labels.end(), base.begin(), base.end());
    Family family(prefix, labels, out);
    WriteVllmRank(stats.ranks[rank], family);
    labels.insert(labels.end(),
                  {{"block_size", std::to_string(settings.block_size)},
                   {"num_gpu_blocks", std::to_string(settings.num_gpu_blocks)},
                   {"cache_dtype", "auto"},
                   {"enable_prefix_caching", settings.enable_prefix_caching ? "True" : "False"}});
    out.Gauge(std::string(prefix) + "cache_config_info", "Configuration of the KV cache", labels,
              1);
  }
}

void WriteSglang(const WorkerStats& stats, std::string_view prefix, const Labels& base,
                 MetricsText& out) {
  RankStats sum(Backend::kSglang);
  for (const RankStats& rank : stats.ranks) {
    sum.gauges.running_requests += rank.gauges.running_requests;
    sum.gauges.waiting_requests += rank.gauges.waiting_requests;
    sum.gauges.active_blocks += rank.gauges.active_blocks;
    sum.gauges.total_blocks += rank.gauges.total_blocks;
    sum.gauges.preemptions_total += rank.gauges.preemptions_total;
    sum.gauges.cache_hit_tokens += rank.gauges.cache_hit_tokens;
    sum.gauges.cache_total_tokens += rank.gauges.cache_total_tokens;
    sum.requests += rank.requests;
    sum.prompt_tokens += rank.prompt_tokens;
    sum.output_tokens += rank.output_tokens;
    sum.prefix_hits += rank.prefix_hits;
    sum.ttft_s.Add(rank.ttft_s);
    sum.itl_s.Add(rank.itl_s);
    sum.e2e_s.Add(rank.e2e_s);
  }
  Labels labels = {{"model_name", stats.model_name}, {"engine_type", "sglang"}};
  labels.insert(labels.end(), base.begin(), base.end());
  Family requests(prefix, labels, out);
  requests.Counter("num_requests_total", "Requests", sum.requests);
  requests.Counter("prompt_tokens_total", "Prompt tokens of first admissions", sum.prompt_tokens);
  requests.Counter("generation_tokens_total", "Generated tokens", sum.output_tokens);
  requests.Counter("cached_tokens_total", "Prompt tokens found in the cache", sum.prefix_hits);
  requests.Add("time_to_first_token_seconds", "Arrival to first token", sum.ttft_s);
  requests.Add("inter_token_latency_seconds", "Gap between tokens", sum.itl_s);
  requests.Add("e2e_request_latency_seconds", "Arrival to last token", sum.e2e_s);
  labels.insert(labels.end(), {{"tp_rank", "0"}, {"pp_rank", "0"}, {"moe_ep_rank", "0"}});
  Family scheduler(prefix, labels, out);
  const auto& g = sum.gauges;
  scheduler.Gauge("num_running_reqs", "Requests in the running batch",
                  static_cast<double>(g.running_requests));
  scheduler.Gauge("num_queue_reqs", "Requests that wait to be admitted",
                  static_cast<double>(g.waiting_requests));
  scheduler.Gauge("token_usage", "Share of the pages in use, 0 to 1",
                  Share(g.active_blocks, g.total_blocks));
  scheduler.Gauge("num_retracted_reqs", "Retractions so far",
                  static_cast<double>(g.preemptions_total));
  scheduler.Gauge("cache_hit_rate", "Share of the prompt tokens that were found in the cache",
                  Share(g.cache_hit_tokens, g.cache_total_tokens));
}

}  // namespace

RankStats::RankStats(Backend backend)
    : ttft_s(Bounds(backend, kSglangTtft, kVllmTtft)),
      itl_s(Bounds(backend, kSglangItl, kVllmItl)),
      e2e_s(Bounds(backend, kSglangE2e, kVllmE2e)),
      queue_s(kVllmE2e),
      prefill_s(kVllmE2e),
      decode_s(kVllmE2e),
      inference_s(kVllmE2e),
      prompt_tokens_per_request(kTokenBounds),
      output_tokens_per_request(kTokenBounds),
      max_tokens_param(kTokenBounds) {}

WorkerStats::WorkerStats(Backend backend, std::uint32_t dp_size)
    : ranks(dp_size, RankStats(backend)), lateness_s(kLateness) {}

std::string_view MetricPrefix(Backend backend) {
  switch (backend) {
    case Backend::kVllm:
      return "vllm:";
    case Backend::kTrtllm:
      return "trtllm:";
    case Backend::kSglang:
      return "sglang:";
  }
  return {};
}

void WriteWorkerMetrics(const WorkerStats& stats, const engine::EngineSettings& settings,
                        const std::string& worker, MetricsText& out) {
  Labels base;
  if (!worker.empty()) {
    base.emplace_back("worker_id", worker);
  }
  if (!stats.model_name.empty()) {
    const std::string_view prefix = MetricPrefix(settings.backend);
    if (settings.backend == Backend::kSglang) {
      WriteSglang(stats, prefix, base, out);
    } else {
      WriteVllm(stats, settings, prefix, base, out);
    }
  }
  for (std::size_t rank = 0; rank < stats.ranks.size(); ++rank) {
    const auto& g = stats.ranks[rank].gauges;
    const auto blocks = [&](const char* state, std::uint64_t value) {
      Labels labels = base;
      labels.insert(labels.end(), {{"engine", std::to_string(rank)}, {"state", state}});
      out.Gauge("dynosim_kv_blocks", "KV blocks: held by requests, only cached, and all", labels,
                static_cast<double>(value));
    };
    blocks("active", g.active_blocks);
    blocks("inactive", g.inactive_blocks);
    blocks("total", g.total_blocks);
  }
  out.Add("dynosim_pass_lateness_seconds", "Wake-up after the modelled end of a pass", base,
          stats.lateness_s);
  out.Counter("dynosim_kv_event_messages_total", "KV event messages published", base,
              static_cast<double>(stats.kv_messages));
  out.Counter("dynosim_kv_event_messages_dropped_total", "KV event messages that were not sent",
              base, static_cast<double>(stats.kv_messages_dropped));
}

}  // namespace dynosim::live
