#!/usr/bin/env python3
"""Counts the instructions of the hot paths, and compares them with bench/callgrind.json.

Valgrind's callgrind runs real code: `media` on long films (crates/media/examples/hot.rs), and whole
requests through `headwater serve` and `headwater edge` with one worker each, from the socket to the
record. A count is the difference between two runs, one of which repeats the task N times more, so that
start-up cancels out. Instructions of the kernel and of other threads are not counted.

Exits with 1 if a path exceeds its stored count by more than the margin. If a path is faster by more
than the margin, requests an update of the file:

  scripts/callgrind.sh            builds, counts and compares (as `make test` does)
  scripts/callgrind.sh --renew    stores the new counts in bench/callgrind.json
  scripts/callgrind.sh --only ts  one path; its profile stays in target/callgrind

Counts depend on the compiler and the C library. With other versions the margin is wider.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

from backends import make_certificate

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORED = ROOT / "bench/callgrind.json"
OUT = ROOT / "target/callgrind"
# Margins by the first word of a path's name.
MARGINS = {"media": 0.03, "origin": 0.08, "edge": 0.08}
# The margin if the compiler or the C library differs from that of the file.
MARGIN_ELSEWHERE = 0.15

# Name, job of hot.rs, hours of its film, repetitions.
JOBS = [
    ("media: index of a 1-hour film", "index", 1, 2),
    ("media: cut 8 renditions of 1 hour", "cut", 1, 2),
    ("media: media playlist, 1 hour", "playlist", 1, 10),
    ("media: multivariant playlist, 8 renditions", "multivariant", 1, 20),
    ("media: MPD, 1 hour, 8 renditions", "mpd", 1, 4),
    ("media: plan of a 4-hour film's first segment", "first-segment", 4, 400),
    ("media: plan of a 4-hour film's last segment", "last-segment", 4, 400),
    ("media: TS of a 1 MB segment", "ts", 0, 20),
]
SEGMENT_URL = r"^(?!#)(\S+)$"
# Far longer than any run takes. A run that loops or hangs is killed and repeated. The elapsed time is the
# longer limit, since a run beside the tests gets a fraction of a core.
RUN_CPU_SECONDS = 240
RUN_SECONDS = 1200


def main():
    args = arguments()
    if reason := impossible():
        print(f"SKIPPED instruction counts: {reason}")
        return
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    counts, stored = {}, read_stored()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = [*media_tasks(args), *origin_tasks(args), *edge_tasks(args)]
        for found in pool.map(lambda task: count_settled(task, stored), tasks):
            counts |= found
    sys.exit(compare(args, stored, counts))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "target/callgrind-programs")
    parser.add_argument("--only", default="", help="only paths whose name contains this")
    parser.add_argument("--renew", action="store_true", help="store the new counts")
    return parser.parse_args()


def impossible():
    if platform.machine() != "x86_64":
        return f"the stored counts are of x86_64, this is {platform.machine()}"
    return None if shutil.which("valgrind") else "valgrind is not installed; run scripts/install.sh test"


def count_settled(task, stored):
    """Counts a task, up to four times while the count exceeds its margin. Work that a server does once, on
    another thread, may happen in only one of the two runs whose difference is the count."""
    for left in (3, 2, 1, 0):
        counts = task()
        if not left or not any(is_more(stored, name, count) for name, count in counts.items()):
            return counts
        print(f"repeated: {', '.join(counts)}", file=sys.stderr)


# ── counting ─────────────────────────────────────────────────────────────────────────────────


def valgrind(name, *command):
    """Returns the command of a program under callgrind, and its output file."""
    out = OUT / re.sub(r"\W+", "-", name)
    argv = ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}", *map(str, command)]
    return argv, out


def total(out):
    """Returns the instructions of the thread that serves requests, or of the only thread. The other threads of a server
    list the library and measure memory from time to time, so their counts depend on how long the run takes."""
    counts = {}
    for file in out.parent.glob(f"{out.name}-[0-9][0-9]"):
        counts[file.name[-2:]] = int(re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.M)[1])
    # The first thread only starts the server.
    main = counts.pop("01")
    return max(counts.values(), default=main)


def media_tasks(args):
    for name, job, hours, times in JOBS:
        if args.only in name:
            yield lambda name=name, work=(job, hours, times): {name: media_count(args, name, *work)}


def media_count(args, name, job, hours, times):
    counts = []
    for n in (times, 2 * times):
        argv, out = valgrind(f"{name} {n}", args.programs / "hot", job, hours, n)
        counts.append(again(lambda argv=argv, out=out: run_total(argv, out)))
    return (counts[1] - counts[0]) // times


def run_total(argv, out):
    subprocess.run(argv, check=True, timeout=RUN_SECONDS, preexec_fn=limit_cpu)
    return total(out)


def limit_cpu():
    """Limits the CPU time of the process. Runs between fork and exec."""
    resource.setrlimit(resource.RLIMIT_CPU, (RUN_CPU_SECONDS, RUN_CPU_SECONDS))


class Counted:
    """A server under callgrind, with one connection. Each request waits until all threads sleep, so that
    the number of waits is always the same."""

    def __init__(self, name, *command, wrap=lambda client: client):
        argv, self.out = valgrind(name, *command, "--listen", "127.0.0.1:0", "--workers", 1)
        # Valgrind logs each unknown openat2 call; the server falls back to openat.
        with open(f"{self.out}.log", "w") as log:
            self.process = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=limit_cpu
            )
        self.limit = threading.Timer(RUN_SECONDS, self.process.kill)
        self.limit.start()
        try:
            port = (re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline()) or self.ended())[1]
            self.client = wrap(socket.create_connection(("127.0.0.1", int(port)), timeout=RUN_SECONDS))
            self.responses = self.client.makefile("rb")
        except BaseException:
            self.close()
            raise

    def get(self, path):
        self.rest()
        self.client.sendall(f"GET {path} HTTP/1.1\r\nHost: films\r\nUser-Agent: count\r\nAccept: */*\r\n\r\n".encode())
        status, length = self.responses.readline().decode(), 0
        while (line := self.responses.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = self.responses.read(length)
        if " 200 " not in status:
            raise RuntimeError(f"{path}: {status}")
        return body.decode(errors="replace")

    def rest(self):
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        quiet = 0
        while quiet < 3:
            # A zombie process still has a task, which never sleeps again.
            if self.process.poll() is not None:
                self.ended()
            states = [(task / "stat").read_text().rsplit(") ", 1)[1][0] for task in tasks.iterdir()]
            quiet = quiet + 1 if set(states) == {"S"} else 0
            time.sleep(0.0002)

    def end(self):
        self.rest()
        self.client.close()
        self.process.terminate()
        if self.process.wait():
            self.ended()
        return total(self.out)

    def ended(self):
        raise RuntimeError(f"{self.out.name} ended with {self.process.wait()}")

    def close(self):
        self.limit.cancel()
        self.process.kill()
        self.process.wait()


def server_count(name, make, warm, path, times):
    """Returns the instructions of one request, from a server with `times` requests and one with twice as
    many."""
    counts = [again(lambda n=n: server_total(f"{name} {n}", make, warm, path, n)) for n in (times, 2 * times)]
    return {name: (counts[1] - counts[0]) // times}


def server_total(run, make, warm, path, times):
    with contextlib.closing(make(run)) as server:
        paths = warm(server)
        for at in range(times):
            server.get(path(paths, at))
        return server.end()


def again(count):
    """Repeats a run after an assertion in callgrind itself (3.19, threads.c), which ends about one in five
    runs of the origin."""
    for _ in range(9):
        try:
            return count()
        except (OSError, RuntimeError, subprocess.SubprocessError) as why:
            print(f"repeating: {why}", file=sys.stderr)
    return count()


# ── the origin, over the built-in film ───────────────────────────────────────────────────────


def film(server):
    """Requests playlists and a segment of the built-in film in the order of a player. Each is requested
    several times first, so that one-time work is done."""
    multivariant = "/demo/.m3u8"
    media = resolve(multivariant, re.search(SEGMENT_URL, server.get(multivariant), re.M)[1])
    segment = resolve(media, re.search(SEGMENT_URL, server.get(media), re.M)[1])
    paths = {"health": "/healthz", "playlist": media, "segment": segment, "MPD": "/demo/.mpd"}
    for path in paths.values():
        for _ in range(4):
            server.get(path)
    return paths


def resolve(base, uri):
    return urllib.parse.urljoin("http://x" + base, uri).removeprefix("http://x")


def origin_tasks(args):
    # The segment cache has room for a plan only: callgrind 3.19 fails an assertion when the arena is first
    # written to. Transport streams are always stored in the arena, so they are counted in `media` only.
    cached = ["--segment", "60s", "--segment-memory", "1MiB"]
    uncached = [*cached[:2], "--segment-memory", "0B"]
    for name, what, flags, times in (
        ("origin: health, the cost of any request", "health", cached, 1000),
        ("origin: media playlist, cached", "playlist", cached, 1000),
        ("origin: MPD, cached", "MPD", cached, 1000),
        ("origin: CMAF segment, repeated request", "segment", cached, 800),
        ("origin: CMAF segment, planned again", "segment", uncached, 200),
    ):
        if args.only in name:
            make = lambda run, flags=flags: Counted(run, args.programs / "serve", ROOT / "media", *flags)
            yield lambda name=name, make=make, what=what, times=times: server_count(
                name, make, film, lambda paths, _, what=what: paths[what], times
            )
    # Many requests: the entropy for the handshake takes a random number of instructions.
    if args.only in (name := "origin: media playlist, cached, TLS"):
        certificate, key = make_certificate(OUT)
        tls = [*cached, "--tls-cert", certificate, "--tls-key", key]
        context = ssl._create_unverified_context()
        make = lambda run: Counted(run, args.programs / "serve", ROOT / "media", *tls, wrap=context.wrap_socket)
        yield lambda name=name, make=make: server_count(name, make, film, lambda paths, _: paths["playlist"], 2000)


# ── the edge ─────────────────────────────────────────────────────────────────────────────────


class Upstream:
    """An origin that returns as many bytes as the first path component names, cacheable for an hour."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.socket.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.respond, args=(client,), daemon=True).start()

    def respond(self, client):
        requests = client.makefile("rb")
        while line := requests.readline():
            while requests.readline().strip():
                pass
            size = int(line.split()[1].split(b"/")[1])
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nCache-Control: max-age=3600\r\nETag: \"{size}\"\r\n\r\n"
            client.sendall(head.encode() + bytes(size))


