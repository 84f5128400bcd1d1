#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run conformance cases through the product's CLI and compare with recorded reference results.

Usage: compare.py --bin "dynosim" --expected DIR CASE.json... [-v] [--json FILE] [--jobs N]
Prints one line for each case that is not right and a closing line:
  N exact, N close, N refused, N wrong, N failed, of N
refused: the reference refuses the input and so do we, naming the same field or line. Router cases in which the reference picks
among equal targets at random run twice: freely (totals, two runs with the same bytes) and with the reference's placements
(--placements), which must then be exact and within our sets of minimum cost. Exit code 0 only when nothing is wrong or failed.
"""
import argparse, gzip, json, math, os, re, shlex, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

# Not part of the contract: machine time, and the reference's own row bookkeeping.
VOLATILE = {"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s", "uuid", "placement_replica_id",
            "pressure_record_ordinals", "graph_digest", "agentic_lifecycle_digest", "digest"}
REL, ABS = 1e-9, 1e-6
# The reference reads these percentiles off a sketch with a relative error of 0.001; ours are exact.
SKETCHED = re.compile(r"(median|p75|p90|p95|p99)_(itl_ms|output_token_throughput_per_user)$")
# The reference gives up on the whole run where one request can never be scheduled; ours must finish the others.
GAVE_UP = ("effect-free zero-duration pass", "hung", "crashed")


def argv(case, base, tmp):
    out = []
    if case["call"] == "trace":
        t = case["trace"]
        if isinstance(t, list):
            path = os.path.join(tmp, "trace.jsonl")
            with open(path, "w") as f:
                for row in t:
                    f.write((row if isinstance(row, str) else json.dumps(row)) + "\n")
        else:
            path = os.path.join(base, t)
        out.append(path)
    args = dict(case.get("args", {}))
    args.setdefault("capture_per_request", True)
    for key, value in args.items():
        if value is None or value is False:
            continue
        out.append("--" + key.replace("_", "-"))
        if value is not True:
            out.append(value if isinstance(value, str) else json.dumps(value))
    for key, flag in (("engine", "--extra-engine-args"), ("prefill_engine", "--prefill-engine-args"),
                      ("decode_engine", "--decode-engine-args"), ("router", "--router-config")):
        if case.get(key) is not None:
            out += [flag, json.dumps(case[key])]
    return out + ["--replay-mode", "offline", "--report-json", os.path.join(tmp, "report.json")]


def diff(want, got, path="", out=None):
    """Lists (path, want, got, how) for every leaf that differs; how is 'close' or 'wrong'."""
    out = [] if out is None else out
    if isinstance(want, dict):
        for k, v in want.items():
            if k not in VOLATILE:
                diff(v, got.get(k, "<missing>") if isinstance(got, dict) else "<missing>", f"{path}.{k}", out)
    elif isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            out.append((path, f"list of {len(want)}", f"list of {len(got)}" if isinstance(got, list) else got, "wrong"))
        else:
            for i, (w, g) in enumerate(zip(want, got)):
                diff(w, g, f"{path}[{i}]", out)
    elif isinstance(want, float) or (isinstance(want, int) and isinstance(got, float)):
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            out.append((path, want, got, "wrong"))
        elif SKETCHED.search(path) and math.isclose(want, got, rel_tol=1.1e-3, abs_tol=ABS):
            pass
        elif want != got and not (math.isnan(want) and math.isnan(got)):
            if re.search(r"(mean|std)_\w+$", path) and math.isclose(want, got, rel_tol=1e-12, abs_tol=1e-9):
                return out  # the reference sums these in random order
            near = math.isclose(want, got, rel_tol=REL, abs_tol=ABS)
            out.append((path, want, got, "close" if near else "wrong"))
    elif want != got or isinstance(want, bool) != isinstance(got, bool):
        out.append((path, want, got, "wrong"))
    return out


def words(error):
    """What a refusal must name: the line, and one of the fields or values that the reference names (- and _ are the same)."""
    error = re.sub(r"\S*/\S*", " ", error)  # paths differ
    line = re.search(r"line (\d+)", error)
    names = re.findall(r"[a-z]+(?:_[a-z0-9]+)+", error) + [a or b or c for a, b, c in re.findall(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`", error)]
    return line and line.group(1), {n.lower() for n in names if 2 < len(n) < 60}


def names_it(error, text):
    line, names = words(error)
    text = text.lower().replace("-", "_")
    return (not line or line in text) and (not names or any(n.replace("-", "_") in text for n in names))


def by_request(rows):
    """Rows as a sorted multiset: request ids are random in the reference, so identity is what happened to a request."""
    def key(r):
        n = lambda k: -1.0 if r.get(k) is None else round(float(r[k]), 5)
        return (n("arrival_time_ms"), r.get("request_id") or "", r.get("session_id") or "", n("turn_index"), n("input_length"), n("output_length"),
                n("first_admit_ms"), n("first_token_ms"), n("terminal_time_ms"), n("prefill_worker_idx"), n("decode_worker_idx"),
                n("reused_input_tokens"), n("admission_count"), n("ttst_ms"), n("requested_output_length"))
    return rows and sorted(rows, key=key)


def relabel(rows):
    """Equal-cost targets are picked at random in the reference: number targets per pool in order of first use instead."""
    rows = json.loads(json.dumps(rows or []))
    n = lambda r, k: -1.0 if r.get(k) is None else round(float(r[k]), 5)
    rows.sort(key=lambda r: tuple(n(r, k) for k in ("arrival_time_ms", "input_length", "output_length", "first_admit_ms",
                                                     "first_token_ms", "terminal_time_ms", "reused_input_tokens")))
    seen = {}
    for r in rows:
        for h in r.get("routing_history") or []:
            pool, target = h.get("pool"), h.pop("scheduler_id", None)
            h.pop("logical_worker_id", None), h.pop("dp_rank", None)
            h["target"] = seen.setdefault((pool, target), sum(p == pool for p, _ in seen))
        for key, pools in (("prefill_worker_idx", ("prefill",)), ("decode_worker_idx", ("decode", "agg"))):
            if r.get(key) is not None:
                r[key] = next((seen[p, r[key]] for p in pools if (p, r[key]) in seen), r[key])
    return rows


def band(case, rows, summary):
    """Quantities of one run against the range that 20 reference runs showed, widened by half of it."""
    shares = {}
    for r in rows:
        for h in r["routing_history"]:
            shares[h["pool"], h["scheduler_id"]] = shares.get((h["pool"], h["scheduler_id"]), 0) + 1
    total = sum(shares.values()) or 1
    history = [h for r in rows for h in r["routing_history"]]
    got = {"reused_input_tokens": sum(r["reused_input_tokens"] or 0 for r in rows),
           "overlap_regret_blocks": sum(h.get("overlap_regret_blocks") or 0 for h in history),
           "queued": sum(h["outcome"] == "queued" for h in history),
           "max_target_share": max(shares.values(), default=0) / total, "min_target_share": min(shares.values(), default=0) / total,
           **{k: v for k, v in summary.items() if isinstance(v, (int, float))}}
    out = []
    for k, (lo, hi) in case["compare"]["observed_min_max"].items():
        w = max(0.5 * (hi - lo), 0.01 * abs(hi))
        if k not in got or not lo - w <= got[k] <= hi + w:
            out.append((k, f"{lo} to {hi}", got.get(k, "<missing>"), "wrong"))
    return out


TOTALS = ("num_requests", "completed_requests", "total_input_tokens", "total_output_tokens")


def telemetry(t):
    """Samples with worker rows as a multiset."""
    t = json.loads(json.dumps(t))
    for sample in t["samples"] if t else ():
        for k, rows in sample.items():
            if k.endswith("_scheduler_metrics"):
                for r in rows:
                    r.pop("worker_id", None), r.pop("dp_rank", None)
                rows.sort(key=lambda r: json.dumps(r, sort_keys=True))
            elif k.endswith("_ids"):
                sample[k] = len(rows)
    return t


def run(case_path, expected_dir, binary, timeout):
    case = json.load(open(case_path))
    name = os.path.splitext(os.path.basename(case_path))[0]
    with gzip.open(os.path.join(expected_dir, name + ".json.gz")) as f:
        want = json.load(f)
    with tempfile.TemporaryDirectory() as tmp:
        base = os.path.dirname(os.path.abspath(case_path))
        cmd = shlex.split(binary) + ["replay"] + argv(case, base, tmp)
        try:
            p = subprocess.run(cmd, capture_output=True, text=True, timeout=timeout, cwd=base)
        except subprocess.TimeoutExpired:
            return name, "failed", [("", "an answer", f"nothing after {timeout} s", "wrong")]
        report = os.path.join(tmp, "report.json")
        if any(x in want.get("error", "") for x in GAVE_UP):  # ours must end, and account for every request
            if p.returncode != 0 or not os.path.exists(report):
                return name, "failed", [("", "exit 0", (p.stderr or p.stdout)[-300:], "wrong")]
            got = json.load(open(report))
            done = [got.get(k) for k in ("num_requests", "completed_requests", "rejected_requests")]
            capped = "max_sim_time_ms" in case.get("args", {})
            bad = None in done or (done[0] < done[1] + done[2] if capped else done[0] != done[1] + done[2])
            d = [("requests, completed, rejected", "all accounted for", done, "wrong")] if bad else []
            d += [(f"per_request[{i}].rejection_reason", "a text", None, "wrong") for i, r in enumerate(got.get("per_request") or [])
                  if r.get("terminal_status") == "rejected" and not r.get("rejection_reason")]
            return name, "wrong" if d else "exact", d
        if "error" in want:
            if p.returncode in (1, 2) and "Traceback" not in p.stderr and names_it(want["error"], p.stderr):
                return name, "refused", []
            return name, "wrong", [("exit", "a refusal that names it: " + want["error"][:200], f"exit {p.returncode}: {p.stderr.strip()[-200:]}", "wrong")]
        if p.returncode != 0 or not os.path.exists(report):
            return name, "failed", [("", "exit 0 and a report", f"exit {p.returncode}: " + (p.stderr or p.stdout)[-300:], "wrong")]
        got = json.load(open(report))
        summary, mode, d = want["summary"], case.get("compare", {}).get("mode"), []
        if mode == "band" or case.get("ties") == "random":
            d += [(f"again{x[0]}", *x[1:]) for x in again(cmd, report, got, timeout, base)]
            d += band(case, got.get("per_request") or [], got) if mode == "band" else diff({k: summary[k] for k in TOTALS if k in summary}, got)
            if mode == "band" or "max_sim_time_ms" in case.get("args", {}):  # unfinished requests have no row, so no known placement
                return name, verdict(d), d
            placed = os.path.join(tmp, "placements.json")
            with open(placed, "w") as f:
                json.dump({"per_request": want["per_request"]}, f)
            p = subprocess.run(cmd + ["--placements", placed], capture_output=True, text=True, timeout=timeout, cwd=base)
            if p.returncode:
                return name, "failed", d + [("placements", "exit 0", p.stderr[-300:], "wrong")]
            got = json.load(open(report))
            if got.get("placements_outside_minimum") != 0:
                d.append(("placements_outside_minimum", 0, got.get("placements_outside_minimum"), "wrong"))
    if "max_sim_time_ms" in case.get("args", {}) and got.get("rejected_requests") and not want["summary"].get("rejected_requests"):
        if any(r.get("rejection_reason") for r in got.get("per_request") or []):
            return name, "exact", []  # ours has rejected what the reference had not met before the cap
    d += diff(summary, got)
    rows = relabel if mode == "exact_relabel" else by_request
    d += diff(rows(want.get("per_request")), rows(got.get("per_request")), "per_request")
    if "telemetry" in want:
        d += diff(telemetry(want["telemetry"]), telemetry(got.get("telemetry")), "telemetry")
    return name, verdict(d), d


def verdict(d):
    return "exact" if not d else "wrong" if any(x[3] == "wrong" for x in d) else "close"


def again(cmd, report, first, timeout, base):
    """A second run must give the same bytes, wall-clock fields apart."""
    subprocess.run(cmd, capture_output=True, text=True, timeout=timeout, cwd=base)
    drop = lambda r: json.dumps({k: v for k, v in r.items() if k not in VOLATILE - {"uuid"} | {"runtime"}})
    return [] if drop(first) == drop(json.load(open(report))) else [("", "the same report", "another one", "wrong")]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("cases", nargs="+")
    ap.add_argument("--bin", required=True)
    ap.add_argument("--expected", required=True)
    ap.add_argument("--timeout", type=float, default=60)
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--json")
    ap.add_argument("-v", action="store_true", help="list up to 12 differing fields a case instead of 3")
    a = ap.parse_args()
    count = dict.fromkeys(("exact", "close", "refused", "wrong", "failed"), 0)
    with ThreadPoolExecutor(a.jobs) as pool:
        results = list(pool.map(lambda c: run(c, a.expected, a.bin, a.timeout), a.cases))
    for name, how, d in results:
        count[how] += 1
        if how in ("wrong", "failed") or (how == "close" and a.v):
            print(f"{how:6s} {name}  ({len(d)} fields)")
            for path, want, got, kind in [x for x in d if x[3] == "wrong" or how == "close"][: 12 if a.v else 3]:
                print(f"         {path.lstrip('.')}: want {want!r}, got {got!r}")
    if a.json:
        json.dump({n: h for n, h, _ in results}, open(a.json, "w"), indent=1)
    print(", ".join(f"{v} {k}" for k, v in count.items()) + f", of {len(results)}")
    sys.exit(bool(count["wrong"] or count["failed"]))


if __name__ == "__main__":
    main()
