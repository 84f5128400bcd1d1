// SPDX-License-Identifier: Apache-2.0
// The extension module dynosim._core. Texts go in and out; python/dynosim makes objects of them.
// The interpreter lock is released while a run goes on and taken for signals and calls only.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/json.h"
#include "base/result.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/recommend_session.h"
#include "python/recommend.h"
#include "python/run.h"

namespace nb = nanobind;

namespace dynosim::python {
namespace {

// ValueError for what the caller gave, RuntimeError for a run that failed; an exception that is
// already set (of a signal handler) goes on instead.
[[noreturn]] void Raise(const Error& error) {
  if (PyErr_Occurred() == nullptr) {
    PyObject* const kind = error.kind == ErrorKind::kUsage ? PyExc_ValueError : PyExc_RuntimeError;
    PyErr_SetString(kind, error.Text().c_str());
  }
  nb::raise_python_error();
}

template <class T>
T OrRaise(Result<T> result) {
  if (!result) {
    Raise(result.error());
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

// Calls Python; an exception stays set and ends the run the next time it asks whether to go on.
template <class... Args>
void CallPython(const nb::callable& function, Args... arguments) {
  try {
    function(arguments...);
  } catch (nb::python_error& error) {
    error.restore();
  }
}

// Signal handlers run here, so Ctrl-C stops a run of the main thread.
RunCalls CallsOf(const nb::callable& warn) {
  return {.keep_going =
              [] {
                const nb::gil_scoped_acquire lock;
                return PyErr_Occurred() == nullptr && PyErr_CheckSignals() == 0;
              },
          .warn =
              [&warn](const std::string& text) {
                const nb::gil_scoped_acquire lock;
                if (PyErr_Occurred() == nullptr) {
                  CallPython(warn, text);
                }
              },
          .sample = {}};
}

// Of a run that has ended; an exception of something it called comes first.
std::unique_ptr<Run> OrRaiseRun(Result<std::unique_ptr<Run>> run) {
  if (PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  return OrRaise(std::move(run));
}

// `sample` may be None.
std::unique_ptr<Run> Replay(const std::vector<std::string>& arguments, const nb::callable& warn,
                            const nb::object& sample) {
  RunCalls calls = CallsOf(warn);
  if (!sample.is_none()) {
    calls.sample = [&sample](const std::string& text) {
      const nb::gil_scoped_acquire lock;
      if (PyErr_Occurred() == nullptr) {
        CallPython(nb::borrow<nb::callable>(sample), text);
      }
      return PyErr_Occurred() == nullptr;
    };
  }
  auto run = [&] {
    const nb::gil_scoped_release unlocked;
    return RunReplay(arguments, calls);
  }();
  return OrRaiseRun(std::move(run));
}

std::unique_ptr<Run> Predict(Prediction prediction, const nb::callable& warn) {
  const RunCalls calls = CallsOf(warn);
  auto run = [&] {
    const nb::gil_scoped_release unlocked;
    return RunPrediction(prediction, calls);
  }();
  return OrRaiseRun(std::move(run));
}

std::unique_ptr<Recommendation> Prepare(const std::string& config, nb::object document,
                                        const std::vector<std::string>& overrides,
                                        const std::string& stack, const std::string& output_dir,
                                        bool overwrite, bool resume, std::uint64_t top,
                                        const std::string& report_html) {
  cli::RecommendOptions options;
  options.config = config;
  if (!document.is_none()) {
    options.document = nb::cast<std::string>(document);
  }
  options.overrides = overrides;
  options.stack = stack;
  options.output_directory = output_dir;
  options.overwrite = overwrite;
  options.resume = resume;
  options.top = top;
  options.report_html = report_html;
  auto prepared = [&] {
    const nb::gil_scoped_release unlocked;
    return PrepareOptions(std::move(options));
  }();
  return OrRaise(std::move(prepared));
}

// The result of one trial, for a process that runs trials of a search of another one.
std::string EvaluateTrial(const Recommendation& search, const std::string& trial,
                          const nb::callable& warn) {
  const RunCalls calls = CallsOf(warn);
  auto result = [&] {
    const nb::gil_scoped_release unlocked;
    return search.Evaluate(trial, calls);
  }();
  if (PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  return OrRaise(std::move(result));
}

bool RunPending(Campaign& campaign, const nb::callable& progress, const nb::callable& warn) {
  const RunCalls calls = CallsOf(warn);
  const auto call = [&progress](std::size_t done, std::size_t total) {
    const nb::gil_scoped_acquire lock;
    if (PyErr_Occurred() == nullptr) {
      CallPython(progress, done, total);
    }
  };
  auto complete = [&] {
    const nb::gil_scoped_release unlocked;
    return campaign.RunPending(call, calls);
  }();
  if (PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  return OrRaise(std::move(complete));
}

int Program(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers;
  pointers.reserve(arguments.size());
  for (const std::string& argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  const nb::gil_scoped_release unlocked;
  return cli::RunProgram(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

NB_MODULE(_core, m) {
  nb::class_<Run>(m, "Run")
      .def("summary", &Run::SummaryText, nb::call_guard<nb::gil_scoped_release>())
      .def("report", &Run::ReportText, nb::call_guard<nb::gil_scoped_release>())
      .def("table", &Run::Table)
      .def("write_report",
           [](const Run& run, const std::string& path) { OrRaise(run.WriteReport(path)); })
      .def("write_requests",
           [](const Run& run, const std::string& path) { OrRaise(run.WriteRequests(path)); })
      .def("write_telemetry",
           [](const Run& run, const std::string& path) { OrRaise(run.WriteTelemetry(path)); });
  nb::class_<Estimates>(m, "Estimates")
      .def(nb::init<std::vector<std::string>>(), nb::arg("folders"))
      .def("answer", [](Estimates& estimates, const std::string& question) {
        return OrRaise(estimates.Answer(question));
      });
  m.def("replay", &Replay, nb::arg("arguments"), nb::arg("warn"), nb::arg("sample").none());
  m.def(
      "predict",
      [](std::string document, std::string where, std::vector<std::string> overrides,
         std::string stack, bool capture_per_request, const nb::callable& warn) {
        return Predict({.document = std::move(document),
                        .where = std::move(where),
                        .overrides = std::move(overrides),
                        .stack = std::move(stack),
                        .capture_per_request = capture_per_request},
                       warn);
      },
      nb::arg("document"), nb::arg("where"), nb::arg("overrides"), nb::arg("stack"),
      nb::arg("capture_per_request"), nb::arg("warn"));
  nb::class_<Recommendation>(m, "Recommendation")
      .def_static(
          "of_arguments",
          [](const std::vector<std::string>& arguments) {
            return OrRaise(PrepareArguments(arguments));
          },
          nb::arg("arguments"))
      .def_static("of_options", &Prepare, nb::arg("config"), nb::arg("document").none(),
                  nb::arg("overrides"), nb::arg("stack"), nb::arg("output_dir"),
                  nb::arg("overwrite"), nb::arg("resume"), nb::arg("top"), nb::arg("report_html"))
      .def("description", &Recommendation::Description)
      .def_prop_ro("document",
                   [](const Recommendation& r) { return DumpJson(r.search().document); })
      .def_prop_ro("where", [](const Recommendation& r) { return r.search().where; })
      .def_prop_ro("stack", [](const Recommendation& r) { return r.options().stack; })
      .def_prop_ro("output_dir",
                   [](const Recommendation& r) { return r.options().output_directory; })
      .def("evaluate", &EvaluateTrial, nb::arg("trial"), nb::arg("warn"))
      .def(
          "open",
          [](const Recommendation& recommendation, const std::string& sampler) {
            return OrRaise(Campaign::Open(recommendation, sampler));
          },
          nb::arg("sampler"));
  nb::class_<Campaign>(m, "Campaign")
      .def("add", [](Campaign& c, const std::string& trial) { return OrRaise(c.Add(trial)); })
      .def("pending", &Campaign::Pending)
      .def_prop_ro("finished", &Campaign::finished)
      .def_prop_ro("planned", &Campaign::planned)
      .def("outcome", &Campaign::Outcome)
      .def("keep", [](Campaign& c, std::size_t trial,
                      const std::string& result) { OrRaise(c.Keep(trial, result)); })
      .def("run_pending", &RunPending, nb::arg("progress"), nb::arg("warn"))
      .def("interrupted_text", &Campaign::InterruptedText)
      .def("finish", [](Campaign& c) {
        cli::Recommended done = OrRaise(c.Finish());
        return std::tuple(done.feasible, std::move(done.counts), std::move(done.output));
      });
  m.def("candidate_text", &cli::CandidateText, nb::arg("done"), nb::arg("already"),
        nb::arg("total"), nb::arg("elapsed_s"));
  m.def("program", &Program, nb::arg("arguments"));
}

}  // namespace dynosim::python
