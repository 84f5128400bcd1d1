#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the project rules that no compiler checks; prints one line per breach, exit code 1 if any.

Include direction between modules, patterns that break determinism or ownership, licence line,
include guard, own header first, heavy headers outside of .cc files, and file length.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORDER = ["base", "config", "workload", "kv", "perfdb", "timing", "engine", "router", "scenario",
         "sim", "report", "search", "live", "cli", "python"]
LINES_MAX = 800
SPDX = "SPDX-License-Identifier: Apache-2.0"

# (pattern, modules where it is allowed, why). Matched in src/ without comments and literals.
BANNED = [
    (r"steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday",
     {"search", "live", "cli", "python"}, "time is an argument"),
    (r"std::(jthread|thread|async|mutex|atomic)\b", {"search", "live", "cli", "python"},
     "the core is single-threaded"),
    (r"std::\w+_distribution|std::random_device|std::mt19937|\bs?rand\(", set(),
     "draws come from base/random"),
    (r"std::(reduce|transform_reduce)\b|\blong double\b", set(),
     "sums run left to right in double"),
    (r"std::unordered_\w+|absl::(flat|node)_hash_\w+", {"base"},
     "hash maps come from base/flat_map.h, which does not iterate"),
    (r"\bthrow\b", set(), "expected failures are Result, mistakes are DYNO_CHECK"),
    (r"\bnew\b(?!\s*\()|\bdelete\s*(\[\])?\s+?[\w(*]", set(), "values own their memory"),
    (r"std::shared_ptr", {"timing", "engine", "live"}, "ownership is unique"),
    (r"\bfor\s*\([^;)]*\bdouble\b[^;)]*;", set(), "loops count in integers"),
]
# (header, files that may include it)
HEAVY = [
    (r"nlohmann/(?!json_fwd)", r"src/base/json\w*\.cc"),
    (r"CLI/", r"src/cli/.*\.cc"),
    (r"yaml-cpp/", r"src/config/.*\.cc"),
    (r"spdlog/", r"src/base/.*\.cc"),
    (r"simdjson", r".*\.cc"),
    (r"boost/(asio|beast)", r"src/live/.*\.cc"),
    (r"regex>|iostream>", r"(?!)"),
]
NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'",
    re.S)


def blank(match):
    """Keeps the line count."""
    return "\n" * match.group().count("\n") or " "


def cpp_breaches(path, text):
    name = path.relative_to(ROOT).as_posix()
    if not text.startswith("// " + SPDX):
        yield f"{name}:1: the first line must be // {SPDX}"
    if path.suffix == ".h" and not re.search(r"^#pragma once$", text, re.M):
        yield f"{name}:1: a header needs #pragma once"
    if text.count("\n") > LINES_MAX:
        yield f"{name}: {text.count(chr(10))} lines, {LINES_MAX} at most"
    includes = [(text.count("\n", 0, m.start()) + 1, m.group(1))
                for m in re.finditer(r"^#include ([<\"].*)[>\"]\s*(?://.*)?$", text, re.M)]
    for line, used in includes:
        for header, allowed in HEAVY:
            if re.match(r"[<\"](?:" + header + ")", used + ">") and not re.fullmatch(allowed, name):
                yield f"{name}:{line}: {used[1:]} may not be included here"
    if path.suffix == ".cc" and name.startswith("src/"):
        own = re.sub(r"(_test)?\.cc$", ".h", name)
        if (ROOT / own).exists() and (not includes or includes[0][1] != '"' + own[len("src/"):]):
            yield f"{name}: the first include must be {own[len('src/'):]}"
    for m in re.finditer(r"\b(TODO|FIXME|XXX)\b", text):
        yield f"{name}:{text.count(chr(10), 0, m.start()) + 1}: {m.group()} is no way to leave code"
    if not name.startswith("src/"):
        return
    module = path.relative_to(ROOT).parts[1]
    if module not in ORDER:
        yield f"{name}: {module} is not a module; see docs/architecture.md"
        return
    for line, used in includes:
        target = used[1:].split("/")[0]
        if used[0] == '"' and target not in ORDER:
            yield f"{name}:{line}: \"{used[1:]}\" is not rooted at src/"
        elif used[0] == '"' and ORDER.index(target) > ORDER.index(module):
            yield f"{name}:{line}: {module} may not include {target}"
    code = NOT_CODE.sub(blank, text)
    for pattern, allowed, why in BANNED:
        if module in allowed:
            continue
        for m in re.finditer(pattern, code):
            yield f"{name}:{code.count(chr(10), 0, m.start()) + 1}: '{m.group().strip()}': {why}"


def script_breaches(path, text):
    if SPDX not in "\n".join(text.split("\n")[:2]):
        yield f"{path.relative_to(ROOT).as_posix()}:1: SPDX line missing"


def main():
    bad = []
    cpp = [p for folder in ("src", "tests", "bench", "fuzz") for p in (ROOT / folder).rglob("*")
           if p.suffix in (".h", ".cc") and p.is_file()]
    for path in sorted(cpp):
        bad += cpp_breaches(path, path.read_text())
    scripts = [ROOT / "CMakeLists.txt", ROOT / "Makefile", *ROOT.glob("cmake/*.cmake"),
               *ROOT.glob("tools/*"), *ROOT.glob("scripts/*"), *ROOT.glob(".ci/*"),
               *ROOT.glob("tests/**/*.py")]
    for path in sorted(p for p in scripts if p.is_file()):
        bad += script_breaches(path, path.read_text())
    print("\n".join(bad) if bad else f"tidy: {len(cpp)} files keep the rules")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
