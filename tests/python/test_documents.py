# SPDX-License-Identifier: Apache-2.0
"""Runs every Python example of the documents; tests/docs/run has their commands."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

import dynosim
from surfaces import PROGRAM, ROOT


def python_examples():
    """Every fenced block of Python, named by its page and number."""
    pages = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {f"{page.relative_to(ROOT)}:{number}": block for page in pages for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S), 1)}


PYTHON_EXAMPLES = python_examples()
assert {"README.md:1", "docs/python.md:1", "docs/capacity.md:1"} <= set(PYTHON_EXAMPLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that looks like the repository after `make build`, so that nothing is left behind."""
    path = tmp_path_factory.mktemp("repository")
    (path / "build").mkdir()
    os.symlink(ROOT / "examples", path / "examples")
    program = path / "build" / "dynosim"
    program.write_text("#!/bin/sh\nexec " + " ".join(PROGRAM) + ' "$@"\n')
    program.chmod(0o755)
    return path


@pytest.mark.parametrize("name", PYTHON_EXAMPLES)
def test_python_examples(name, folder):
    done = subprocess.run([sys.executable, "-c", PYTHON_EXAMPLES[name]], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_notebook_runs(folder):
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "examples/notebook.py"], cwd=folder, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert "kv_router    6 GPUs: p99 time to first token" in done.stdout


PAGES_WITH_COMMANDS = [path for path in sorted((ROOT / "docs").rglob("*.md"))
                       if "<!-- test: needs module" in path.read_text()]


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda path: path.name)
def test_commands_of_the_package(page, folder):
    """Of pages that show modules of the package, with this interpreter as python3."""
    python = str(pathlib.Path(sys.executable).parent)
    done = subprocess.run([ROOT / "tests/docs/run", "--bin", folder / "build/dynosim", page],
                          env={**os.environ, "PATH": python + os.pathsep + os.environ["PATH"]},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "needs module dynosim" not in done.stdout


def fields(value):
    """Names of all members, but not of those whose members another page names."""
    if isinstance(value, list):
        for element in value:
            yield from fields(element)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            if name not in ("candidates", "ttft_parts_ms", "e2e_parts_ms"):
                yield from fields(member)


def test_the_page_of_fields_has_every_field_of_a_report():
    named = set(re.findall(r"`([^`]*)`", (ROOT / "docs/report_fields.md").read_text()))
    load = {"input_tokens": 300, "output_tokens": 20, "request_count": 20, "replay_concurrency": 4,
            "capture_per_request": True}
    telemetry = dynosim.TelemetryOptions(sample_interval_ms=50.0)
    engine = {"engine": {"num_gpu_blocks": 60, "block_size": 16}}
    for more in ({"num_workers": 2, "router_mode": "kv_router", "capture_routing": True,
                  "sla_ttft_ms": 100.0, "telemetry_options": telemetry, "turns_per_session": 2},
                 {"input_tokens": 3000, "extra_engine_args": engine},
                 {"prefill_engine_args": {"engine": {"worker_type": "prefill"}},
                  "decode_engine_args": {"engine": {"worker_type": "decode"}}}):
        report = dynosim.run_synthetic_trace_replay(**{**load, **more})
        distributions = {name.removeprefix("mean_") for name in report.summary}
        seen = {name for name in fields(report.to_dict()) if name.partition("_")[2] not in distributions}
        assert report.per_request
        assert seen - named <= {"summary", "planner", "sample_interval_ms", "samples"}
