#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run `predict` on YAML configurations and compare prediction.json with the recorded reference result.

Usage: compare_predict.py --bin "dynosim" --expected DIR CONFIG.yaml... [-v]
Closing line: N exact, N close, N wrong, N failed, of N. A configuration that the reference refuses must be refused
with exit code 1 or 2 and one clear line that names the model, system or limit. Prints our total wall time and the reference's.
"""
import argparse
import gzip
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

from compare import GAVE_UP, VOLATILE, diff

SKIP = VOLATILE | {"kv_cache_precision", "prediction_provenance", "power_w", "power_coverage", "power_diagnostics"}  # provenance: our own wording


def run(path, expected, binary, timeout):
    name = os.path.splitext(os.path.basename(path))[0]
    with gzip.open(os.path.join(expected, name + ".json.gz")) as f:
        want = json.load(f)
    with tempfile.TemporaryDirectory() as tmp:
        t = time.perf_counter()
        try:
            p = subprocess.run(shlex.split(binary) + ["predict", "-c", path, "--output-dir", tmp, "--overwrite"],
                               capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return name, "failed", [("", "an answer", f"nothing after {timeout} s", "wrong")], timeout, want["reference_wall_s"]
        dt = time.perf_counter() - t
        if want["exit"]:
            good = p.returncode in (1, 2) and p.stderr.strip()
            if any(x in want["error"] for x in GAVE_UP):  # the reference gives up; ours ends with those requests rejected
                good = p.returncode == 0 and json.load(open(os.path.join(tmp, "prediction.json"))).get("rejected_requests", 0) > 0
            if "download" in want["error"] and p.returncode == 0:  # ours may serve a packaged configuration
                good = True
            d = [] if good else [("exit", "a refusal: " + want["error"][-160:], f"exit {p.returncode}", "wrong")]
            return name, "exact" if good else "wrong", d, dt, want["reference_wall_s"]
        file = os.path.join(tmp, "prediction.json")
        if p.returncode or not os.path.exists(file):
            return name, "failed", [("", "prediction.json", f"exit {p.returncode}: {p.stderr[-200:]}", "wrong")], dt, want["reference_wall_s"]
        got = json.load(open(file))
    d = diff({k: v for k, v in want["prediction"].items() if k not in SKIP}, got)
    how = "exact" if not d else "wrong" if any(x[3] == "wrong" for x in d) else "close"
    return name, how, d, dt, want["reference_wall_s"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("configs", nargs="+")
    ap.add_argument("--bin", required=True)
    ap.add_argument("--expected", required=True)
    ap.add_argument("--timeout", type=float, default=60)
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    count, ours, theirs = dict.fromkeys(("exact", "close", "wrong", "failed"), 0), 0.0, 0.0
    for path in a.configs:
        name, how, d, dt, ref = run(path, a.expected, a.bin, a.timeout)
        count[how] += 1
        ours, theirs = ours + dt, theirs + ref
        if how not in ("exact", "close") or (a.v and d):
            print(f"{how:6s} {name}  ({len(d)} fields)")
            for p, want, got, _ in d[: 12 if a.v else 3]:
                print(f"         {p.lstrip('.')}: want {want!r}, got {got!r}")
    print(f"wall time: ours {ours:.1f} s, reference {theirs:.1f} s (recorded on another day)")
    print(", ".join(f"{v} {k}" for k, v in count.items()) + f", of {len(a.configs)}")
    sys.exit(bool(count["wrong"] or count["failed"]))


if __name__ == "__main__":
    main()
