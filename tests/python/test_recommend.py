# SPDX-License-Identifier: Apache-2.0
"""Searches from Python leave the bytes that the command line leaves, however they are run."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

import dynosim
from surfaces import ROOT, program

SHAPES = [{"replicas": replicas, "tensor": 1, "pipeline": 1, "attention_data": 1, "moe_tensor": 1,
           "moe_expert": 1} for replicas in (1, 2)]
DOCUMENT = {
    "traffic": {"source": {"type": "synthetic", "input_tokens": 32, "output_tokens": 4},
                "load": {"type": "concurrency", "concurrency": {"choices": [1, 2]}},
                "stop": {"requests": 6}},
    "engine": {"mode": "aggregated", "model": "some/model", "hardware": "h200_sxm",
               "backend": "vllm", "context_length": 2048, "workers": {"aggregated": {
                   "parallelism": {"preset": SHAPES},
                   "scheduler": {"max_batched_tokens": 8192, "max_sequences": 256},
                   "kv_cache": {"capacity": {"type": "fixed", "blocks": 256}},
                   "timing": {"type": "fixed", "prefill_ms": 1, "decode_ms": 1}}}},
    "optimization": {"target": "throughput", "constraints": {"max_candidate_gpus": 2}}}
MANY = {"traffic.load.concurrency": {"range": {"min": 1, "max": 60, "step": 1}},
        "traffic.stop.requests": 40, "optimization.target": "e2e_latency"}
BAYESIAN = {**MANY, "traffic.load.concurrency": {"range": {"min": 1, "max": 400, "step": 1}},
            "engine.workers.aggregated.scheduler.max_sequences":
                {"choices": [1, 2, 4, 8, 16, 32, 64, 128]},
            "optimization.target": "throughput",
            "optimizer": {"algorithm": "bayesian", "max_trials": 60, "seed": 3}}
SLOW = {"traffic.stop.requests": 20000}


def files(folder):
    """Every file of an output folder by name."""
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


def sets(overrides):
    return [part for path, value in overrides.items() for part in
            ("--set", f"{path}={json.dumps(value)}")]


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "document.yaml"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_a_search_leaves_the_bytes_of_the_command_line(document, tmp_path):
    result = dynosim.recommend(document, output_dir=tmp_path / "a", overrides=MANY)
    program("recommend", "-c", document, "--output-dir", tmp_path / "b", *sets(MANY))
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert "recommendation.journal" not in files(tmp_path / "a")
    dynosim.recommend(DOCUMENT, output_dir=tmp_path / "c", overrides=MANY)
    assert files(tmp_path / "c") == files(tmp_path / "a")
    assert result.counts["evaluated"] == 120 and len(result.candidates) == 120
    assert result.ranking[0]["candidate_id"] == result.to_dict()["views"]["top_n"][0]
    assert dynosim.predict(result.paths[0]).summary["mean_e2e_latency_ms"] \
        == -result.ranking[0]["score"]
    assert result.table().startswith("AISimulate recommendations\n1: score=")


def test_progress_counts_up_in_the_calling_thread(tmp_path):
    import threading
    seen = []
    dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a", progress=lambda done, total: seen.append(
        (done, total, threading.current_thread() is threading.main_thread())))
    assert seen == sorted(seen) and seen[-1] == (4, 4, True)


def test_an_exception_of_progress_ends_the_search_which_can_go_on(tmp_path):
    def stop(done, total):
        raise LookupError("enough")
    slow = {**MANY, "traffic.stop.requests": 3000}
    with pytest.raises(LookupError, match="enough"):
        dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a", overrides=slow, progress=stop)
    seen = []
    dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a", overrides=slow, resume=True,
                      progress=lambda done, _: seen.append(done))
    assert min(seen) > 1
    dynosim.recommend(DOCUMENT, output_dir=tmp_path / "b", overrides=slow)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_nothing_feasible_is_an_empty_ranking(tmp_path):
    result = dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a", overrides={
        "optimization.strict_sla": True, "evaluation": {"sla": {"ttft_ms": 0.5}}})
    assert result.ranking == [] and result.paths == [] and result.counts["infeasible"] == 4
    assert result.candidates[0]["reason"] == "mean TTFT is 1 ms, more than the bound of 0.5 ms"


@pytest.mark.parametrize("arguments, text", [
    ({"executor": "spark"}, "executor must be 'local' or 'ray'"),
    ({"ray_address": "auto"}, "ray_address needs executor='ray'"),
    ({"top": 0}, "top"),
    ({"stack": "other"}, "must be engine or dynamo"),
    ({"overrides": {"optimizer.algorithm": "annealing"}}, "optimizer.algorithm"),
    ({"resume": True, "overwrite": True}, "cannot be combined"),
    ({"resume": True}, "there is no unfinished search"),
])
def test_errors_name_the_argument(arguments, text, tmp_path):
    with pytest.raises(ValueError) as error:
        dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a", **arguments)
    assert text in str(error.value) and "--" not in str(error.value)
    assert not (tmp_path / "a").exists()


def test_results_in_the_way_are_named_as_an_argument(tmp_path):
    dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a")
    with pytest.raises(ValueError, match="output_dir: .* is not empty; overwrite replaces"):
        dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a")
    assert dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a", overwrite=True).ranking


def test_a_frame_has_a_row_per_candidate(tmp_path):
    pytest.importorskip("pandas")
    frame = dynosim.recommend(DOCUMENT, output_dir=tmp_path / "a").frame()
    assert len(frame) == 4 and set(frame["traffic.load.concurrency"]) == {1, 2}
    assert frame["score"].max() == 2000.0
    assert frame["output_throughput_tok_s"].max() == 2000.0


# A process that searches until it is ended from outside.

def start(document, out, overrides, *more):
    return subprocess.Popen([sys.executable, "-m", "dynosim.recommend", "-c", document,
                             "--output-dir", out, *sets(overrides), *more],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_journal(process, out, lines):
    journal = pathlib.Path(out) / "recommendation.journal"
    while process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") > lines:
            return
        time.sleep(0.001)
    raise AssertionError(process.communicate()[1] or "the search was over too early")


def killed(document, out, overrides, after):
    """A process that searches and kills itself once so many candidates are finished."""
    code = (f"import dynosim, os, signal\n"
            f"def progress(done, total):\n    done < {after} or os.kill(os.getpid(), signal.SIGKILL)\n"
            f"dynosim.recommend({str(document)!r}, output_dir={str(out)!r}, progress=progress,"
            f" overrides={overrides!r})")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_control_c_ends_a_search_that_goes_on_later(document, tmp_path):
    slow = {**MANY, **SLOW}
    process = start(document, tmp_path / "a", slow)
    wait_for_journal(process, tmp_path / "a", 3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 120 candidates are kept, --resume goes on with them" in error
    done = start(document, tmp_path / "a", slow, "--resume")
    assert "Saved full result to" in done.communicate(timeout=120)[0]
    program("recommend", "-c", document, "--output-dir", tmp_path / "b", *sets(slow))
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_the_function_raises_keyboard_interrupt(document, tmp_path):
    code = (f"import dynosim; dynosim.recommend({str(document)!r}, output_dir={str(tmp_path / 'a')!r},"
            f" overrides={ {**MANY, **SLOW}!r})")
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    wait_for_journal(process, tmp_path / "a", 3)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert (tmp_path / "a" / "recommendation.journal").exists()


def test_the_module_takes_the_flags_of_the_command(document, tmp_path):
    def both(*flags):
        ours = subprocess.run([sys.executable, "-m", "dynosim.recommend", *map(str, flags)],
                              capture_output=True, text=True)
        theirs = program("recommend", *flags, check=False)
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
        assert ours.stderr == theirs.stderr
        return ours
    out = ("--output-dir", tmp_path / "a", "--overwrite")
    assert both("-c", document, *out, "--format", "json", "--top", 2).returncode == 0
    assert both("-c", document, *out, "--report-html", tmp_path / "page.html").returncode == 0
    assert both("-c", tmp_path / "absent.yaml", *out).returncode == 2
    assert both("-c", document, *out, "--set", "optimization.strict_sla=true", "--set",
                "evaluation={sla: {ttft_ms: 0.5}}").returncode == 1
    wrong = subprocess.run([sys.executable, "-m", "dynosim.recommend", "-c", document, "--executor",
                            "spark"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "--executor: must be local or ray" in wrong.stderr


def test_the_name_stays_a_function_when_the_module_is_imported():
    code = "import dynosim, dynosim.recommend; assert callable(dynosim.recommend)"
    subprocess.run([sys.executable, "-c", code], check=True)


# The journal.

def test_spoilt_journals_are_refused_in_one_line(document, tmp_path):
    out = tmp_path / "a"
    killed(document, out, {**MANY, **SLOW}, after=4)
    journal = out / "recommendation.journal"
    whole = journal.read_bytes()
    head, first = whole.split(b"\n")[:2]
    result = json.loads(first)
    spoilt = [b"\0" * 100 + b"\n", head + b"\n{}\n", head + b"\n[1, 2]\n", head + b"\nnot json\n",
              b"{}\n", b"[]\n", head[: len(head) // 2] + b"\n"]
    for change in ({"trial": -1}, {"trial": 1.5}, {"trial": 1e300}, {"trial": None}, {"result": None},
                   {"result": {}}, {"result": {**result["result"], "score": None}},
                   {"result": {**result["result"], "objectives": {}}},
                   {"result": {**result["result"], "status": "splendid"}},
                   {"result": {**result["result"], "prediction_config": 7}}):
        spoilt.append(head + b"\n" + json.dumps({**result, **change}).encode() + b"\n")
    for content in spoilt:
        journal.write_bytes(content)
        done = program("recommend", "-c", document, "--output-dir", out, "--resume",
                       *sets({**MANY, **SLOW}), check=False)
        assert done.returncode == 2, content
        assert done.stderr.startswith("dynosim: error: --resume: "), done.stderr
        assert done.stderr.count("\n") == 1 and "--overwrite starts again" in done.stderr
        assert journal.read_bytes() == content


def test_a_journal_cut_or_changed_anywhere_never_crashes(document, tmp_path):
    out, expected = tmp_path / "a", tmp_path / "b"
    search = {**MANY, "traffic.stop.requests": 2000}
    program("recommend", "-c", document, "--output-dir", expected, *sets(search))
    killed(document, out, search, after=20)
    journal = out / "recommendation.journal"
    whole = journal.read_bytes()
    draw = random.Random(5)
    for turn in range(8):
        content = bytearray(whole[: draw.randrange(len(whole))])
        if turn % 2 and content:
            for _ in range(draw.randrange(1, 8)):
                content[draw.randrange(len(content))] = draw.randrange(256)
        journal.write_bytes(content)
        done = program("recommend", "-c", document, "--output-dir", out, "--resume", *sets(search),
                       check=False)
        assert done.returncode in (0, 2), (turn, done.stderr)
        if turn % 2 == 0:  # cut, which resumes to the same files
            assert done.returncode == 0 and files(out) == files(expected)
        for path in out.rglob("*.*"):
            path.unlink()


# Algorithm bayesian.

def bayesian(out, overrides=(), **more):
    pytest.importorskip("optuna")
    return dynosim.recommend(DOCUMENT, output_dir=out, overrides={**BAYESIAN, **dict(overrides)},
                             **more)


def test_bayesian_search_finds_the_best_of_many_with_few_trials(tmp_path):
    seen = []
    result = bayesian(tmp_path / "a", progress=lambda *counts: seen.append(counts))
    assert result.to_dict()["provenance"]["search_strategy"] == "bayesian"
    assert result.counts["evaluated"] <= 60 and seen[-1] == (60, 60)
    # Of 6400 points: all requests at once are done after a prefill of 1 ms and 3 decodes of 1 ms.
    assert result.ranking[0]["score"] == 40 * 4 / 0.004


def test_bayesian_search_is_the_same_again_and_on_one_core(tmp_path):
    bayesian(tmp_path / "a")
    bayesian(tmp_path / "b", {"optimizer": {**BAYESIAN["optimizer"], "parallelism": 1}})
    assert files(tmp_path / "a") == files(tmp_path / "b")
    other = bayesian(tmp_path / "c", {"optimizer": {**BAYESIAN["optimizer"], "seed": 4}})
    assert [c["config"] for c in other.candidates] != \
        [c["config"] for c in dynosim.Recommendation(tmp_path / "a").candidates]


def test_a_killed_bayesian_search_goes_on_to_the_same_result(document, tmp_path):
    slow = {**BAYESIAN, **SLOW}
    bayesian(tmp_path / "a", slow)
    killed(document, tmp_path / "b", slow, after=25)
    assert not (tmp_path / "b" / "recommendation.json").exists()
    process = start(document, tmp_path / "b", slow, "--resume")
    assert process.communicate(timeout=120)[0].startswith("AISimulate recommendations")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_bayesian_search_ends_when_every_point_is_known(tmp_path):
    result = bayesian(tmp_path / "a", {
        "traffic.load.concurrency": {"choices": [1, 2, 3]},
        "engine.workers.aggregated.scheduler.max_sequences": 256, "traffic.stop.requests": 60})
    assert result.counts["evaluated"] <= 6
    assert result.ranking[0]["score"] == 3000.0


def test_bayesian_pareto_search_has_both_topologies_and_infeasible_candidates(tmp_path):
    pytest.importorskip("optuna")
    result = dynosim.recommend(ROOT / "examples" / "recommend.yaml", output_dir=tmp_path / "a",
                               overrides={"optimization.target": "pareto", "optimizer":
                                          {"algorithm": "bayesian", "max_trials": 48},
                                          "engine.mode": {"choices": ["aggregated",
                                                                      "disaggregated"]},
                                          "engine.workers.aggregated.parallelism": {
                                              "tensor": {"choices": [1, 2, 4, 16]}},
                                          "traffic.stop": {"requests": 20}})
    modes = {c["prediction_config"]["engine"]["mode"] for c in result.candidates}
    assert modes == {"aggregated", "disaggregated"}
    assert result.ranking and result.counts["infeasible"] > 0


def test_the_program_says_where_a_bayesian_search_runs(document, tmp_path):
    done = program("recommend", "-c", document, "--output-dir", tmp_path / "a",
                   "--set", "optimizer.max_trials=3", check=False)
    assert done.returncode == 2
    assert "needs the Python package" in done.stderr
    assert f"python3 -m dynosim.recommend -c {document}, or --set" in done.stderr
    assert not (tmp_path / "a").exists()


# On a cluster.

@pytest.fixture(scope="module")
def cluster():
    """One machine. Ray gives its own processes half a minute to start, too little on a busy one."""
    ray = pytest.importorskip("ray")
    for _ in range(3):
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error",
                     object_store_memory=80 * 2**20)
            break
        except Exception as error:  # Ray raises no narrower one.
            ray.shutdown()
            if "timed out during startup" not in str(error):
                raise
    else:
        pytest.skip("Ray does not start within its half minute, three times")
    yield
    ray.shutdown()


def test_a_cluster_gives_the_result_of_one_machine(cluster, document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    dynosim.recommend("document.yaml", output_dir="a", overrides=MANY, executor="ray",
                      progress=lambda *counts: seen.append(counts))
    dynosim.recommend("document.yaml", output_dir="b", overrides=MANY)
    assert files("a") == files("b")
    assert seen == [(done, 120) for done in range(1, 121)]


def test_a_cluster_runs_bayesian_searches_and_goes_on(cluster, document, tmp_path):
    bayesian(tmp_path / "a")
    def stop(done, total):
        if done >= 20:
            raise LookupError
    with pytest.raises(LookupError):
        bayesian(tmp_path / "b", executor="ray", progress=stop)
    bayesian(tmp_path / "b", executor="ray", resume=True)
    assert files(tmp_path / "a") == files(tmp_path / "b")
