#!/usr/bin/env python3
"""fit.py: compares document 2's model, OUT = R x S x B, with the result of `headwater load rate --json`.

Fits a line through the origin to the throughput over the request rate below the knee. The knee is the
first of two consecutive steps in which 3 % of the due requests do not finish, or the median latency is
three times the smallest one before. (Tails and single steps also depend on other activity of a busy
machine.) Prints one JSON object.

  headwater load rate manifest:URL --rate steps:20+20/2s..200 --json - | fit.py --segment 2 --kbps 3894
"""

import argparse
import json
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segment", type=float, required=True, help="S, in seconds")
    parser.add_argument("--kbps", type=float, required=True, help="B, in kilobits of media per second")
    args = parser.parse_args()
    print(json.dumps(fit(json.load(sys.stdin), args.segment * args.kbps / 1000)))


def fit(run, megabits):
    """`megabits` is S x B, the throughput per request that the model predicts."""
    steps = [step(run, of) for of in run["steps"]]
    over = [n > 0 and not kept_up(steps, n) for n in range(len(steps))] + [True]
    knee = next((n for n in range(len(steps)) if over[n] and over[n + 1]), len(steps))
    points = [(one["per_s"], one["mbps"]) for one in steps]
    below = points[:knee]
    if len(below) < 3:
        raise SystemExit(f"only {len(below)} steps below the knee: start at a lower request rate")
    slope = sum(r * out for r, out in below) / sum(r * r for r, _ in below)
    mean = sum(out for _, out in below) / len(below)
    left = [out - slope * r for r, out in below]
    best = max(points, key=lambda point: point[1])
    return {
        # OUT per request per second, as measured; S x B according to the model.
        "megabits_per_request": slope,
        # 1 if a request transfers S x B.
        "slope": slope / megabits,
        "r2": 1 - sum(e * e for e in left) / sum((out - mean) ** 2 for _, out in below),
        "residual": max(abs(e) / (slope * r) for e, (r, _) in zip(left, below)),
        "steps": len(below),
        "beyond": len(points) - knee,
        # The last step below the knee.
        "knee_per_s": below[-1][0],
        "knee_mbps": below[-1][1],
        "most_mbps": best[1],
        "most_per_s": best[0],
        "lag_p99_ms": run["summary"]["lag_ms"]["p99"],
        "errors": run["summary"]["errors"],
        # By the number of the step.
        "rates": [[n, r] for n, (r, _) in enumerate(below)],
        "outs": [[n, out] for n, (_, out) in enumerate(below)],
    }


def step(run, of):
    """Returns the due and finished requests per second, and the received megabits per second, of a step."""
    rows = [row for row in run["seconds"] if of["start_s"] <= row["second"] < of["end_s"] - 1e-9]
    mean = lambda name: sum(row[name] for row in rows) / max(1, len(rows))
    return {"due": mean("due"), "per_s": mean("ended"), "mbps": 8e-6 * mean("bytes"), "ms": mean("due_p50_ms")}


def kept_up(steps, n):
    """Returns whether the server kept up in a step. The first step has no predecessor and always counts."""
    least = min(one["ms"] for one in steps[:n])
    return steps[n]["per_s"] >= 0.97 * steps[n]["due"] and steps[n]["ms"] <= 3 * least


if __name__ == "__main__":
    main()
