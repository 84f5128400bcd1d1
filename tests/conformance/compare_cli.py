#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `predict` and `recommend` as the recorded command lines do and compares exit code and result.

Usage: compare_cli.py --bin BIN CASES.json [-v]
A prediction that ends well must give every recorded number of the summary, a recommendation every
rank, score and number of GPUs, with documents that `predict` accepts. A run that fails must exit
with the recorded code and print one line on stderr, after what a search counted. Runs of other
commands are counted and left out.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from compare import diff


def wrong(want, got):
    return [f"{path.lstrip('.')}: want {w!r}, got {g!r}" for path, w, g, how in diff(want, got) if how == "wrong"]


def predicted(binary, case, folder, out, printed):
    written = json.loads((out / "prediction.json").read_text())
    return wrong(case["summary"], written) + wrong(case["summary"], printed)


def recommended(binary, case, folder, out, printed):
    rows = [{k: row[k] for k in ("rank", "score", "objectives", "used_gpus")} for row in printed]
    problems = [] if len(rows) == len(case["rows"]) else [f"want {len(case['rows'])} rows, got {len(rows)}"]
    problems += wrong({"rows": case["rows"]}, {"rows": rows})
    for row in printed:
        p = subprocess.run([binary, "predict", "-c", row["config_path"], "--output-dir", str(out / "check"), "--overwrite"],
                           cwd=folder, capture_output=True, text=True, timeout=60)
        problems += [f"{row['config_path']}: {p.stderr.strip()}"] if p.returncode else []
    return problems


COMMANDS = {"predict": predicted, "recommend": recommended}


def run(binary, case, folder):
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp, "out")
        command = [binary, case["command"], "-c", case["config"], "--output-dir", str(out), "--format", "json"]
        for assignment in case["set"]:
            command += ["--set", assignment]
        p = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
        if p.returncode != case["exit_code"]:
            return [f"exit {p.returncode}, want {case['exit_code']}: {p.stderr.strip()[-200:]}"]
        if case["exit_code"]:
            return [] if p.stderr.count("dynosim: error:") == 1 else [f"want one error on stderr, got {p.stderr!r}"]
        return COMMANDS[case["command"]](binary, case, folder, out, json.loads(p.stdout))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("cases")
    ap.add_argument("--bin", required=True)
    ap.add_argument("-v", action="store_true", help="show what ours says to refused runs")
    a = ap.parse_args()
    folder = pathlib.Path(a.cases).resolve().parent
    cases = json.loads(pathlib.Path(a.cases).read_text())
    chosen = [c for c in cases if c["command"] in COMMANDS]
    failed = 0
    for case in chosen:
        problems = run(os.path.abspath(a.bin), case, folder)
        failed += bool(problems)
        if problems:
            print(f"wrong  {case['name']}")
            for problem in problems[:5]:
                print(f"         {problem}")
    print(f"{len(chosen) - failed} exact, {failed} wrong, {len(cases) - len(chosen)} of other commands, of {len(cases)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
