// SPDX-License-Identifier: Apache-2.0
// The extension module dynosim._core. Texts go in and out; python/dynosim makes objects of them.
// The interpreter lock is released while a run goes on and taken for signals and warnings only.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/result.h"
#include "cli/program.h"
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

// Signal handlers run here, so Ctrl-C stops a run of the main thread.
RunCalls CallsOf(const nb::callable& warn) {
  return {.keep_going =
              [] {
                const nb::gil_scoped_acquire lock;
                return PyErr_CheckSignals() == 0;
              },
          .warn =
              [&warn](const std::string& text) {
                const nb::gil_scoped_acquire lock;
                if (PyErr_Occurred() == nullptr) {
                  warn(text);
                }
              }};
}

std::unique_ptr<Run> Replay(const std::vector<std::string>& arguments, const nb::callable& warn) {
  const RunCalls calls = CallsOf(warn);
  auto run = [&] {
    const nb::gil_scoped_release unlocked;
    return RunReplay(arguments, calls);
  }();
  return OrRaise(std::move(run));
}

std::unique_ptr<Run> Predict(Prediction prediction, const nb::callable& warn) {
  const RunCalls calls = CallsOf(warn);
  auto run = [&] {
    const nb::gil_scoped_release unlocked;
    return RunPrediction(prediction, calls);
  }();
  return OrRaise(std::move(run));
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
  m.def("replay", &Replay, nb::arg("arguments"), nb::arg("warn"));
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
  m.def("program", &Program, nb::arg("arguments"));
}

}  // namespace dynosim::python
