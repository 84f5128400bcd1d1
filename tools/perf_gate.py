#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the instruction counts of three fixed runs.

Seconds depend on the machine and its load; the instructions of one program on one input hardly do. A count
that grows by more than TOLERANCE fails; one that shrank by as much asks for an update of the record.
Usage: tools/perf_gate.py [--bin build/dynosim] [--update]
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "instruction_counts.json"
TOLERANCE = 0.05
VLLM = ["--extra-engine-args", '{"engine":{"backend":"vllm"}}']
RUNS = {
    "conversation trace, 4 vLLM workers": [
        "examples/conversation_trace.jsonl.zst", "--num-workers", "4", *VLLM],
    "synthetic 10,000 x 1024/128, concurrency 64": [
        "--input-tokens", "1024", "--output-tokens", "128", "--request-count", "10000",
        "--replay-concurrency", "64", *VLLM],
    "speculative 2,000 x 1024/128, concurrency 64": [
        "--input-tokens", "1024", "--output-tokens", "128", "--request-count", "2000",
        "--replay-concurrency", "64", "--extra-engine-args", '{"engine":{"backend":"vllm","aic_nextn":2}}'],
}


def count(binary, arguments):
    """Instructions of one run, as valgrind counts them."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", binary, "replay",
                   *arguments, "--report-json", f"{folder}/report.json"]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"perf_gate: the run failed: {run.stderr[-400:]}")
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build" / "dynosim"))
    parser.add_argument("--update", action="store_true", help="write the counts of this build as the record")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.bin).resolve())
    counts = {name: count(binary, arguments) for name, arguments in RUNS.items()}
    if options.update:
        RECORD.write_text(json.dumps(counts, indent=2) + "\n")
    record = json.loads(RECORD.read_text())
    failed = 0
    for name, now in counts.items():
        change = now / record[name] - 1
        failed += change > TOLERANCE
        note = "too many" if change > TOLERANCE else "fewer: run with --update" if change < -TOLERANCE else "ok"
        print(f"{name}: {now / 1e6:.1f} M instructions, {100 * change:+.1f} % ({note})")
    print(f"{len(counts) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
