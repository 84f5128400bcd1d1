#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares answers of `dynosim estimate --queries` with recorded ones.

Usage: compare_estimates.py --bin BIN [-v] FILE.jsonl.gz...
Each line of a file has an `id`, a `query` as the program reads it, and what the reference answers:
`ms` of a pass (equal to 1e-9 relative), `num_gpu_blocks` (equal), `operations` (equal field by
field), or `refused`. Exit code 1 if an answer differs.
"""
import argparse
import collections
import gzip
import json
import math
import pathlib
import subprocess
import sys
import tempfile


def right(want, got):
    if want.get("refused"):
        return bool(got.get("error"))
    if "ms" in want:
        return "ms" in got and math.isclose(want["ms"], got["ms"], rel_tol=1e-9)
    if "num_gpu_blocks" in want:
        return want["num_gpu_blocks"] == got.get("num_gpu_blocks")
    lists = want["operations"]
    return all(lists[name] == got.get(name) for name in lists)


def answers(binary, lines):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(line["query"]) + "\n" for line in lines)
        file.flush()
        done = subprocess.run([binary, "estimate", "--queries", file.name],
                              capture_output=True, text=True, check=False)
    rows = [json.loads(row) for row in done.stdout.splitlines()]
    if len(rows) != len(lines):
        sys.exit(f"{len(rows)} answers to {len(lines)} queries: {done.stderr.strip()}")
    return rows


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("files", nargs="+", type=pathlib.Path)
    ap.add_argument("--bin", required=True)
    ap.add_argument("-v", action="store_true", help="shows every difference")
    a = ap.parse_args()
    failed = False
    for path in a.files:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        count = collections.Counter()
        for want, got in zip(lines, answers(a.bin, lines)):
            good = right(want, got)
            count[good] += 1
            if not good and (a.v or count[False] <= 5):
                query = {k: v for k, v in want["query"].items() if k not in ("model", "parallel")}
                print(f"wrong {want['id']} {json.dumps(query)}: "
                      f"{json.dumps({k: v for k, v in got.items() if not isinstance(v, list)})}")
        failed |= count[False] > 0
        print(f"estimates {path.name.split('.')[0]}: {count[True]} right, {count[False]} wrong")
    sys.exit(failed)


if __name__ == "__main__":
    main()
