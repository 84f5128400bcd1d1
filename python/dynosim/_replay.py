# SPDX-License-Identifier: Apache-2.0
"""Runs: keyword arguments become the arguments of the command line, so both have the same rules."""
import json
import os
import pathlib
import warnings

from . import _core
from ._errors import in_python
from ._report import ReplayReport, TelemetryOptions


def run_trace_replay(trace_files, *, extra_engine_args=None, prefill_engine_args=None,
                     decode_engine_args=None, router_config=None, num_workers=None,
                     num_prefill_workers=None, num_decode_workers=None, replay_concurrency=None,
                     agentic_lanes=None, replay_mode="offline", router_mode="round_robin",
                     router_seed=None, arrival_speedup_ratio=1.0, trace_block_size=None,
                     trace_format="mooncake", trace_shared_prefix_ratio=0.0,
                     trace_num_prefix_groups=0, model_name=None, router_policy_config=None,
                     report_jsonl_path=None, max_sim_time_ms=None, sla_ttft_ms=None,
                     sla_itl_ms=None, sla_e2e_ms=None, planner_config=None,
                     capture_per_request=False, capture_routing=False, telemetry_options=None,
                     kv_event_lag_ms=None, execution_model=None, weka_nested_timestamp_basis=None,
                     placements=None):
    """Replays a trace through simulated workers.

    trace_files: path, or list of paths (several for trace_format "dynamo" only); may be compressed
      with gzip or zstd. trace_format as `dynosim replay --help` lists them; trace_block_size:
      tokens of one hash id (512, or as the trace says).
    extra_engine_args: engine of aggregated workers, a dictionary or JSON text; or
      prefill_engine_args and decode_engine_args, which select disaggregation.
    num_workers, num_prefill_workers, num_decode_workers: workers of each pool (1).
    replay_concurrency: closed loop of so many requests or sessions; the trace's times are ignored.
    arrival_speedup_ratio: divides arrival times.  max_sim_time_ms: the virtual time of the end.
    router_mode: round_robin, kv_router, random, least_loaded or power_of_two; router_config and
      kv_event_lag_ms (ms) belong to kv_router.
    sla_ttft_ms, sla_itl_ms or sla_e2e_ms (ms): bounds of goodput.
    capture_per_request: keeps a row per request; report_jsonl_path writes the rows to a file too.
    telemetry_options: TelemetryOptions; not with replay_mode "online". An exception of its callback
      ends the run and goes on.
    replay_mode: "offline" runs in virtual time and gives a ReplayReport; "online" runs on the real
      clock and gives the summary, a dictionary.

    ValueError: an argument or a combination of arguments is not possible.
    RuntimeError: the trace cannot be read, or the run failed.
    """
    given = dict(locals())
    files = given.pop("trace_files")
    files = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if trace_format != "applied_compute_agentic":
        _leave_out(given, trace_shared_prefix_ratio=0.0, trace_num_prefix_groups=0)
    return _run(given, [os.fspath(file) for file in files])


def run_synthetic_trace_replay(input_tokens, output_tokens, request_count, *,
                               extra_engine_args=None, prefill_engine_args=None,
                               decode_engine_args=None, router_config=None, num_workers=None,
                               num_prefill_workers=None, num_decode_workers=None,
                               replay_concurrency=None, replay_mode="offline",
                               router_mode="round_robin", router_seed=None, request_rate=None,
                               arrival_interval_ms=None, arrival_seed=42,
                               arrival_speedup_ratio=1.0, turns_per_session=1,
                               shared_prefix_ratio=0.0, num_prefix_groups=0,
                               inter_turn_delay_ms=0.0, session_prompts=None, model_name=None,
                               router_policy_config=None, sla_ttft_ms=None, sla_itl_ms=None,
                               sla_e2e_ms=None, planner_config=None, capture_per_request=False,
                               capture_routing=False, telemetry_options=None,
                               kv_event_lag_ms=None, placements=None):
    """Replays synthetic traffic through simulated workers.

    input_tokens, output_tokens: lengths of a request.  request_count: requests, or sessions when
      turns_per_session > 1.
    Exactly one of replay_concurrency (closed loop), request_rate (Poisson, 1/s; arrival_seed) and
      arrival_interval_ms (ms).
    turns_per_session, inter_turn_delay_ms (ms), session_prompts ("fixed" or "cumulative").
    shared_prefix_ratio (0 to 1), num_prefix_groups: the part of prompts that groups share.
    Everything else as in run_trace_replay, results and errors too.
    """
    return _run(dict(locals()), [])