def edge_tasks(args):
    upstream = None
    for name, size, miss, times in (
        ("edge: hit, 5 KB", 5000, False, 1000),
        ("edge: miss, 5 KB", 5000, True, 600),
    ):
        if args.only in name:
            upstream = upstream or Upstream()
            make = lambda run: Counted(run, args.programs / "edge", "--origin", upstream.url)
            path = lambda _, at, size=size, miss=miss: f"/{size}/{at if miss else 0}"
            warm = lambda server, size=size: [server.get(f"/{size}/{['0', f'w{at}'][at % 2]}") for at in range(20)]
            yield lambda name=name, make=make, warm=warm, path=path, times=times: server_count(
                name, make, warm, path, times
            )


# ── comparing ────────────────────────────────────────────────────────────────────────────────


@functools.cache
def made_with():
    output_of = lambda *command: subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return {
        "rustc": output_of("rustc", "--version").split()[1],
        "libc": platform.libc_ver()[1],
        "valgrind": output_of("valgrind", "--version").removeprefix("valgrind-"),
    }


def read_stored():
    return json.loads(STORED.read_text()) if STORED.exists() else {"made_with": None, "counts": {}}


def margin_of(stored, name):
    return MARGINS[name.split(":")[0]] if stored["made_with"] == made_with() else MARGIN_ELSEWHERE


