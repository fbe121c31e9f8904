#!/usr/bin/env python3
"""Compares `headwater serve` with nginx, which serves ready-made files of the same bytes.

Rounds are interleaved, server and client have a core each, and figures are per CPU-second of the server.
Prints a table, and saves it with all rounds under bench/runs/.
"""

import argparse
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
import urllib.parse
import urllib.request

import congestion

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
BINARY = os.environ.get("HEADWATER", ROOT / "target/release/headwater")


def main():
    args = arguments()
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    servers = []
    try:
        films = make_films(work / "films", args.film_seconds)
        ours = Headwater(films, args.segment)
        servers.append(ours)
        kinds = list_kinds(ours.url)
        ready = make_ready(work / "ready", ours.url, kinds)
        theirs = Nginx(work, ready)
        servers.append(theirs)
        rounds = measure(args, [ours, theirs], kinds, work)
        report(args, rounds, kinds, ours)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(work, ignore_errors=True)


def arguments():
    parser = round_arguments(__doc__)
    parser.add_argument("--film-seconds", type=int, default=120)
    parser.add_argument("--segment", default="2s")
    return parser.parse_args()


def round_arguments(what):
    """Returns the parser of the arguments that all interleaved comparisons share."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--only", help="only kinds whose name contains this")
    parser.add_argument("--no-save", action="store_true")
    return parser


# ── films and lists of requested paths ────────────────────────────────────────────────────


def make_films(folder, seconds):
    """Makes two constant-bitrate renditions with audio, 1 MB and 127 KB per 2 s, as interleaved files. The
    large one is also made as a folder with a file per track."""
    folder.mkdir(parents=True)
    for name, size, kbps in (("large", "1280x720", 3900), ("small", "640x360", 500)):
        rate = "nal-hrd=cbr:force-cfr=1:keyint=48:min-keyint=48:scenecut=0"
        ffmpeg(
            "-f", "lavfi", "-i", f"testsrc2=s={size}:r=24:d={seconds},noise=alls=20:allf=t",
            "-f", "lavfi", "-i", f"sine=f=440:r=48000:d={seconds}",
            "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p",
            "-b:v", f"{kbps}k", "-minrate", f"{kbps}k", "-maxrate", f"{kbps}k",
            "-bufsize", f"{kbps}k", "-x264-params", rate, "-c:a", "aac", "-b:a", "128k",
            str(folder / f"{name}.mp4"),
        )  # fmt: skip
        apart = folder / f"{name}-apart"
        apart.mkdir()
        for track, file in (("v", "video.mp4"), ("a", "audio.m4a")):
            source = str(folder / f"{name}.mp4")
            ffmpeg("-i", source, "-map", f"0:{track}", "-c", "copy", str(apart / file))
    return folder


def ffmpeg(*args):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *args], check=True)


def list_kinds(url):
    """Returns the paths of each kind, as the manifests list them."""
    kinds = {}
    for film, label in (("large", "1 MB"), ("small", "127 KB")):
        kinds[f"CMAF {label}"] = segments(url, f"/{film}-apart/.m3u8", "video=")
        kinds[f"CMAF {label}, interleaved"] = segments(url, f"/{film}.mp4/.m3u8", "video=")
    kinds["TS 1 MB"] = segments(url, "/large-apart/.m3u8?format=ts", "video=")
    kinds["audio 33 KB"] = segments(url, "/large-apart/.m3u8", "audio")
    kinds["media playlist"] = playlists(url, "/large.mp4/.m3u8", "video=")
    kinds["MPD"] = ["/large.mp4/.mpd"]
    return kinds


def playlists(url, master, what):
    text = get(url + master).decode()
    uris = re.findall(r'^(?!#)(\S+)$|URI="([^"]+)"', text, re.M)
    uris = [a or b for a, b in uris if what in (a or b) and "keyframes" not in (a or b)]
    return sorted({resolve(master, uri) for uri in uris})


def segments(url, master, what):
    media = playlists(url, master, what)[0]
    text = get(url + media).decode()
    return [resolve(media, uri) for uri in re.findall(r"^(?!#)(\S+)$", text, re.M)]


def resolve(base, uri):
    return urllib.parse.urljoin("http://x" + base, uri).removeprefix("http://x")


def get(url):
    with urllib.request.urlopen(url) as response:
        return response.read()


def make_ready(folder, url, kinds):
    """Writes files with the same bytes under the same paths for nginx."""
    for path in {path for paths in kinds.values() for path in paths}:
        file = folder / urllib.parse.unquote(path.lstrip("/").split("?")[0])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(get(url + path))
    return folder


# ── the servers ──────────────────────────────────────────────────────────────────────────────


class Headwater:
    name = "headwater"

    def __init__(self, films, segment, *flags, cores="0", workers=1):
        command = [BINARY, "serve", films, "--listen", "127.0.0.1:0", "--workers", workers, "--segment", segment]
        self.process = subprocess.Popen(
            ["taskset", "-c", cores, *map(str, [*command, *flags])],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.url = self.process.stdout.readline().split()[-1]

    def pids(self):
        return [self.process.pid]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Nginx:
    name = "nginx"

    def __init__(self, work, ready, more="", events=1024):
        port = free_port()
        config = work / "nginx.conf"
        config.write_text(
            f"""worker_processes 1; daemon off; pid {work}/nginx.pid; error_log {work}/error.log;
            worker_rlimit_nofile {events + 1000}; events {{ worker_connections {events}; }}
            http {{
              access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
              client_body_temp_path {work}/t1; proxy_temp_path {work}/t2;
              fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
              open_file_cache max=10000; types {{ video/mp4 m4s; }}
              server {{ listen 127.0.0.1:{port} backlog=4096; root {ready};
                location = /ready {{ return 204; }} {more} }}
            }}"""
        )
        os.chmod(work, 0o755)
        self.process = subprocess.Popen(["taskset", "-c", "0", "nginx", "-c", str(config)])
        self.url = f"http://127.0.0.1:{port}"
        wait_for(self.url + "/ready", self.stop)

    def pids(self):
        main = self.process.pid
        children = pathlib.Path(f"/proc/{main}/task/{main}/children").read_text().split()
        return [main, *map(int, children)]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url, stop=lambda: None):
    for _ in range(100):
        try:
            return get(url)
        except OSError:
            time.sleep(0.05)
    stop()
    sys.exit(f"no response from {url}")


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def measure(args, servers, kinds, work):
    wanted = [name for name in kinds if not args.only or args.only in name]
    rounds = []
    for number in range(args.rounds):
        order = servers if number % 2 == 0 else servers[::-1]
        for kind in wanted:
            for server in order:
                figures = wrk(args, server, kinds[kind], work)
                rounds.append({"round": number, "kind": kind, "server": server.name, **figures})
                print(f"\r{len(rounds)}/{args.rounds * len(wanted) * 2} rounds", end="", file=sys.stderr)
    print(file=sys.stderr)
    return rounds


def wrk(args, server, paths, work, script="cycle.lua"):
    listing = work / "paths"
    listing.write_text("".join(path.split("?")[0] + "\n" for path in paths))
    before = cpu(server)
    started = time.monotonic()
    output = subprocess.run(
        ["taskset", "-c", "1", "wrk", "-t1", f"-c{args.connections}", f"-d{args.seconds:g}s",
         "--latency", "-s", str(ROOT / "bench" / script), server.url],
        env={**os.environ, "PATHS": str(listing)}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    wall, used = time.monotonic() - started, cpu(server) - before
    errors = re.search(r"Socket errors.*|Non-2xx.*", output)
    if errors:
        sys.exit(f"{server.name}: {errors[0]}")
    requests = int(re.search(r"(\d+) requests in", output)[1])
    read = in_bytes(re.search(r"in [\d.]+\w+, ([\d.]+\w+) read", output)[1])
    return {
        "requests": requests, "bytes": read, "wall_s": wall, "cpu_s": used,
        "p50": re.search(r"^ +50%\s+(\S+)", output, re.M)[1], "p99": re.search(r"^ +99%\s+(\S+)", output, re.M)[1],
    }  # fmt: skip


def discard(args, server, paths, work, _script="cycle.lua", cores="1"):
    """Measures like `wrk`, with `headwater load rate`, which discards bodies in the kernel."""
    listing = work / "targets"
    listing.write_text("".join(f"GET {server.url}{path.split('?')[0]}\n\n" for path in paths))
    before = cpu(server)
    summary = load(f"@{listing}", "max", args.seconds, args.connections, cores)["summary"]
    used = cpu(server) - before
    return {
        "requests": summary["requests"], "bytes": summary["bytes_per_s"] * summary["requests"] / summary["rate_per_s"],
        "wall_s": summary["requests"] / summary["rate_per_s"], "cpu_s": used,
        "p50": show_ms(summary["from_sent_ms"]["p50"]), "p99": show_ms(summary["from_sent_ms"]["p99"]),
    }  # fmt: skip


def show_ms(value):
    """Formats a percentile; none if too few requests are beyond it."""
    return "–" if value is None else f"{value:.2f}ms"


def load(target, rate, seconds, connections, cores="1", *flags):
    """Runs `headwater load rate` and returns its JSON. Exits on any error."""
    argv = ["--rate", rate, "--threads", 1, "--duration", f"{seconds:g}s", "--connections", connections]
    output = subprocess.run(
        ["taskset", "-c", cores, *map(str, [BINARY, "load", "rate", target, *argv, *flags, "--json", "-"])],
        capture_output=True, text=True,
    )  # fmt: skip
    if output.returncode:
        sys.exit(f"{target}: {output.stderr[-2000:]}")
    result = json.loads(output.stdout)
    if result["summary"]["errors"]:
        sys.exit(f"{target}: {result['summary']['errors']} errors: {result['examples']}")
    return result


def cpu(server):
    total = 0
    for pid in server.pids():
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def in_bytes(text):
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", text).groups()
    return float(number) * {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}[unit]


def report(args, rounds, kinds, ours):
    machine = f"{cpu_model()}, {os.cpu_count()} cores, {congestion.kernel()}"
    lines = [
        f"machine: {machine}",
        f"command: bench/run.py --rounds {args.rounds} --seconds {args.seconds:g}"
        f" --connections {args.connections} --segment {args.segment}",
        f"client: wrk, core 1; servers: core 0; nginx: {nginx_version()}, ready-made files, sendfile",
        "",
        "| work | headwater, a CPU-second | nginx | ratio (all rounds) | p50/p99 ours | theirs |",
        "|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        mine = [r for r in rounds if r["kind"] == kind and r["server"] == "headwater"]
        other = [r for r in rounds if r["kind"] == kind and r["server"] == "nginx"]
        if mine:
            lines.append(row(kind, mine, other))
    lines += ["", f"headwater's memory at the end: {resident_kb(ours) / 1024:.0f} MB resident (mapped film pages included)"]
    text = "\n".join(lines) + "\n"
    print(text)
    if not args.no_save:
        name = f"{time.strftime('%Y-%m-%d')}-{os.cpu_count()}-cores"
        folder = ROOT / "bench/runs"
        (folder / f"{name}.md").write_text(text)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rounds))


def row(kind, mine, other):
    by_bytes = statistics.median(r["bytes"] / max(r["requests"], 1) for r in mine) > 20_000
    unit = "bytes" if by_bytes else "requests"
    rate = lambda r: r[unit] / max(r["cpu_s"], 1e-9)
    show = (lambda v: f"{v / 1e9:.2f} GB") if by_bytes else (lambda v: f"{v:,.0f} requests")
    ratios = sorted(rate(a) / rate(b) for a, b in zip(mine, other))
    a, b = statistics.median(map(rate, mine)), statistics.median(map(rate, other))
    last = lambda rs: f"{rs[-1]['p50']}/{rs[-1]['p99']}"
    spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
    return f"| {kind} | {show(a)} | {show(b)} | {spread} | {last(mine)} | {last(other)} |"


def cpu_model():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found[1] if found else "unknown"


def nginx_version():
    return subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.split(": ")[-1].strip()


def resident_kb(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


if __name__ == "__main__":
    main()
