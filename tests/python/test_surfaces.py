# SPDX-License-Identifier: Apache-2.0
"""Python, the command line and documents give the same bytes for the same run."""
import json

import pytest

import dynosim
from surfaces import ROOT, file_lines, program, summary_bytes

FIXED = {"type": "fixed", "prefill_ms": 12.5, "decode_ms": 3.25}


def engine(backend="vllm", **fields):
    return {"engine": {"backend": backend, "timing_model": FIXED, **fields}}


def role(name, **fields):
    return engine(worker_type=name, num_gpu_blocks=2048, **fields)


CLOSED = {"replay_concurrency": 8}
SYNTHETIC = {
    "closed_loop": ((256, 32, 60), CLOSED),
    "poisson": ((256, 32, 60), {"request_rate": 40.0}),
    "poisson_seed": ((256, 32, 60), {"request_rate": 40.0, "arrival_seed": 7}),
    "interval": ((100, 9, 50), {"arrival_interval_ms": 4.5}),
    "all_at_once": ((100, 9, 50), {"arrival_interval_ms": 0.0}),
    "speedup": ((100, 9, 50), {"request_rate": 10.0, "arrival_speedup_ratio": 2.5}),
    "polynomial_time": ((1024, 64, 40), CLOSED),
    "fixed_time": ((1024, 64, 40), {**CLOSED, "extra_engine_args": engine()}),
    "sglang": ((300, 20, 40), {**CLOSED, "extra_engine_args": engine("sglang")}),
    "trtllm": ((300, 20, 40), {**CLOSED, "extra_engine_args": engine("trtllm")}),
    "small_pool": ((128, 64, 40),
                   {**CLOSED, "extra_engine_args": engine(num_gpu_blocks=60, block_size=16)}),
    "no_cache": ((256, 16, 40),
                 {**CLOSED, "extra_engine_args": engine(enable_prefix_caching=False)}),
    "two_ranks": ((256, 16, 40), {**CLOSED, "extra_engine_args": {**engine(), "dp_size": 2}}),
    "workers": ((256, 16, 80), {**CLOSED, "num_workers": 4}),
    "sessions": ((256, 16, 20), {**CLOSED, "turns_per_session": 3, "inter_turn_delay_ms": 50.0}),
    "cumulative": ((256, 16, 20),
                   {**CLOSED, "turns_per_session": 3, "session_prompts": "cumulative"}),
    "prefix_groups": ((512, 16, 60),
                      {**CLOSED, "shared_prefix_ratio": 0.5, "num_prefix_groups": 4}),
    "kv_router": ((512, 16, 60), {**CLOSED, "num_workers": 3, "router_mode": "kv_router",
                                  "shared_prefix_ratio": 0.5, "num_prefix_groups": 4}),
    "kv_router_config": ((512, 16, 60),
                         {**CLOSED, "num_workers": 3, "router_mode": "kv_router", "router_seed": 5,
                          "router_config": {"router_temperature": 0.5}}),
    "random_router": ((512, 16, 60),
                      {**CLOSED, "num_workers": 3, "router_mode": "random", "router_seed": 3}),
    "least_loaded": ((512, 16, 60), {**CLOSED, "num_workers": 3, "router_mode": "least_loaded"}),
    "power_of_two": ((512, 16, 60), {**CLOSED, "num_workers": 3, "router_mode": "power_of_two"}),
    "goodput": ((512, 16, 60), {**CLOSED, "sla_ttft_ms": 400.0, "sla_itl_ms": 20.0}),
    "goodput_e2e": ((512, 16, 60), {**CLOSED, "sla_e2e_ms": 900.5}),
    "disaggregated": ((300, 20, 40),
                      {**CLOSED, "num_prefill_workers": 2, "num_decode_workers": 2,
                       "prefill_engine_args": role("prefill"),
                       "decode_engine_args": role("decode")}),
    "disaggregated_transfer": ((300, 20, 40),
                               {**CLOSED, "prefill_engine_args":
                                role("prefill", kv_transfer_bandwidth=10.0,
                                     kv_transfer_bytes_per_token=100000),
                                "decode_engine_args":
                                role("decode", kv_transfer_bandwidth=10.0,
                                     kv_transfer_bytes_per_token=100000)}),
    "rows": ((256, 16, 30), {**CLOSED, "capture_per_request": True}),
}
TRACE = [{"timestamp": 40 * i, "input_length": 700 + 8 * i, "output_length": 5 + i % 7,
          "hash_ids": [i % 3, 100 + i]} for i in range(40)]
