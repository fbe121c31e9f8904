#!/usr/bin/env python3
"""Measures every row of the benchmark table: the work, our figure, theirs, the ratio with its interval, the
target, and the verdict, which is "undecided" if the interval contains the target.

Servers are measured in interleaved rounds of rotating order. A ratio is the median of the ratios of all
rounds, with its 95 % interval by order statistics; fewer than six rounds have a range instead. Throughput in bytes is measured with two
clients: wrk, which copies bodies, and `headwater load rate`, which discards them in the kernel (discard).
Saves the table and the raw rounds under bench/runs/, and fills the table of bench/README.md. Exits with 1
if a row misses its target.

  make bench                                        all of it, in about 30 minutes
  python3 bench/table.py --only edges,tls           some parts, see PARTS; the other parts of today are retained,
                                                    and bench/README.md changes only when all have been measured
  python3 bench/table.py --rounds 3 --seconds 1     faster, with ranges instead of intervals
"""

import collections
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import congestion  # noqa: E402
import parts  # noqa: E402
from backends import workspace  # noqa: E402
from run import ROOT, cpu_model, nginx_version, round_arguments  # noqa: E402

RUNS = ROOT / "bench/runs"
# Rounds below which no interval of the median reaches 95 %.
ROUNDS_MIN = 6
PARTS = {part.__name__: part for part in (
    parts.files, parts.encrypted, parts.long_films, parts.cold_texts, parts.edges, parts.ranges, parts.tls, parts.cores,
    parts.slow_viewers, parts.slow_tls_viewers, parts.testers,
)}  # fmt: skip
HEAD = ["work", "Headwater", "reference", "reference server", "ratio (95 %)", "target", "verdict"]


def main():
    args = arguments()
    measured = {}
    for name, part in PARTS.items():
        if args.only and name not in args.only.split(","):
            continue
        began = time.monotonic()
        with workspace(f"bench-{name}") as (work, ended):
            try:
                found = part(args, work, ended)
            except (OSError, RuntimeError, SystemExit) as why:
                # A part that cannot be measured does not stop the others.
                found = [parts.missing(name, why)]
        rows = [evaluate_row(row) | {"rounds": row.raw()} for row in found]
        for row in rows:
            print("| " + " | ".join(row["cells"]) + " |", flush=True)
        measured[name] = {"took_s": round(time.monotonic() - began, 1), "rounds": args.rounds,
                          "seconds": args.seconds, "rows": rows}  # fmt: skip
        print(f"{name}: {measured[name]['took_s']} s", file=sys.stderr)
    report(args, measured)
    sys.exit(1 if any(row["verdict"] == "SHORT" for part in measured.values() for row in part["rows"]) else 0)


def arguments():
    parser = round_arguments(__doc__)
    parser.set_defaults(rounds=6, seconds=2)
    parser.add_argument("--nginx-vod", type=pathlib.Path, help="an nginx with nginx-vod-module, to compare encryption with")
    congestion.add_argument(parser)
    args = parser.parse_args()
    if unknown := set((args.only or "").split(",")) - {"", *PARTS}:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if args.nginx_vod and not os.access(args.nginx_vod, os.X_OK):
        parser.error(f"--nginx-vod {args.nginx_vod} is not a program; bench/README.md states how to build it")
    congestion.enter(args.congestion)
    # wrk accepts whole seconds only.
    args.seconds = max(1, round(args.seconds))
    args.no_save = args.no_save or bool(args.congestion)
    return args


# ── verdicts ──────────────────────────────────────────────────────────────────────────────────


