# SPDX-License-Identifier: Apache-2.0
"""The program for tests, and summaries without what a machine's speed decides."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# DYNOSIM_PROGRAM names another program than the one of the package.
PROGRAM = os.environ.get("DYNOSIM_PROGRAM", "").split() or [sys.executable, "-m", "dynosim"]
OF_THE_MACHINE = ("wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s",
                  "runtime")
APART = ("configuration", "coverage", "per_request", "telemetry")


def program(*arguments, check=True, **options):
    done = subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)
    assert not check or done.returncode == 0, done.stderr
    return done


def summary_bytes(summary):
    """The bytes of a summary, for comparison."""
    kept = {k: v for k, v in summary.items() if k not in OF_THE_MACHINE and k not in APART}
    return json.dumps(kept, sort_keys=True).encode()


def file_lines(path):
    """The lines of a report file that do not depend on the machine."""
    lines, inside_runtime = [], False
    for line in pathlib.Path(path).read_bytes().splitlines():
        inside_runtime = inside_runtime or line.startswith(b'  "runtime"')
        if not inside_runtime and not any(f'"{name}"'.encode() in line for name in OF_THE_MACHINE):
            lines.append(line)
    return lines
