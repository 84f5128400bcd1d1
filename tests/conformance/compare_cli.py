#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `predict` as the recorded command lines do and compares exit code and summary.

Usage: compare_cli.py --bin BIN CASES.json [-v]
A run that ends well must give every recorded number of the summary; one that fails must exit with
the recorded code and print one line on stderr. Runs of other commands are counted and left out.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from compare import diff


def run(binary, case, folder):
    with tempfile.TemporaryDirectory() as tmp:
        command = [binary, "predict", "-c", case["config"], "--output-dir", os.path.join(tmp, "out"), "--format", "json"]
        for assignment in case["set"]:
            command += ["--set", assignment]
        p = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
        if p.returncode != case["exit_code"]:
            return [f"exit {p.returncode}, want {case['exit_code']}: {p.stderr.strip()[-200:]}"]
        if case["exit_code"]:
            return [] if p.stderr.count("\n") == 1 else [f"want one line on stderr, got {p.stderr!r}"]
        written = json.loads(pathlib.Path(tmp, "out", "prediction.json").read_text())
        printed = json.loads(p.stdout)
    return [f"{path.lstrip('.')}: want {want!r}, got {got!r}"
            for summary in (written, printed)
            for path, want, got, how in diff(case["summary"], summary) if how == "wrong"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("cases")
    ap.add_argument("--bin", required=True)
    ap.add_argument("-v", action="store_true", help="show what ours says to refused runs")
    a = ap.parse_args()
    folder = pathlib.Path(a.cases).resolve().parent
    cases = json.loads(pathlib.Path(a.cases).read_text())
    chosen = [c for c in cases if c["command"] == "predict"]
    wrong = 0
    for case in chosen:
        problems = run(os.path.abspath(a.bin), case, folder)
        wrong += bool(problems)
        if problems:
            print(f"wrong  {case['name']}")
            for problem in problems[:5]:
                print(f"         {problem}")
    print(f"{len(chosen) - wrong} exact, {wrong} wrong, {len(cases) - len(chosen)} of other commands, of {len(cases)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
