// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd_serve.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
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

int Serve(const ServeFlags& flags) {
  auto options = ReadServeFlags(flags);
  if (!options) {
    return ReportError(options.error());
  }
  options->on_listening = Announce(
      fmt::format("serving {} with {} workers", options->frontend.model, options->worker.count()),
      options->http.host);
  return Finish(live::Serve(*options));
}

int Mocker(const MockerFlags& flags) {
  auto options = ReadMockerFlags(flags);
  if (!options) {
    return ReportError(options.error());
  }
  options->on_listening = Announce(
      fmt::format("{} workers of {}", options->worker.count(), options->model), options->http.host);
  return Finish(live::RunMocker(*options));
}

int Frontend(const FrontendFlags& flags) {
  auto options = ReadFrontendFlags(flags);
  if (!options) {
    return ReportError(options.error());
  }
  options->on_listening =
      Announce(fmt::format("frontend of {}", options->frontend.model), options->http.host);
  return Finish(live::RunFrontend(*options));
}

}  // namespace

LiveCommands::LiveCommands(CLI::App& app)
    : serve_(app.add_subcommand("serve",
                                "Serves an OpenAI-compatible API over mock workers, in real time")),
      mocker_(app.add_subcommand("mocker",
                                 "Runs mock workers in a process of their own, for a frontend")),
      frontend_(app.add_subcommand("frontend", "Serves the API over workers of other processes")) {
  AddServeFlags(*serve_, serve_flags_);
  AddMockerFlags(*mocker_, mocker_flags_);
  AddFrontendFlags(*frontend_, frontend_flags_);
}

bool LiveCommands::parsed() const {
  return serve_->parsed() || mocker_->parsed() || frontend_->parsed();
}

int LiveCommands::Run() const {
  if (serve_->parsed()) {
    return Serve(serve_flags_);
  }
  return mocker_->parsed() ? Mocker(mocker_flags_) : Frontend(frontend_flags_);
}

}  // namespace dynosim::cli