def predict(document, *, overrides=None, stack="engine", capture_per_request=False):
    """Predicts the deployment that a document describes.

    document: a dictionary, or the path of a YAML file; docs/predict.md has every field.
    overrides: {"engine.workers.aggregated.parallelism.replicas": 4, ...} or a list of PATH=YAML.
    stack: "engine", or "dynamo" with the router around the engines.
    capture_per_request: keeps a row per request.

    Gives a ReplayReport. ValueError: the document is not valid. OSError: it cannot be read.
    RuntimeError: there is no data for the model, it does not fit, or the run failed.
    """
    if isinstance(document, (str, os.PathLike)):
        where = os.fspath(document)
        text = pathlib.Path(where).read_text(encoding="utf-8")
    else:
        where, text = "document", json.dumps(document)
    if hasattr(overrides, "items"):
        overrides = [f"{path}={json.dumps(value)}" for path, value in overrides.items()]
    run = _core.predict(text, where, list(overrides or []), stack, bool(capture_per_request), _warn)
    return ReplayReport(run)


def _run(given, files):
    telemetry = given.pop("telemetry_options")
    rows_path = given.pop("report_jsonl_path", None)
    if given.pop("planner_config") is not None:
        raise ValueError("planner_config is not available in this version")
    mode = given["replay_mode"]
    if mode not in ("offline", "online"):
        raise ValueError(f"replay_mode must be either 'offline' or 'online', got {mode!r}")
    online = mode == "online"
    if online and given["capture_per_request"]:
        hint = "; use report_jsonl_path for online request records" if files else ""
        raise ValueError("capture_per_request only supports replay_mode='offline'" + hint)
    if rows_path is not None:
        given["capture_per_request"] = True
    _leave_out(given, arrival_speedup_ratio=1.0, arrival_seed=42, turns_per_session=1,
               shared_prefix_ratio=0.0, num_prefix_groups=0, inter_turn_delay_ms=0.0)
    if telemetry is not None:
        if not isinstance(telemetry, TelemetryOptions):
            raise ValueError("telemetry_options must be a TelemetryOptions")
        if online:
            raise ValueError("telemetry_options only supports replay_mode='offline'")
        given["capture_telemetry"] = True
        given["telemetry_sample_interval_ms"] = telemetry.sample_interval_ms
    sink = _Sink(telemetry.callback) if telemetry is not None and telemetry.callback else None
    run = _call(_core.replay, _arguments(given, files), _warn, sink)
    report = ReplayReport(run, telemetry is not None)
    if telemetry is not None:
        if telemetry.jsonl_path is not None:
            run.write_telemetry(os.fspath(telemetry.jsonl_path))
        report = report if telemetry.captures else ReplayReport(run, keeps_telemetry=False)
    if rows_path is not None:
        report.save_requests(rows_path)
    return report.summary if online else report


class _Sink:
    """Gives samples to the caller's function, and remembers the exception that it raised."""

    def __init__(self, callback):
        self._callback, self.error = callback, None

    def __call__(self, text):
        try:
            self._callback(json.loads(text))
        except BaseException as error:
            self.error = error
            raise


def _arguments(given, files):
    """Command-line arguments. Values are attached with '=', so that they may begin with a dash."""
    out = ["./" + file if file.startswith("-") else file for file in files]
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(flag)
        elif isinstance(value, (str, os.PathLike)):
            out.append(f"{flag}={os.fspath(value)}")
        elif isinstance(value, dict):
            out.append(f"{flag}={json.dumps(value)}")
        elif isinstance(value, (int, float)):
            out.append(f"{flag}={value!r}")
        else:
            raise ValueError(f"{name}: cannot be {value!r}")
    return out


def _leave_out(given, **defaults):
    """Drops arguments that have their default, so that they count as not given."""
    for name, default in defaults.items():
        if name in given and given[name] == default:
            del given[name]


def _call(function, *arguments):
    """Errors name arguments of Python instead of flags."""
    try:
        return function(*arguments)
    except (ValueError, RuntimeError) as error:
        if any(isinstance(a, _Sink) and a.error is error for a in arguments):
            raise
        raise in_python(error) from None


def _warn(text):
    warnings.warn(text, stacklevel=5)
