# SPDX-License-Identifier: Apache-2.0
"""The stubs: type checkers read them, they say what the package does, and the documents keep them."""
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("mypy")
from test_documents import PYTHON_EXAMPLES

HERE = pathlib.Path(__file__).parent
RIGHT = """
import dynosim
from typing_extensions import assert_type

report = dynosim.run_trace_replay(["a", "b"], trace_format="dynamo", capture_per_request=True)
assert_type(report, dynosim.ReplayReport)
online = dynosim.run_synthetic_trace_replay(1, 2, 3, replay_concurrency=1, replay_mode="online")
assert_type(online["mean_ttft_ms"], object)  # error: [assert-type]
online.clear()
report.frame().describe()
found = dynosim.recommend({"engine": {}}, progress=lambda done, total: print(done / total))
assert_type(found.paths[0].name, str)
"""
WRONG = """
import dynosim

dynosim.run_synthetic_trace_replay("1", 2, 3)  # error: [call-overload]
dynosim.run_trace_replay("a", trace_format="moonshot")  # error: [call-overload]
dynosim.run_trace_replay("a", replay_mode="online", capture_per_request=True)  # error: [call-overload]
dynosim.run_trace_replay("a", replay_mode="online").table()  # error: [attr-defined]
dynosim.predict("a", stak="engine")  # error: [call-arg]
dynosim.estimate("prefill", system="h200_sxm", backend="vllm")  # error: [call-arg]
dynosim.recommend("a", executor="spark")  # error: [arg-type]
dynosim.TelemetryOptions(callback=3)  # error: [arg-type]
"""


def mypy(code, folder, *flags):
    """Line numbers and kinds of what a strict type checker finds in a file."""
    (folder / "code.py").write_text(code)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", *flags,
                           "code.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return re.findall(r"^code\.py:(\d+): error: .*?(\[[a-z-]+\])$", done.stdout, re.M), done.stdout


def marked(code):
    return [(str(number), found[1]) for number, line in enumerate(code.splitlines(), 1)
            if (found := re.search(r"# error: (\[.*\])", line))]


def test_a_type_checker_takes_right_calls_and_refuses_wrong_ones(tmp_path):
    code = RIGHT + WRONG
    found, text = mypy(code, tmp_path)
    assert found == marked(code), text


def test_the_examples_of_the_documents_are_typed(tmp_path):
    code = "\n".join(f"def example_{number}() -> None:\n" + re.sub(r"^(?=.)", "    ", example, flags=re.M)
                     for number, example in enumerate(PYTHON_EXAMPLES.values()))
    # They say by their arguments that what may be None is there, and leave their functions untyped.
    found, text = mypy(code, tmp_path, "--no-strict-optional", "--allow-untyped-defs")
    assert found == [], text


def test_the_stubs_say_what_the_package_has():
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", HERE / "stubtest.ini",
                           "--allowlist", HERE / "stubtest_allowed.txt", "--ignore-unused-allowlist",
                           "dynosim"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
