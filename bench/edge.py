#!/usr/bin/env python3
"""Compares `headwater edge` with Varnish and nginx's proxy_cache in front of the same nginx.

Rounds are interleaved. The cache runs on core 0, client and origin on core 1, and figures are per
CPU-second of the cache. Then measures tail latencies at half of saturation, memory of idle clients,
and one long object. Saves the tables with all rounds under bench/runs/. Exits with 0 if all targets
are met.
"""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import congestion
import edge_beside
from run import BINARY, ROOT, cpu_model, free_port, get, round_arguments, wait_for, wrk

KINDS = {
    "hit 1 MB": ("large", "cycle.lua"),
    "hit 5 KB": ("small", "cycle.lua"),
    "miss 1 MB": ("large", "unique.lua"),
    "miss 5 KB": ("small", "unique.lua"),
}
COUNT = 60
SIZES = {"large": 983_000, "small": 5_000}
# Targets: the least ratio to another cache's figure.
TARGETS = [
    ("hit 1 MB", "varnish", 1.0),
    ("hit 1 MB", "nginx", 2.0),
    ("hit 5 KB", "varnish", 2.0),
    ("miss 1 MB", "varnish", 1.0),
    ("miss 5 KB", "varnish", 1.0),
]
# Absolute targets: bytes per idle client, and memory of an edge with 256 MiB of cached responses while
# it sends 1 GiB to four clients.
IDLE_BYTES_MAX = 32 << 10
LONG_BYTES_MAX = 512 << 20


def main():
    args = arguments()
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-edge-"))
    os.chmod(work, 0o755)
    servers = []
    try:
        origin = Nginx(work, "origin", origin_config(work), core=1)
        servers.append(origin)
        kinds = (Headwater, Varnish, proxy_cache)
        caches = [cache(work, origin.url) for cache in kinds]
        servers += caches
        rounds = measure(args, caches, work)
        tails, idle, long = [], {}, None
        if not args.only:
            tails = edge_beside.tails(args, BINARY, caches, rounds)
            for kind, used in zip(kinds, caches):
                used.stop()
                fresh = kind(work, origin.url)
                servers.append(fresh)
                idle[fresh.name] = edge_beside.idle(fresh)
                fresh.stop()
            small = Headwater(work, origin.url, memory="256MiB")
            servers.append(small)
            long = edge_beside.long_object(small, work)
        passed = report(args, rounds, caches, tails, idle, long)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(0 if passed else 1)


def arguments():
    parser = round_arguments(__doc__)
    congestion.add_argument(parser)
    args = parser.parse_args()
    congestion.enter(args.congestion)
    # Only runs with the congestion control of the machine are saved.
    args.no_save = args.no_save or bool(args.congestion)
    return args


# ── the caches ───────────────────────────────────────────────────────────────────────────────


class Process:
    def start(self, core, *command, **options):
        self.process = subprocess.Popen(["taskset", "-c", str(core), *map(str, command)], **options)

    def pids(self):
        found, queue = [], [self.process.pid]
        while queue:
            pid = queue.pop()
            found.append(pid)
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                queue += map(int, (task / "children").read_text().split())
        return found

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


class Headwater(Process):
    name = "headwater"

    def __init__(self, work, origin, *flags, memory="1GiB"):
        self.start(0, BINARY, "edge", "--origin", origin, "--listen", "127.0.0.1:0",
                   "--workers", 1, "--memory", memory, *flags, stdout=subprocess.PIPE, text=True)  # fmt: skip
        line = self.process.stdout.readline()
        self.url = re.search(r"http://\S+", line)[0]


