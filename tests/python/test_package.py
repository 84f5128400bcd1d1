# SPDX-License-Identifier: Apache-2.0
"""Results, errors, samples, and what a run does to the interpreter."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import dynosim
from surfaces import PROGRAM, ROOT, program

SMALL = {"input_tokens": 128, "output_tokens": 8, "request_count": 20, "replay_concurrency": 4}


def small(**more):
    return dynosim.run_synthetic_trace_replay(**{**SMALL, **more})


def test_result_has_the_members_of_the_contract():
    report = small(capture_per_request=True)
    assert report.summary["completed_requests"] == 20
    assert len(report.per_request) == 20
    assert report.per_request[0]["output_length"] == 8
    assert report.coverage == {"capture_per_request": True, "capture_planner_details": False,
                               "per_request_records": 20}
    assert set(report.to_dict()) == {"summary", "per_request", "coverage", "planner"}
    assert small().per_request is None
    assert "Request Count (requests)" in report.table()


def test_keyword_and_json_text_of_an_engine_are_the_same():
    args = {"engine": {"block_size": 32, "num_gpu_blocks": 100}}
    a, b = small(extra_engine_args=args), small(extra_engine_args=json.dumps(args))
    assert a.summary["mean_ttft_ms"] == b.summary["mean_ttft_ms"]


@pytest.mark.parametrize("arguments, text", [
    ({"request_count": 0}, "request_count"),
    ({"num_workers": 0}, "num_workers"),
    ({"replay_mode": "sideways"}, "replay_mode must be either 'offline' or 'online'"),
    ({"router_mode": "nearest"}, "router_mode"),
    ({"request_rate": 5.0}, "exactly one of replay_concurrency, request_rate"),
    ({"sla_ttft_ms": -1.0}, "sla_ttft_ms"),
    ({"extra_engine_args": {"engine": {"block_sise": 4}}}, "block_sise"),
    ({"replay_mode": "online", "capture_per_request": True}, "capture_per_request only supports"),
    ({"planner_config": {}}, "planner_config is not available"),
    ({"kv_event_lag_ms": [1]}, "kv_event_lag_ms: cannot be [1]"),
])
def test_errors_name_the_argument(arguments, text):
    with pytest.raises(ValueError) as error:
        small(**arguments)
    assert text in str(error.value) and "--" not in str(error.value)


def test_failed_runs_are_runtime_errors(tmp_path):
    with pytest.raises(RuntimeError) as error:
        dynosim.run_trace_replay(tmp_path / "absent.jsonl")
    assert "absent.jsonl" in str(error.value)
    with pytest.raises(ValueError):
        dynosim.predict({"engine": {"model": "x"}})
    with pytest.raises(OSError):
        dynosim.predict(tmp_path / "absent.yaml")


def test_samples_go_to_each_sink(tmp_path):
    seen, file = [], tmp_path / "samples.jsonl"
    options = dynosim.TelemetryOptions(sample_interval_ms=20.0, callback=seen.append,
                                       jsonl_path=file, capture_in_memory=True)
    report = small(telemetry_options=options)
    assert [s["kind"] for s in seen[:2]] == ["baseline", "periodic"]
    assert report.telemetry == {"sample_interval_ms": 20.0, "samples": seen}
    assert [json.loads(line) for line in file.read_text().splitlines()] == seen
    only_called = dynosim.TelemetryOptions(sample_interval_ms=20.0, callback=seen.append)
    assert small(telemetry_options=only_called).telemetry is None
    with pytest.raises(ValueError, match="TelemetryOptions needs at least one sink"):
        dynosim.TelemetryOptions(capture_in_memory=False)


def sampled(callback, **arguments):
    options = dynosim.TelemetryOptions(sample_interval_ms=20.0, callback=callback)
    return small(telemetry_options=options, **arguments)


def test_samples_come_while_the_run_goes_on():
    """Between two samples of the callback the simulation computes, and the run is not over."""
    times = []
    started = time.process_time()
    sampled(lambda sample: times.append(time.process_time()), request_count=4000)
    ended = time.process_time()
    assert len(times) > 500
    assert times[0] - started < 0.5 * (ended - started)
    assert times[len(times) // 2] < started + 0.9 * (ended - started)


@pytest.mark.parametrize("error", [ValueError("mine --num-workers"), RuntimeError("mine"),
                                   KeyError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_of_the_callback_ends_the_run(error):
    seen = []

    def stop(sample):
        seen.append(sample)
        if len(seen) == 3:
            raise error
    with pytest.raises(type(error)) as raised:
        sampled(stop, request_count=100000)
    assert raised.value is error and len(seen) == 3


def test_an_exception_at_the_last_sample_is_raised():
    kinds = []

    def stop(sample):
        kinds.append(sample["kind"])
        if kinds[-1] == "final":
            raise LookupError("at the end")
    with pytest.raises(LookupError, match="at the end"):
        sampled(stop)


def test_samples_of_a_run_in_real_time_are_refused():
    with pytest.raises(ValueError, match="telemetry_options only supports replay_mode='offline'"):
        sampled(print, replay_mode="online")


def test_request_rows_are_written_as_the_command_line_writes_them(tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]}\n')
    report = dynosim.run_trace_replay(trace, report_jsonl_path=tmp_path / "a.jsonl")
    assert len(report.per_request) == 1
    program("replay", trace, "--report-jsonl", tmp_path / "b.jsonl", "--report-json",
            tmp_path / "b.json")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_frames():
    pandas = pytest.importorskip("pandas")
    report = small(capture_per_request=True,
                   telemetry_options=dynosim.TelemetryOptions(sample_interval_ms=20.0))
    rows = report.frame()
    assert isinstance(rows, pandas.DataFrame) and len(rows) == 20
    assert rows["ttft_ms"].mean() == pytest.approx(report.summary["mean_ttft_ms"])
    assert report.summary_frame().loc["ttft_ms", "p99"] == report.summary["p99_ttft_ms"]
    assert report.telemetry_frame()["arriving_requests"].sum() == 20
    with pytest.raises(ValueError):
        small().frame()


def test_estimate_equals_the_command():
    where = {"model": "Qwen/Qwen3-32B", "system": "h200_sxm", "backend": "vllm"}
    ours = dynosim.estimate("prefill", **where, batch=1, isl=4096, tp_size=2)
    out = program("estimate", "--phase", "prefill", "--model", "Qwen/Qwen3-32B", "--system", "h200_sxm",
                  "--backend", "vllm", "--isl", "4096", "--tp", "2", "--json").stdout
    assert ours == json.loads(out) and ours["ms"] > 0
    assert dynosim.estimate("capacity", **where, tp_size=2)["num_gpu_blocks"] > 0
    with pytest.raises(ValueError, match="isl"):
        dynosim.estimate("prefill", **where)
    with pytest.raises(ValueError, match="nobody/nothing"):
        dynosim.estimate("decode", **{**where, "model": "nobody/nothing"}, ctx=100)


# Runs that take far longer than a test may; each says when it has begun.
OFFLINE = """
import dynosim, threading, time, os
def begun(sample):
    if not told:
        told.append(print("begun", flush=True))
