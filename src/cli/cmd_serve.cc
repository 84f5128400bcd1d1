// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd_serve.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "base/result.h"
#include "cli/program.h"
#include "cli/serve_options.h"
#include "live/serve.h"

namespace dynosim::cli {
namespace {

// Says where the server is, on one line, once it can be reached.
live::OnListening Announce(std::string what, std::string host) {
  return [what = std::move(what), host = std::move(host)](std::uint16_t port,
                                                          const std::function<void()>& /*stop*/) {
    const std::string line = fmt::format("dynosim: {} on http://{}:{}\n", what, host, port);
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
  };
}

int Finish(const Result<void>& served) { return served ? kExitOk : ReportError(served.error()); }

}  // namespace

int RunServe(const ServeFlags& flags) {
  auto options = ReadServeFlags(flags);
  if (!options) {
    return ReportError(options.error());
  }
  options->on_listening = Announce(
      fmt::format("serving {} with {} workers", options->frontend.model, options->worker.workers),
      options->http.host);
  return Finish(live::Serve(*options));
}

int RunMocker(const MockerFlags& flags) {
  auto options = ReadMockerFlags(flags);
  if (!options) {
    return ReportError(options.error());
  }
  options->on_listening =
      Announce(fmt::format("{} workers of {}", options->worker.workers, options->model),
               options->http.host);
  return Finish(live::RunMocker(*options));
}

int RunFrontend(const FrontendFlags& flags) {
  auto options = ReadFrontendFlags(flags);
  if (!options) {
    return ReportError(options.error());
  }
  options->on_listening =
      Announce(fmt::format("frontend of {}", options->frontend.model), options->http.host);
  return Finish(live::RunFrontend(*options));
}

}  // namespace dynosim::cli