def is_more(stored, name, count):
    before = stored["counts"].get(name)
    return before is not None and count / before - 1 > margin_of(stored, name)


def compare(args, stored, counts):
    tools = made_with()
    elsewhere = stored["made_with"] != tools
    more, less = [], []
    print(f"| instructions | now | stored | change |\n|{'---|' * 4}")
    for name, count in counts.items():
        before = stored["counts"].get(name)
        change = count / before - 1 if before else 0
        margin = margin_of(stored, name)
        print(f"| {name} | {count:,} | {f'{before:,}' if before else 'new'} | {change:+.1%} |")
        if not before or change < -margin:
            less.append(name)
        if is_more(stored, name, count):
            more.append(f"{name}: more than {margin:.0%} above the stored count")
    if args.renew:
        all_counts = {**stored["counts"], **counts} if args.only else counts
        STORED.write_text(json.dumps({"made_with": tools, "counts": all_counts}, indent=2) + "\n")
        print(f"stored in {STORED.relative_to(ROOT)}")
        return 0
    if elsewhere:
        print(f"made with {tools}, stored with {stored['made_with']}: the margin is {MARGIN_ELSEWHERE:.0%}")
    for name in less:
        print(f"{name}: faster than stored, or new: store it with scripts/callgrind.sh --renew")
    for what in more:
        print(f"FAILED {what}")
    if more:
        print("see callgrind_annotate target/callgrind/FILE; if the cost is justified, store it with --renew and give the reason in the commit")
    missing = [] if args.only else sorted(set(stored["counts"]) - set(counts))
    for name in missing:
        print(f"FAILED {name}: stored, but no longer counted")
    return 1 if more or missing else 0


if __name__ == "__main__":
    main()