told = []
options = dynosim.TelemetryOptions(sample_interval_ms={every}, callback=begun)
def run():
    dynosim.run_synthetic_trace_replay(4000, 4000, 2000000, request_rate=50.0, num_workers=16,
                                       telemetry_options=options)
"""
ONLINE = """
import dynosim
def run():
    print("begun", flush=True)
    dynosim.run_synthetic_trace_replay(100, 1000000, 100, replay_concurrency=2, replay_mode="online")
"""


def start(code):
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n", process.communicate()[1]
    return process


RARELY, OFTEN = 1e12, 100.0


def test_other_threads_go_on_during_a_run():
    """One that is held up would see the end of the run only, minutes later."""
    process = start(OFFLINE.format(every=RARELY) + """
threading.Thread(target=run, daemon=True).start()
while not told:
    time.sleep(0.001)
for _ in range(200):
    time.sleep(0.001)
os._exit(7)
""")
    process.communicate(timeout=120)
    assert process.returncode == 7


@pytest.mark.parametrize("code", [OFFLINE.format(every=RARELY), OFFLINE.format(every=OFTEN), ONLINE],
                         ids=["without_samples", "with_samples", "in_real_time"])
def test_control_c_stops_a_run(code):
    process = start(code + "run()")
    time.sleep(0.5)  # More of the run; earlier is right as well.
    os.kill(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT
    assert error.splitlines()[-1] == "KeyboardInterrupt", error


def test_program_of_the_package_has_the_exit_codes_of_the_program():
    assert program("replay", "--no-such-flag", check=False).returncode == 2
    assert program("replay", "absent.jsonl", check=False).returncode == 1
    assert program("--version").stdout.startswith("dynosim ")
    assert PROGRAM


def test_versions_that_errors_name_are_those_of_the_extras():
    """The package is on no index, so what is missing is installed by its own name."""
    extras = (ROOT / "pyproject.toml").read_text()
    for name, module in (("optuna", "_suggest"), ("ray", "_cluster")):
        asked = re.search(rf"pip install ({name}==[0-9.]+)",
                          (ROOT / f"python/dynosim/{module}.py").read_text())
        assert f'["{asked[1]}"]' in extras
