#!/usr/bin/env python3
"""Compares `headwater load` with wrk, h2load, hey, oha and, if it is in PATH, Vegeta.

All test the same nginx. Measures requests per CPU-second of the client (closed loop, one thread, 5 KB
and 1 MB), and compares percentiles at equal rates. Rounds are interleaved in rotating order; nginx runs
on core 0, the client on core 1. Exits with 0 if all targets are met. Installs oha from crates.io into a
cache outside this folder if it is missing.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import BINARY, ROOT, cpu_model, free_port, nginx_version, round_arguments, wait_for  # noqa: E402

SIZES = {"5 KB": 5_000, "1 MB": 1_000_000}
# (tool, size): the least ratio of our figure to theirs, per CPU-second.
HELD_TO = {
    ("wrk", "5 KB"): 1.0, ("wrk", "1 MB"): 1.0, ("hey", "5 KB"): 3.0, ("hey", "1 MB"): 3.0,
    ("oha", "5 KB"): 1.5, ("oha", "1 MB"): 1.5,
}  # fmt: skip
OHA = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "headwater/oha"
PERCENTILES = ("p50", "p90", "p99")
TOOLS = ("headwater", "wrk", "h2load", "hey", "oha") + (("vegeta",) if shutil.which("vegeta") else ())
# Tools that report percentiles at a rate, and the start of their latencies.
REPORTED = (("headwater", "due"), ("oha", "due"), ("headwater", "sent"), ("h2load", "sent"),
        ("hey", "sent"), ("vegeta", "sent"))  # fmt: skip


def main():
    args = arguments()
    oha = install_oha()
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-bench-load-"))
    nginx = None
    try:
        os.chmod(work, 0o755)
        nginx, url = serve(work)
        rounds = measure(args, url, oha, work / "log")
        verdict = report(args, rounds)
    finally:
        if nginx:
            nginx.terminate()
            nginx.wait()
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(verdict)


def arguments():
    parser = round_arguments(__doc__)
    parser.add_argument("--rate", type=int, default=2000, help="requests per second for percentiles")
    args = parser.parse_args()
    # wrk takes whole seconds only.
    args.seconds = max(1, round(args.seconds))
    return args


def install_oha():
    binary = OHA / "bin/oha"
    if not binary.exists():
        subprocess.run(
            ["cargo", "install", "oha", "--version", "1.16.0", "--locked", "--root", OHA,
             "--no-default-features", "--features", "rustls"], check=True,
        )  # fmt: skip
    return str(binary)


def serve(work):
    root = work / "root"
    root.mkdir()
    for name, size in SIZES.items():
        (root / f"{size}.bin").write_bytes(os.urandom(size))
    port = free_port()
    config = work / "nginx.conf"
    config.write_text(
        f"""worker_processes 1; daemon off; pid {work}/pid; error_log {work}/error.log;
        events {{ worker_connections 4096; }}
        http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
          client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3;
          uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5; open_file_cache max=1000;
          server {{ listen 127.0.0.1:{port}; root {root}; }} }}"""
    )
    process = subprocess.Popen(["taskset", "-c", "0", "nginx", "-c", str(config)])
    url = f"http://127.0.0.1:{port}"
    wait_for(f"{url}/5000.bin")
    return process, url


# ── tools: command for a closed loop, command for a rate, and parser of the output ────────


def commands(tool, url, args, oha, rate, log):
    seconds, connections = f"{args.seconds:g}", str(args.connections)
    # These tools pace each connection separately.
    each = str(rate / args.connections) if rate else ""
    if tool == "headwater":
        pace = str(rate) if rate else "max"
        return [str(BINARY), "load", "rate", url, "--rate", pace, "--duration",
                f"{seconds}s", "--connections", connections, "--threads", "1", "--json", "-"]  # fmt: skip
    if tool == "wrk":
        return None if rate else ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url]
    if tool == "h2load":
        pace = ["--rps", each, f"--log-file={log}"] if rate else []
        return ["h2load", "--h1", "-t1", f"-c{connections}", f"-D{seconds}", *pace, url]
    if tool == "hey":
        pace = ["-q", each] if rate else []
        return ["hey", "-cpus", "1", "-c", connections, "-z", f"{seconds}s", *pace, url]
    if tool == "vegeta":
        workers = [f"-workers={connections}"] if rate else [f"-workers={connections}", f"-max-workers={connections}"]
        return ["vegeta", "-cpus", "1", "attack", f"-rate={rate or 0}", f"-duration={seconds}s", *workers,
                f"-connections={connections}", "-max-body=0", f"-targets={targets(url, log)}", f"-output={log}"]  # fmt: skip
    pace = ["-q", str(rate), "--latency-correction"] if rate else []
    return [oha, "--no-tui", "--output-format", "json", "-c", connections, "-z", f"{seconds}s", *pace, url]


def targets(url, log):
    file = log.with_suffix(".targets")
    file.write_text(f"GET {url}\n")
    return file


def read(tool, text, log):
    """Returns successful requests, and latencies in ms if the tool reports them."""
    if tool == "headwater":
        summary = json.loads(text)["summary"]
        if summary["errors"]:
            sys.exit(f"headwater load: {summary['errors']} errors")
        return summary["requests"], {
            f"{p} {since}": summary[f"from_{since}_ms"][p] for p in PERCENTILES for since in ("due", "sent")
        }
    if tool == "wrk":
        return int(re.search(r"(\d+) requests in", text)[1]), {}
    if tool == "h2load":
        # h2load prints mean and deviation only. Its log has start, status and microseconds of each request.
        took = sorted(int(line.split()[2]) for line in log.read_text().splitlines()) if log.exists() else []
        at = lambda p: took[min(len(took) - 1, int(len(took) * int(p[1:]) / 100))] / 1000
        return int(re.search(r"(\d+) succeeded", text)[1]), {f"{p} sent": at(p) for p in PERCENTILES if took}
    if tool == "hey":
        total = sum(int(n) for n in re.findall(r"\[200\]\s+(\d+) responses", text))
        found = re.findall(r"^ +(\d+)% in ([\d.]+) secs", text, re.M)
        return total, {f"p{p} sent": float(s) * 1000 for p, s in found if f"p{p}" in PERCENTILES}
    if tool == "vegeta":
        report = subprocess.run(["vegeta", "report", "-type=json", log], capture_output=True, text=True, check=True)
        report = json.loads(report.stdout)
        at = {"p50": "50th", "p90": "90th", "p99": "99th"}
        return report["status_codes"].get("200", 0), {
            f"{p} sent": report["latencies"][name] / 1e6 for p, name in at.items()
        }
    document = json.loads(text)
    total = sum(n for status, n in document["statusCodeDistribution"].items() if status == "200")
    return total, {f"{p} due": (document["latencyPercentiles"][p] or 0) * 1000 for p in PERCENTILES}


def once(tool, url, args, oha, rate, log):
    log.unlink(missing_ok=True)
    command = commands(tool, url, args, oha, rate, log)
    if command is None:
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True)
    elapsed = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    requests, latencies = read(tool, done.stdout, log)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"tool": tool, "requests": requests, "cpu_s": cpu, "wall_s": elapsed, "ms": latencies}


def measure(args, url, oha, log):
    kinds = [(name, f"/{size}.bin", None) for name, size in SIZES.items()] + [("rate", "/5000.bin", args.rate)]
    kinds = [kind for kind in kinds if not args.only or args.only in kind[0]]
    rounds = []
    for number in range(args.rounds):
        order = TOOLS[number % len(TOOLS):] + TOOLS[: number % len(TOOLS)]
        for kind, path, rate in kinds:
            for tool in order:
                if found := once(tool, url + path, args, oha, rate, log):
                    rounds.append({"round": number, "kind": kind, **found})
        print(f"\rround {number + 1} of {args.rounds}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return rounds


def report(args, rounds):
    lines = [
        f"machine: {cpu_model()}, {os.cpu_count()} cores, Linux {os.uname().release}",
        f"command: bench/load.py --rounds {args.rounds} --seconds {args.seconds:g}"
        f" --connections {args.connections} --rate {args.rate}",
        f"server: {nginx_version()}, core 0; clients: core 1, one thread",
    ]
    verdicts = []
    lines += closed_loop(rounds, verdicts)
    lines += at_a_rate(args, rounds)
    lines += ["", *verdicts]
    text = "\n".join(lines) + "\n"
    print(text)
    if not args.no_save and not args.only:
        name = f"{time.strftime('%Y-%m-%d')}-{os.cpu_count()}-cores-load"
        (ROOT / "bench/runs" / f"{name}.md").write_text(text)
        (ROOT / "bench/runs" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rounds))
    return 1 if any(verdict.startswith("SHORT") for verdict in verdicts) else 0


def closed_loop(rounds, verdicts):
    """Formats requests per CPU-second, with ratios paired round by round."""
    lines = [
        "",
        "| closed loop | per CPU-second of the client | ratio of headwater: median (all rounds) | target |",
        "|---|---|---|---|",
    ]
    for kind in SIZES:
        of = {tool: {r["round"]: r["requests"] / r["cpu_s"] for r in rounds if r["kind"] == kind and r["tool"] == tool}
              for tool in TOOLS}  # fmt: skip
        for tool, theirs in of.items():
            if not theirs:
                continue
            ratios = sorted(of["headwater"][n] / theirs[n] for n in theirs)
            median, least = statistics.median(ratios), HELD_TO.get((tool, kind))
            if least:
                mark = "pass" if median >= least else "SHORT"
                verdicts.append(f"{mark}: {kind}: {median:.2f} times {tool}, target {least:g}")
            spread = "" if tool == "headwater" else f"{median:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
            figure = statistics.median(theirs.values())
            shown = f"{figure:,.0f} requests" if kind == "5 KB" else f"{figure / 1000:.2f} GB"
            lines.append(f"| {kind}, {tool} | {shown} | {spread} | {f'{least:g}' if least else ''} |")
    return lines


def at_a_rate(args, rounds):
    """Formats percentiles, grouped by the start of the latency."""
    lines = ["", f"| {args.rate} requests/s of 5 KB, ms | p50 | p90 | p99 | sent/s |", "|---|---|---|---|---|"]
    for tool, since in REPORTED:
        mine = [r for r in rounds if r["kind"] == "rate" and r["tool"] == tool]
        if not mine:
            continue
        cells = []
        for p in PERCENTILES:
            values = [r["ms"][f"{p} {since}"] for r in mine]
            cells.append(f"{statistics.median(values):.3f} ({min(values):.3f}–{max(values):.3f})")
        rate = statistics.median(r["requests"] / args.seconds for r in mine)
        lines.append(f"| {tool}, from {since} | {' | '.join(cells)} | {rate:,.0f} |")
    return lines


if __name__ == "__main__":
    main()