TRACED = {
    "trace": {},
    "trace_speedup": {"arrival_speedup_ratio": 3.0},
    "trace_closed_loop": {"replay_concurrency": 4},
    "trace_stopped": {"max_sim_time_ms": 900.0},
    "trace_kv_router": {"num_workers": 2, "router_mode": "kv_router", "kv_event_lag_ms": 2.5},
    "trace_blocks": {"trace_block_size": 640},
}
MODEL = {"model": "Qwen/Qwen3-8B", "hardware": "h200_sxm"}
DOCUMENTS = {
    "default": {"engine": {**MODEL, "workers": {"aggregated": {}}}},
    "fixed": {"engine": {**MODEL, "workers": {"aggregated": {
        "timing": {"type": "fixed", "prefill_ms": 9.0, "decode_ms": 2.0}}}}},
    "poisson": {"traffic": {"load": {"type": "poisson", "requests_per_second": 20},
                            "stop": {"requests": 60}},
                "engine": {**MODEL, "workers": {"aggregated": {"parallelism": {"tensor": 2}}}},
                "evaluation": {"sla": {"ttft_ms": 200, "itl_ms": 12}}},
    "sglang": {"engine": {**MODEL, "backend": "sglang",
                          "workers": {"aggregated": {"parallelism": {"replicas": 2}}}}},
    "disaggregated": {"engine": {**MODEL, "mode": "disaggregated",
                                 "workers": {"prefill": {}, "decode": {}}}},
}
# The same five under other traffic, which makes thirty.
TRAFFIC = {
    "lone": {"load": {"type": "concurrency", "concurrency": 1}, "stop": {"requests": 12}},
    "long": {"source": {"type": "synthetic", "input_tokens": 3000, "output_tokens": 40},
             "load": {"type": "concurrency", "concurrency": 6}, "stop": {"requests": 30}},
    "steady": {"load": {"type": "constant_rate", "requests_per_second": 15},
               "stop": {"requests": 45}},
    "bursts": {"load": {"type": "poisson", "requests_per_second": 30, "seed": 9},
               "stop": {"requests_per_load_unit": 1.5}},
    "one_token": {"source": {"type": "synthetic", "input_tokens": 65, "output_tokens": 1},
                  "load": {"type": "concurrency", "concurrency": 20}, "stop": {"requests": 70}},
}
DOCUMENTS.update({f"{name}_{traffic}": {**document, "traffic": TRAFFIC[traffic]}
                  for name, document in list(DOCUMENTS.items()) for traffic in TRAFFIC})
assert len(DOCUMENTS) == 30


def deployment(traffic, router=None, **worker):
    """A document with three workers of fixed times, or others."""
    worker = {"parallelism": {"replicas": 3}, "timing": DOCUMENTS["fixed"]["engine"]["workers"][
        "aggregated"]["timing"], **worker}
    document = {"traffic": traffic, "engine": {**MODEL, "workers": {"aggregated": worker}}}
    return {**document, "router": router} if router else document


def traced(load, **stop):
    # The test puts its trace in place of this name.
    return {"source": {"type": "trace", "paths": ["TRACE"]}, "load": load, **({"stop": stop} if stop else {})}


def sessions(**session):
    return {"source": {"type": "synthetic-session", "new_input_tokens_per_turn": 200,
                       "output_tokens_per_turn": 9, "session": {"turns": 3, **session}},
            "load": {"type": "concurrency", "concurrency": 5}, "stop": {"sessions": 12}}


AT_ITS_TIMES = {"type": "trace_timestamps"}
SHARED = {"shared_prefix_ratio": 0.5, "prefix_groups": 2}
DOCUMENTS.update({
    "trace": deployment(traced(AT_ITS_TIMES)),
    "trace_speedup": deployment(traced({**AT_ITS_TIMES, "speedup": 3})),
    "trace_closed_loop": deployment(traced({"type": "concurrency", "concurrency": 4})),
    "trace_stopped": deployment(traced(AT_ITS_TIMES, max_virtual_time_seconds=0.9)),
    "trace_kv_router": deployment(traced(AT_ITS_TIMES), {"policy": "kv_router"}),
    "sessions": deployment(sessions()),
    "sessions_shared": deployment(sessions(**SHARED, inter_turn_delay_ms=30)),
    "sessions_fixed_prompts": deployment(sessions(prompts="fixed")),
    "sessions_kv_router": deployment(sessions(**SHARED), {"policy": "kv_router"}),
    "kv_router_scales": deployment(sessions(**SHARED), {
        "policy": "kv_router", "overlap_score_credit": 0.5, "prefill_load_scale": 2,
        "temperature": 0.3, "seed": 8}),
    "random": deployment(sessions(**SHARED), {"policy": "random", "seed": 3}),
    "least_loaded": deployment(sessions(**SHARED), {"policy": "least_loaded"}),
    "power_of_two": deployment(sessions(**SHARED), {"policy": "power_of_two"}),
    "polynomial": deployment(sessions(), timing={"type": "polynomial"}),
    "fixed_pool": deployment(sessions(), kv_cache={"block_size": 16, "capacity": {"type": "fixed", "blocks": 99}}),
})