class Varnish(Process):
    name = "varnish"

    def __init__(self, work, origin):
        port = free_port()
        host, _, backend = origin.removeprefix("http://").partition(":")
        vcl = work / "default.vcl"
        vcl.write_text(f'vcl 4.1; backend default {{ .host = "{host}"; .port = "{backend}"; }}')
        self.start(0, "varnishd", "-F", "-n", work / "varnish", "-f", vcl, "-s", "malloc,1G",
                   "-a", f"127.0.0.1:{port}", "-p", "nuke_limit=10000",  # 50, the default, fails large misses
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        self.url = f"http://127.0.0.1:{port}"
        wait_for(self.url + "/small/0")


class Nginx(Process):
    def __init__(self, work, name, http, core):
        self.name = name
        port = free_port()
        temporary = "".join(
            f"{kind}_temp_path {work}/{name}-{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = work / f"{name}.conf"
        config.write_text(
            f"""worker_processes 1; daemon off; pid {work}/{name}.pid; error_log {work}/{name}.log;
            events {{ worker_connections 30000; }}
            http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;
              {temporary} {http.replace("PORT", str(port))} }}"""
        )
        self.start(core, "nginx", "-c", config)
        self.url = f"http://127.0.0.1:{port}"
        wait_for(self.url + "/small/0")


def origin_config(work):
    for name, size in SIZES.items():
        folder = work / "files" / name
        folder.mkdir(parents=True)
        for number in range(COUNT):
            (folder / str(number)).write_bytes(os.urandom(size))
    return f"""open_file_cache max=10000;
      server {{ listen 127.0.0.1:PORT; root {work}/files; add_header Cache-Control max-age=3600; }}"""


def proxy_cache(work, origin):
    http = f"""proxy_cache_path {work}/cache keys_zone=k:10m max_size=1g use_temp_path=off;
      upstream o {{ server {origin.removeprefix("http://")}; keepalive 64; }}
      server {{ listen 127.0.0.1:PORT; location / {{
        proxy_pass http://o; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_cache k; }} }}"""
    return Nginx(work, "nginx", http, core=0)


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def measure(args, caches, work):
    wanted = [kind for kind in KINDS if not args.only or args.only in kind]
    rounds = []
    for number in range(args.rounds):
        turn = number % len(caches)
        for kind in wanted:
            for cache in caches[turn:] + caches[:turn]:
                figures = measure_kind(args, cache, kind, work)
                rounds.append({"round": number, "kind": kind, "server": cache.name, **figures})
                done = f"{len(rounds)}/{args.rounds * len(wanted) * len(caches)}"
                print(f"\r{done} rounds", end="", file=sys.stderr)
    print(file=sys.stderr)
    return rounds


def measure_kind(args, cache, kind, work, client=wrk):
    folder, script = KINDS[kind]
    paths = [f"/{folder}/{number}" for number in range(COUNT)]
    if script == "cycle.lua":
        for path in paths:
            get(cache.url + path)
    return client(args, cache, paths, work, script)


def report(args, rounds, caches, tails, idle, long):
    version = subprocess.run(["varnishd", "-V"], capture_output=True, text=True).stderr
    lines = [
        f"machine: {cpu_model()}, {os.cpu_count()} cores, {congestion.kernel()}",
        f"command: bench/edge.py --rounds {args.rounds} --seconds {args.seconds:g}"
        f" --connections {args.connections}",
        f"client (wrk) and origin (nginx): core 1; caches: core 0; {version.splitlines()[0]}",
        "median of all rounds, of the cache's CPU-seconds; in brackets the lowest and the highest",
        "",
        "| work | " + " | ".join(cache.name for cache in caches) + " |",
        "|---" * (len(caches) + 1) + "|",
    ]
    for kind in KINDS:
        cells = []
        for cache in caches:
            mine = [r for r in rounds if r["kind"] == kind and r["server"] == cache.name]
            if mine:
                cells.append(cell(kind, mine))
        if cells:
            lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    if tails:
        lines += ["", "latency from the due time at half of the slowest cache's maximum: requests per second, p50/p99/p99.9",
                  "", lines[5], lines[6]]  # fmt: skip
        for kind in edge_beside.TAIL_KINDS:
            cells = [tail_cell([t for t in tails if t["kind"] == kind and t["server"] == c.name]) for c in caches]
            lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    if idle:
        each = ", ".join(f"{name} {of['each'] / 1024:.1f} KiB ({of['each_of_second_half'] / 1024:.1f})"
                         for name, of in idle.items())  # fmt: skip
        lines += ["", f"{edge_beside.IDLE} idle clients of a fresh process, private dirty memory each "
                      f"(of the second half of them): {each}"]  # fmt: skip
    if long:
        lines += ["", f"1 GiB to four clients at a time, 256 MiB of cached responses: {long >> 20} MiB at most"]
    failed = [f"{kind}: {times:.2f} x {other}, target {least:g} x"
              for kind, other, least in TARGETS
              if (times := ratio(rounds, kind, other)) is not None and times < least]  # fmt: skip
    if idle and idle["headwater"]["each"] > IDLE_BYTES_MAX:
        failed.append(f"idle clients take more than {IDLE_BYTES_MAX >> 10} KiB each")
    if long and long > LONG_BYTES_MAX:
        failed.append(f"1 GiB takes more than {LONG_BYTES_MAX >> 20} MiB")
    lines += ["", *[f"FAILS: {line}" for line in failed]] if failed else ["", "all targets are met"]
    text = "\n".join(lines) + "\n"
    print(text)
    if not args.no_save:
        name = time.strftime("%Y-%m-%d") + f"-{os.cpu_count()}-cores-edge"
        runs = ROOT / "bench/runs"
        (runs / f"{name}.md").write_text(text)
        (runs / f"{name}.json").write_text(json.dumps(rounds + tails + [{"kind": "idle", **idle}], indent=1) + "\n")
    return not failed


def ratio(rounds, kind, other):
    """Compares our figures with another cache's: medians of all rounds."""
    ours, theirs = (
        [per_cpu(kind, r) for r in rounds if r["kind"] == kind and r["server"] == name]
        for name in ("headwater", other)
    )
    return statistics.median(ours) / statistics.median(theirs) if ours and theirs else None


def per_cpu(kind, r):
    return (r["bytes"] / 1e9 if "MB" in kind else r["requests"]) / r["cpu_s"]


def tail_cell(tails):
    if not tails:
        return "–"
    middle = {key: statistics.median(t[key] for t in tails) for key in tails[0] if key.endswith(("ms", "rate"))}
    return f"{middle['rate']:.0f}: {middle['p50_ms']:.2f}/{middle['p99_ms']:.2f}/{middle['p999_ms']:.2f} ms"


def cell(kind, rounds):
    values = [per_cpu(kind, r) for r in rounds]
    form = "{:.2f} GB" if "MB" in kind else "{:.0f}"
    middle, low, high = statistics.median(values), min(values), max(values)
    shown = form.format(middle) + f" ({form.format(low)}–{form.format(high)})"
    return f"{shown}, p50/p99 {rounds[-1]['p50']}/{rounds[-1]['p99']}"


if __name__ == "__main__":
    main()