def evaluate_row(row):
    if row.why:
        verdict = f"NOT MEASURED: {row.why}"
        cells = [row.work, "", "", row.reference, "", row.show_target(), verdict]
        return {"work": row.work, "verdict": "NOT MEASURED", "cells": cells}
    ratios = row.ratios()
    middle = statistics.median(ratios)
    shown = f"{middle:.2f} ({describe_ends(ratios)})" if len(ratios) > 1 else f"{middle:.2f}"
    verdict = judge(ratios, row.target)
    limited = row.target and len(ratios) < ROUNDS_MIN
    shown_verdict = f"{verdict} (range of {len(ratios)})" if limited else verdict
    cells = [row.work, row.show(row.ours), row.show(row.theirs), row.reference, shown, row.show_target(), shown_verdict]
    interval = list(median_interval(ratios))
    return {"work": row.work, "verdict": verdict, "ratio": middle, "interval": interval, "asked": row.target,
            "cells": cells}  # fmt: skip


def judge(ratios, target):
    """Returns "reported" without a target, "pass" or "SHORT" if the whole interval or range is on one side of the
    target, and "undecided" if it contains the target."""
    low, high = median_interval(ratios)
    if not target:
        return "reported"
    return "pass" if low >= target else "SHORT" if high < target else "undecided"


def median_interval(ratios):
    """Returns the 95 % interval of the median by order statistics, as crates/stats does: with six rounds it is
    their range (96.9 %). Fewer have no interval; then these are the ends of their range."""
    n, tail, rank = len(ratios), 0.0, 0
    while (tail := tail + math.comb(n, rank) / 2**n) <= 0.025:
        rank += 1
    inside = sorted(ratios)[max(rank - 1, 0) : n - max(rank - 1, 0)]
    return inside[0], inside[-1]


def describe_ends(ratios):
    low, high = median_interval(ratios)
    return f"{low:.2f}–{high:.2f}" if len(ratios) >= ROUNDS_MIN else f"range of {len(ratios)}: {low:.2f}–{high:.2f}"


# ── reporting ──────────────────────────────────────────────────────────────────────────────────


def report(args, measured):
    saved = RUNS / f"{time.strftime('%Y-%m-%d')}-{os.cpu_count()}-cores-table.json"
    if args.only and not args.no_save and saved.exists():
        # Keeps the other parts of today.
        measured = json.loads(saved.read_text())["parts"] | measured
    measured = {name: measured[name] for name in PARTS if name in measured}
    machine = f"{cpu_model()}, {os.cpu_count()} cores, {congestion.kernel()}; {nginx_version()}"
    table = text(args, machine, measured)
    print(f"\n{table}")
    if args.no_save:
        return
    saved.write_text(json.dumps({"machine": machine, "parts": measured}, indent=1) + "\n")
    saved.with_suffix(".md").write_text(f"# Benchmark table\n\n{table}")
    if set(measured) != set(PARTS):
        print(f"bench/README.md keeps its table: this one, {saved.relative_to(ROOT)}, has some parts only", file=sys.stderr)
        return
    readme = ROOT / "bench/README.md"
    between = f"<!-- bench -->\n{table}\nAll rounds: [{saved.name}](runs/{saved.name}).\n<!-- end of bench -->"
    filled = re.sub(r"<!-- bench -->.*<!-- end of bench -->", lambda _: between, readme.read_text(), flags=re.S)
    readme.write_text(filled)


def text(args, machine, measured):
    rows = [row for part in measured.values() for row in part["rows"]]
    counts = collections.Counter(row["verdict"] for row in rows)
    summary = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
    rounds = sorted({(part["rounds"], part["seconds"]) for part in measured.values()})
    peer = " --nginx-vod PATH" if args.nginx_vod else ""
    commands = " and ".join(f"`python3 bench/table.py --rounds {n} --seconds {s}{peer}`" for n, s in rounds)
    missing = [name for name in PARTS if name not in measured]
    lines = [f"{commands}; {machine}; {sum(part['took_s'] for part in measured.values()):.0f} s. {summary}."]
    if missing:
        lines.append(f"Parts not measured: {', '.join(missing)}.")
    lines += ["", "| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row["cells"]) + " |" for row in rows]) + "\n"


if __name__ == "__main__":
    main()