def flags(arguments):
    out = []
    for name, value in arguments.items():
        out.append("--" + name.replace("_", "-"))
        if value is not True:
            out.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return out


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TRACE))
    return path


def check_equal(report, file, tmp_path):
    """The same summary, and the same report file."""
    ours = tmp_path / "saved.json"
    report.save(ours)
    assert summary_bytes(report.summary) == summary_bytes(json.loads(file.read_text()))
    assert file_lines(ours) == file_lines(file)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_run_equals_the_command_line(name, tmp_path):
    (isl, osl, count), arguments = SYNTHETIC[name]
    report = dynosim.run_synthetic_trace_replay(isl, osl, count, **arguments)
    assert report.summary["completed_requests"] > 0
    file = tmp_path / "report.json"
    program("replay", "--input-tokens", isl, "--output-tokens", osl, "--request-count", count,
            *flags(arguments), "--report-json", file)
    check_equal(report, file, tmp_path)


@pytest.mark.parametrize("name", TRACED)
def test_trace_run_equals_the_command_line(name, trace, tmp_path):
    report = dynosim.run_trace_replay(trace, **TRACED[name])
    file = tmp_path / "report.json"
    program("replay", trace, *flags(TRACED[name]), "--report-json", file)
    check_equal(report, file, tmp_path)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_equals_the_command_line_and_the_flags_it_stands_for(name, trace, tmp_path):
    """Five ways to one run: both ways to give a document, and the arguments that a report names."""
    text = json.dumps(DOCUMENTS[name]).replace("TRACE", str(trace))
    document = tmp_path / "document.yaml"
    document.write_text(text)
    stack = "dynamo" if "router" in DOCUMENTS[name] else "engine"
    report = dynosim.predict(json.loads(text), stack=stack)
    assert report.summary["completed_requests"] > 0
    program("predict", "-c", document, "--stack", stack, "--output-dir", tmp_path / "out")
    check_equal(report, tmp_path / "out" / "prediction.json", tmp_path)
    assert summary_bytes(dynosim.predict(document, stack=stack).summary) == summary_bytes(report.summary)

    arguments = {k: v for k, v in report.configuration.items() if v not in (None, False)}
    file = tmp_path / "replayed.json"
    program("replay", *arguments.get("trace_files", []),
            *flags({k: v for k, v in arguments.items() if k != "trace_files"}), "--report-json", file)
    assert summary_bytes(json.loads(file.read_text())) == summary_bytes(report.summary)
    if "trace_files" in arguments:
        replayed = dynosim.run_trace_replay(arguments.pop("trace_files"), **arguments)
    else:
        sizes = [arguments.pop(k) for k in ("input_tokens", "output_tokens", "request_count")]
        replayed = dynosim.run_synthetic_trace_replay(*sizes, **arguments)
    assert summary_bytes(replayed.summary) == summary_bytes(report.summary)


def test_overrides_are_those_of_the_command_line(tmp_path):
    document = ROOT / "examples" / "aggregated.yaml"
    report = dynosim.predict(document, overrides={
        "engine.workers.aggregated.parallelism.replicas": 3,
        "traffic": {"load": {"type": "concurrency", "concurrency": 4}, "stop": {"requests": 30}}})
    program("predict", "-c", document, "--output-dir", tmp_path / "out",
            "--set", "engine.workers.aggregated.parallelism.replicas=3",
            "--set", "traffic={load: {type: concurrency, concurrency: 4}, stop: {requests: 30}}")
    check_equal(report, tmp_path / "out" / "prediction.json", tmp_path)


def test_module_replay_takes_the_flags_of_the_command(tmp_path):
    import subprocess
    import sys
    arguments = ["--input-tokens", "64", "--output-tokens", "4", "--request-count", "9",
                 "--replay-concurrency", "3", "--extra-engine-args", '{"block_size":64}']
    file = tmp_path / "report.json"
    done = subprocess.run([sys.executable, "-m", "dynosim.replay", *arguments,
                           "--report-json", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Time to First Token (ms)" in done.stdout
    report = dynosim.run_synthetic_trace_replay(64, 4, 9, replay_concurrency=3,
                                                extra_engine_args='{"block_size":64}')
    check_equal(report, file, tmp_path)
