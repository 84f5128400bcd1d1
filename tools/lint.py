#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on every translation unit that changed since it last passed.

Usage: lint.py BUILD_DIR [--tool PATH] [--analyze] [--jobs N] [PATH_PREFIX...]
Units are those of the build: several files at a time in a unity build, which is five times as fast,
one by one in another. A unit that passed is remembered under a hash of every project file it
reaches, of its compile command, of .clang-tidy and of this script, so a second run costs almost
nothing. The memory is $DYNO_TIDY_CACHE, by default dynosim/tidy in the user's cache folder.
Prefixes such as src/kv restrict the run. Exit code 1 if any unit has a finding.
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
# The commands are those of g++; clang's -Wconversion covers signs, g++'s does not, gtest's macros count
# with __COUNTER__, and the library's headers use what the library deprecates.
ARGS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-sign-conversion",
        "--extra-arg=-Wno-c2y-extensions", "--extra-arg=-Wno-deprecated-declarations"]
# Path analysis costs five times as much as all other checks together.
NO_PATHS = "-clang-analyzer-*"
# A file among others may use their includes.
NO_INCLUDES = "-misc-include-cleaner"
# Test macros expand to long functions; tests run commands, and read numbers that they wrote.
TEST_CHECKS = [NO_PATHS, "-readability-function-size", "-readability-function-cognitive-complexity",
               "-bugprone-command-processor", "-bugprone-unchecked-string-to-number-conversion"]


def reached(path, seen):
    """The file and every project file it includes, directly or not."""
    if path in seen:
        return
    seen.add(path)
    for used in re.findall(r'^\s*#include "(.*)"', path.read_text(), re.M):
        for base in (ROOT / "src", ROOT / "tests", path.parent):
            if (base / used).is_file():
                reached((base / used).resolve(), seen)
                break


def members(unit):
    """The project's files that are compiled as this unit."""
    if unit.is_relative_to(ROOT) and unit.relative_to(ROOT).parts[0] in FOLDERS:
        return [unit]
    included = [pathlib.Path(p) for p in re.findall(r'^#include "(/.*)"', unit.read_text(), re.M)]
    return [p for p in included if p.is_relative_to(ROOT) and p.relative_to(ROOT).parts[0] in FOLDERS]


def command(unit, files, tool, analyze, build):
    is_test = any(f.name.endswith("_test.cc") or f.relative_to(ROOT).parts[0] != "src" for f in files)
    without = TEST_CHECKS if is_test else [] if analyze else [NO_PATHS]
    if files != [unit]:
        without = [*without, NO_INCLUDES]
    args = [tool, *ARGS, *(["--checks=" + ",".join(without)] if without else []), str(unit)]
    # Fuzz targets belong to another preset; they need no more than the include root.
    return args + (["--", "-std=c++23", f"-I{ROOT}/src"] if unit.parent == ROOT / "fuzz" else ["-p", build])


def key(files, flags, common):
    digest = hashlib.sha256(common)
    digest.update(flags.replace(str(ROOT), "@").encode())
    seen = set()
    for file in files:
        reached(file, seen)
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
    a = ap.parse_intermixed_args()

    cache = pathlib.Path(os.environ.get("DYNO_TIDY_CACHE") or pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dynosim" / "tidy")
    cache.mkdir(parents=True, exist_ok=True)
    common = subprocess.run([a.tool, "--version"], capture_output=True, check=True).stdout
    common += b"analyze" if a.analyze else b"fast"
    common += (ROOT / ".clang-tidy").read_bytes() + pathlib.Path(__file__).read_bytes()

    units = {p: ([p], "") for p in ROOT.glob("fuzz/*.cc")}
    with open(os.path.join(a.build, "compile_commands.json")) as f:
        for entry in json.load(f):
            path = pathlib.Path(entry["file"])
            if files := members(path):
                units[path] = (files, entry["command"].replace(os.path.abspath(a.build), "@build"))
    if a.prefix:
        wanted = [os.path.abspath(p) for p in a.prefix]
        units = {p: u for p, u in units.items() if any(str(f).startswith(w) for w in wanted for f in u[0])}

    keys = {path: key(files, flags, common) for path, (files, flags) in units.items()}
    todo = sorted(path for path in units if not (cache / keys[path]).exists())
    failed = 0

    def check(path):
        line = command(path, units[path][0], a.tool, a.analyze, a.build)
        return path, subprocess.run(line, capture_output=True, text=True, cwd=ROOT)

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
