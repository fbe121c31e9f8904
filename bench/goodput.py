"""Measures goodput under overload: complete responses per second at multiples of the rate that saturates a server.

    python3 bench/goodput.py [--save]

The server runs in a control group with a fifth of a core, so that the load tester is not the bottleneck. Each rate
is offered in an open loop. A response counts if it is complete within the timeout; refusals (503) do not count.
The target: at 2, 5 and 10 times saturation, at least 90 % of the best goodput of all rates.

Goodput under a load that was not offered proves nothing. The result is therefore not judged if the load tester sent
fewer than 95 % of the requests of a rate in time.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
CORES = 0.2
MULTIPLES = (0.5, 1, 2, 5, 10)
TARGET = 0.9
SENT_MIN = 0.95
BODY_BYTES = 50_000
TIMEOUT = "10s"


class CpuGroup:
    """A control group of either version with a share of a core."""

    def __init__(self):
        name = f"headwater-goodput-{os.getpid()}"
        quota = int(CORES * 100_000)
        for folder, file, limit in (
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", str(quota)),
            ("/sys/fs/cgroup", "cpu.max", f"{quota} 100000"),
        ):
            self.folder = pathlib.Path(folder) / name
            try:
                self.folder.mkdir()
                (self.folder / file).write_text(limit)
                return
            except OSError:
                self.remove()
        sys.exit("control groups cannot be created here; run this as root")

    def start(self, command):
        enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.folder, *command]
        return subprocess.Popen(enter, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def remove(self):
        try:
            self.folder.rmdir()
        except OSError:
            pass


def start_server(group, command):
    process = group.start(command)
    url = next(line.split()[-1] for line in process.stdout if line.startswith("listening on"))
    return process, url


def compute_sent_share(args, summary):
    """The rate at which requests were sent, relative to the offered one. A closed loop offers no rate."""
    if not summary["due"]:
        return 1.0
    # The thread was so late with some request that the rest followed in a longer time.
    seconds = args.seconds + summary["lag_ms"].get("max", 0) / 1000
    return (summary["due"] - summary["unsent"]) / summary["due"] * args.seconds / seconds


def offer(args, url, version, rate):
    """Offers a rate, and returns complete responses per second."""
    command = [args.binary, "load", "rate", url, "--rate", rate, "--duration", f"{args.seconds}s", "--http", version,
               "--timeout", TIMEOUT, "--drain", TIMEOUT, "--threads", "1", "--length", f"{BODY_BYTES}B",
               "--connections", "32", "--max-connections", "4000", "--json", "-"]  # fmt: skip
    if version == "2":
        command += ["--streams", "16"]
    output = subprocess.run(command, capture_output=True, text=True).stdout
    result = json.loads(output)
    summary = result["summary"]
    good = summary["requests"] - summary["errors"]
    return {"offered": rate, "goodput": good / max(result["wall_s"], args.seconds), "errors": summary["errors"],
            "unsent": summary["unsent"], "late": summary["late"], "sent_share": compute_sent_share(args, summary),
            "p99_ms": summary["from_due_ms"]["p99"]}  # fmt: skip


def fell_behind(row):
    return row["sent_share"] < SENT_MIN


def is_short(row):
    return row["multiple"] >= 2 and row["share"] < TARGET


def measure(args, name, version, command):
    group = CpuGroup()
    process, url = start_server(group, command)
    try:
        url += "/film.bin"
        saturation = offer(args, url, version, "max")["goodput"]
        rows = [{"multiple": multiple, **offer(args, url, version, f"{saturation * multiple:.1f}")}
                for multiple in MULTIPLES]  # fmt: skip
    finally:
        process.terminate()
        process.wait()
        group.remove()
    best = max(row["goodput"] for row in rows)
    print(f"\n{name}, HTTP/{version}: {saturation:.0f} per second saturate it")
    for row in rows:
        row["share"] = row["goodput"] / best
        verdict = ", BEHIND" if fell_behind(row) else ", SHORT" if is_short(row) else ""
        print(f"  {row['multiple']:>4} x: {row['goodput']:7.0f} complete per second ({row['share']:.0%} of the best), "
              f"{row['sent_share']:.0%} sent in time, {row['errors']} errors{verdict}")  # fmt: skip
    return {"server": name, "http": version, "saturation": saturation, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("HEADWATER", ROOT / "target/release/headwater"))
    parser.add_argument("--seconds", type=int, default=20, help="length of each rate")
    parser.add_argument("--save", action="store_true", help="write bench/runs/DATE-N-cores-goodput.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-goodput-") as folder:
        (pathlib.Path(folder) / "film.bin").write_bytes(os.urandom(BODY_BYTES))
        listen = ["--listen", "127.0.0.1:0"]
        serve = [str(args.binary), "serve", folder, *listen]
        origin = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = next(line.split()[-1] for line in origin.stdout if line.startswith("listening on"))
        edge = [str(args.binary), "edge", "--origin", url, *listen]
        try:
            results = [
                measure(args, name, version, command)
                for name, command in (("serve", serve), ("edge", edge))
                for version in ("1", "2")
            ]
        finally:
            origin.terminate()
            origin.wait()
    rows = [row for result in results for row in result["rows"]]
    if any(map(fell_behind, rows)):
        sys.exit("the generator fell behind: a rate was not offered in full; repeat the run on an idle machine")
    if args.save:
        date = datetime.date.today().isoformat()
        path = ROOT / "bench/runs" / f"{date}-{os.cpu_count()}-cores-goodput.json"
        found = {"machine": platform.platform(), "cores": CORES, "seconds": args.seconds, "results": results}
        path.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(any(map(is_short, rows)))


if __name__ == "__main__":
    main()
