#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on every translation unit that changed since it last passed.

Usage: lint.py BUILD_DIR [--tool PATH] [--analyze] [--jobs N] [PATH_PREFIX...]
A unit that passed is remembered under a hash of its text, of every project header it reaches, of
its compile command, of .clang-tidy and of this script, so a second run costs almost nothing. The
memory is $DYNO_TIDY_CACHE, by default dynosim/tidy in the user's cache folder. Prefixes such as
src/kv restrict the run. Exit code 1 if any unit has a finding.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "bench", "fuzz")
# The commands are those of g++; clang's -Wconversion covers signs, g++'s does not, and gtest's macros
# count with __COUNTER__.
ARGS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-sign-conversion",
        "--extra-arg=-Wno-c2y-extensions"]
# Path analysis costs five times as much as all other checks together.
FAST_ARGS = ["--checks=-clang-analyzer-*"]
# Test macros expand to long functions, and an access to an empty optional fails the test anyway.
TEST_ARGS = ["--checks=-clang-analyzer-*,-readability-function-size,"
             "-readability-function-cognitive-complexity,-bugprone-unchecked-optional-access"]


def reached(path, seen):
    """The unit and every project header it includes, directly or not."""
    if path in seen:
        return
    seen.add(path)
    for used in re.findall(r'^\s*#include "(.*)"', path.read_text(), re.M):
        for base in (ROOT / "src", path.parent):
            if (base / used).is_file():
                reached((base / used).resolve(), seen)
                break


def is_test(path):
    return path.name.endswith("_test.cc") or path.relative_to(ROOT).parts[0] != "src"


def command(path, tool, analyze, build):
    depth = TEST_ARGS if is_test(path) else [] if analyze else FAST_ARGS
    args = [tool, *ARGS, *depth, str(path)]
    # Fuzz targets belong to another preset; they need no more than the include root.
    return args + (["--", "-std=c++23", f"-I{ROOT}/src"] if path.parent == ROOT / "fuzz" else ["-p", build])


def key(path, flags, common):
    digest = hashlib.sha256(common)
    digest.update(flags.replace(str(ROOT), "@").encode())
    seen = set()
    reached(path, seen)
    for file in sorted(seen):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", help="folder with compile_commands.json")
    ap.add_argument("prefix", nargs="*", help="only units below these paths")
    ap.add_argument("--tool", default="clang-tidy", help="the clang-tidy to run")
    ap.add_argument("--analyze", action="store_true", help="path analysis of src/ too (slow)")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    a = ap.parse_args()

    cache = pathlib.Path(os.environ.get("DYNO_TIDY_CACHE") or pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dynosim" / "tidy")
    cache.mkdir(parents=True, exist_ok=True)
    common = subprocess.run([a.tool, "--version"], capture_output=True, check=True).stdout
    common += b"analyze" if a.analyze else b"fast"
    common += (ROOT / ".clang-tidy").read_bytes() + pathlib.Path(__file__).read_bytes()

    units = {ROOT / "fuzz" / p.name: "" for p in ROOT.glob("fuzz/*.cc")}
    with open(os.path.join(a.build, "compile_commands.json")) as f:
        for entry in json.load(f):
            path = pathlib.Path(entry["file"])
            if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS:
                units[path] = entry["command"].replace(os.path.abspath(a.build), "@build")
    if a.prefix:
        wanted = [os.path.abspath(p) for p in a.prefix]
        units = {p: c for p, c in units.items() if any(str(p).startswith(w) for w in wanted)}

    keys = {path: key(path, flags, common) for path, flags in units.items()}
    todo = sorted(path for path in units if not (cache / keys[path]).exists())
    failed = 0

    def check(path):
        return path, subprocess.run(command(path, a.tool, a.analyze, a.build), capture_output=True, text=True, cwd=ROOT)

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(check, p) for p in todo]):
            path, result = future.result()
            if result.returncode == 0:
                (cache / keys[path]).touch()
            else:
                failed += 1
                print(result.stdout or result.stderr, end="", flush=True)
    print(f"clang-tidy: {len(units)} units, {len(todo)} checked, {failed} with findings")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
