# SPDX-License-Identifier: Apache-2.0
"""Results of runs."""
import dataclasses
import functools
import json
import os

# Members of the report file that are no part of the summary.
_APART = ("configuration", "coverage", "per_request", "runtime", "telemetry")


@dataclasses.dataclass(frozen=True)
class TelemetryOptions:
    """Periodic samples of a run, `sample_interval_ms` of virtual time apart.

    capture_in_memory: keep them in `report.telemetry`; None: only when there is no other sink.
    callback: called with each sample, a dictionary, when the run takes it, in the thread that
      started the run. An exception ends the run and goes on.
    jsonl_path: file with one sample a line.
    """

    sample_interval_ms: float = 1000.0
    capture_in_memory: object = None
    callback: object = None
    jsonl_path: object = None

    def __post_init__(self):
        if self.callback is not None and not callable(self.callback):
            raise ValueError("TelemetryOptions: callback must be callable")
        if self.capture_in_memory is False and self.callback is None and self.jsonl_path is None:
            raise ValueError("TelemetryOptions needs at least one sink")

    @property
    def captures(self):
        if self.capture_in_memory is None:
            return self.callback is None and self.jsonl_path is None
        return bool(self.capture_in_memory)


class ReplayReport:
    """What a run gave. Dictionaries are read once and kept.

    summary: totals, rates and latency distributions by name.
    per_request: a dictionary per request in the order of the report, or None if not captured.
    coverage: what was captured.  configuration: arguments that reproduce the run.
    planner: None, there is no planner in this version.
    telemetry: {"sample_interval_ms", "samples"}, or None if not kept.
    """

    planner = None

    def __init__(self, run, keeps_telemetry=True):
        self._run = run
        self._keeps_telemetry = keeps_telemetry

    @functools.cached_property
    def summary(self):
        return json.loads(self._run.summary())

    @functools.cached_property
    def _members(self):
        report = json.loads(self._run.report())
        return {name: report.get(name) for name in _APART}

    @property
    def per_request(self):
        return self._members["per_request"]

    @property
    def coverage(self):
        return self._members["coverage"]

    @property
    def configuration(self):
        return self._members["configuration"]

    @property
    def telemetry(self):
        return self._members["telemetry"] if self._keeps_telemetry else None

    def to_dict(self):
        """{"summary", "per_request", "coverage", "planner"} and "telemetry" if samples were kept."""
        out = {"summary": self.summary, "per_request": self.per_request, "coverage": self.coverage,
               "planner": self.planner}
        if self.telemetry is not None:
            out["telemetry"] = self.telemetry
        return out

    def table(self):
        """The text table that the command line prints."""
        return self._run.table()

    def save(self, path):
        """Writes the report file of the command line, the same bytes apart from machine time."""
        self._run.write_report(os.fspath(path))

    def save_requests(self, path):
        """Writes one request a line as JSON. ValueError if requests were not captured."""
        self._run.write_requests(os.fspath(path))

    def frame(self):
        """pandas.DataFrame with a row per request, its columns the scalar fields of a row."""
        if self.per_request is None:
            raise ValueError("the run has no rows of requests; it needs capture_per_request=True")
        return _frame([{name: value for name, value in row.items()
                        if not isinstance(value, (list, dict))} for row in self.per_request])

    def telemetry_frame(self):
        """pandas.DataFrame with a row per sample: its times and traffic, and the sums over all
        ranks of each role as <role>_<field> (blocks, running and waiting requests)."""
        if self.telemetry is None:
            raise ValueError("the run kept no samples; it needs telemetry_options")
        return _frame([_sample_row(sample) for sample in self.telemetry["samples"]])

    def summary_frame(self):
        """pandas.DataFrame with one row per metric: mean, min, max, median, p75, p90, p95, p99, std."""
        rows = {}
        for name, value in self.summary.items():
            statistic, _, metric = name.partition("_")
            if statistic in _STATISTICS and f"mean_{metric}" in self.summary:
                rows.setdefault(metric, {})[statistic] = value
        pandas = _pandas()
        return pandas.DataFrame.from_dict(rows, orient="index", columns=list(_STATISTICS))

    def __repr__(self):
        s = self.summary
        return (f"<ReplayReport: {s['completed_requests']} of {s['num_requests']} requests in "
                f"{s['duration_ms']:.1f} ms, {s['output_throughput_tok_s']:.1f} output tokens/s, "
                f"mean TTFT {s['mean_ttft_ms']:.2f} ms>")


_STATISTICS = ("mean", "min", "max", "median", "p75", "p90", "p95", "p99", "std")


def _sample_row(sample):
    row = {name: sample[name] for name in ("sample_ordinal", "kind", "interval_start_ms",
                                           "sampled_at_ms")}
    row.update(sample["traffic"])
    for role in ("prefill", "decode"):
        for name in ("active_blocks", "inactive_blocks", "total_blocks", "running_requests",
                     "waiting_requests"):
            row[f"{role}_{name}"] = sum(rank[name] for rank in sample[f"{role}_scheduler_metrics"])
    return row


def _frame(rows):
    return _pandas().DataFrame(rows)


def _pandas():
    try:
        import pandas
    except ImportError:
        raise ImportError("data frames need pandas: pip install pandas") from None
    return pandas
