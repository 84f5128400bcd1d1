// SPDX-License-Identifier: Apache-2.0
#include "live/frontend_metrics.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "live/api_request.h"
#include "live/metrics.h"

namespace dynosim::live {

namespace {

constexpr std::array kTtft = {0., .0022, .0047, .01, .022, .047, .1,   .22,  .47,
                              1., 2.2,   4.7,   10., 22.,  48.,  100., 220., 480.};
constexpr std::array kItl = {0.,  .0018, .0033, .0059, .011, .02, .035, .064, .12, .21,
                             .38, .69,   1.2,   2.3,   4.1,  7.4, 13.,  24.,  44., 80.};
constexpr std::array kDuration = {0., 2., 4., 8., 16., 32., 64., 130., 260., 510.};
constexpr std::array kInput = {0.,    100.,  210., 430., 870., 1800.,
                               3600., 7400., 15e3, 31e3, 63e3, 130e3};
constexpr std::array kOutput = {0., 100., 210., 430., 880., 1800., 3700., 7600., 16e3, 32e3};

struct EndLabels {
  std::string_view status;
  std::string_view type;
};
constexpr std::array<EndLabels, kRequestEnds> kEnds = {{{"success", ""},
                                                        {"error", "validation"},
                                                        {"error", "not_found"},
                                                        {"error", "overload"},
                                                        {"error", "cancelled"},
                                                        {"error", "internal"},
                                                        {"error", "unavailable"}}};
constexpr std::array kApiList = {Api::kChat, Api::kCompletions, Api::kResponses, Api::kGenerate};

Labels RequestLabels(const std::string& model, Api api, std::size_t stream) {
  return {{"model", model},
          {"endpoint", std::string(ApiName(api))},
          {"request_type", stream == 1 ? "stream" : "unary"}};
}

}  // namespace

RequestEnd EndOfStatus(int status) {
  switch (status) {
    case 404:
      return RequestEnd::kNotFound;
    case 429:
    case 529:
      return RequestEnd::kOverload;
    case 503:
      return RequestEnd::kUnavailable;
    default:
      return status < 400   ? RequestEnd::kSuccess
             : status < 500 ? RequestEnd::kValidation
                            : RequestEnd::kInternal;
  }
}

FrontendMetrics::Model::Model(std::string model_name)
    : name(std::move(model_name)),
      input_tokens(kInput),
      output_tokens(kOutput),
      cached_tokens(kInput),
      ttft_s(kTtft),
      itl_s(kItl),
      duration_s(kDuration) {}

FrontendMetrics::FrontendMetrics(std::string prefix) : prefix_(std::move(prefix)) {
  models_.emplace_back("unknown_model");
}

std::size_t FrontendMetrics::AddModel(const std::string& name) {
  for (std::size_t i = 1; i < models_.size(); ++i) {
    if (models_[i].name == name) {
      return i;
    }
  }
  models_.emplace_back(name);
  return models_.size() - 1;
}

void FrontendMetrics::Started(std::size_t place, Api api, bool stream) {
  Model& m = models_[place];
  ++m.started[static_cast<std::size_t>(api)][stream ? 1 : 0];
  ++m.inflight;
}

void FrontendMetrics::Ended(std::size_t place, Api api, bool stream, RequestEnd end,
                            double duration_ms) {
  Model& m = models_[place];
  ++m.requests[static_cast<std::size_t>(api)][stream ? 1 : 0][static_cast<std::size_t>(end)];
  --m.inflight;
  if (end == RequestEnd::kSuccess) {
    m.duration_s.Observe(duration_ms / 1000.0);
  }
}

void FrontendMetrics::Write(MetricsText& out) const {
  const auto name = [&](std::string_view base) { return prefix_ + "_" + std::string(base); };
  for (std::size_t place = 0; place < models_.size(); ++place) {
    const Model& m = models_[place];
    const Labels model = {{"model", m.name}};
    for (const Api api : kApiList) {
      for (std::size_t stream = 0; stream < 2; ++stream) {
        const auto a = static_cast<std::size_t>(api);
        if (m.started[a][stream] > 0) {
          out.Counter(name("requests_started_total"), "Requests received",
                      RequestLabels(m.name, api, stream),
                      static_cast<double>(m.started[a][stream]));
        }
        for (std::size_t end = 0; end < kRequestEnds; ++end) {
          if (m.requests[a][stream][end] == 0) {
            continue;
          }
          Labels labels = RequestLabels(m.name, api, stream);
          labels.emplace_back("status", kEnds[end].status);
          labels.emplace_back("error_type", kEnds[end].type);
          out.Counter(name("requests_total"), "Requests that ended", labels,
                      static_cast<double>(m.requests[a][stream][end]));
        }
      }
    }
    if (place == kUnknownModel) {
      continue;
    }
    const auto inflight = static_cast<double>(m.inflight);
    out.Gauge(name("active_requests"), "Requests in progress", model, inflight);
    out.Gauge(name("inflight_requests"), "The same under its older name", model, inflight);
    out.Gauge(name("queued_requests"), "Sequences without a first token", model,
              static_cast<double>(m.queued));
    out.Counter(name("output_tokens_total"), "Tokens sent", model,
                static_cast<double>(m.output_tokens_total));
    out.Add(name("input_sequence_tokens"), "Prompt tokens of a sequence", model, m.input_tokens);
    out.Add(name("output_sequence_tokens"), "Output tokens of a sequence", model, m.output_tokens);
    out.Add(name("cached_tokens"), "Prompt tokens found in a cache", model, m.cached_tokens);
    out.Add(name("time_to_first_token_seconds"), "Request to first token", model, m.ttft_s);
    out.Add(name("inter_token_latency_seconds"), "Gap between tokens", model, m.itl_s);
    out.Add(name("request_duration_seconds"), "Duration of requests that succeeded", model,
            m.duration_s);
  }
  out.Gauge(name("disconnected_clients"), "Clients that left before their answer was complete", {},
            static_cast<double>(disconnected_));
  out.Counter(name("model_migration_total"), "Sequences that went on at another worker", {},
              static_cast<double>(migrations_));
}

}  // namespace dynosim::live
