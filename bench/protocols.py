#!/usr/bin/env python3
"""Measures the effect of HTTP/2 to the storage: segments of 983 KB over TLS from nginx, with a round trip
of 15 ms, on sixteen HTTP/1.1 connections, and on one and four HTTP/2 connections with as many concurrent
requests. The client is h2load, so this tests decision 5, not our code. Compare figures of one run only.
Saves the run under bench/runs/.

  python3 bench/protocols.py --rounds 3
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

from backends import ROOT, Relay, free_ports, make_certificate, wait_for, workspace

WAYS = {
    "HTTP/1.1, 16 connections": ["--h1", "-c16"],
    "HTTP/2, 1 connection of 16 streams": ["-c1", "-m16", "-w24", "-W24"],
    "HTTP/2, 4 connections of 4 streams": ["-c4", "-m4", "-w24", "-W24"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rtt-ms", type=float, default=15)
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_args()
    with workspace("protocols") as (work, ended):
        nginx, port = serve(work)
        ended += [nginx.wait, nginx.terminate]
        relay = Relay(port, args.rtt_ms)
        ended.append(relay.stop)
        found = measure(args, relay.port)
    report(args, found)


def measure(args, port):
    """Returns MB/s and mean milliseconds of each round, per protocol."""
    found = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way, flags in WAYS.items():
            argv = ["h2load", f"-D{args.seconds}", "--warm-up-time=1", *flags, f"https://127.0.0.1:{port}/segment"]
            output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            requests = float(re.search(r"finished in [^,]+, ([\d.]+) req/s", output)[1])
            mean, unit = re.search(r"time for request: +\S+ +\S+ +([\d.]+)(\w+)", output).groups()
            found[way].append((requests * 0.983, float(mean) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]))
    return found


def report(args, found):
    cores = os.cpu_count()
    lines = ["# HTTP/1.1 and HTTP/2 to the storage", "",
             f"`python3 bench/protocols.py --rounds {args.rounds} --seconds {args.seconds}`, {cores} cores for all of it: nginx with TLS,",
             f"a relay in Python that adds {args.rtt_ms:g} ms to a round trip, h2load; segments of 983 KB, 16 under way.", "",
             "| | MB/s (least–most) | mean ms |", "|---|---|---|"]  # fmt: skip
    for way, rounds in found.items():
        rates = sorted(rate for rate, _ in rounds)
        mean = statistics.median(ms for _, ms in rounds)
        lines.append(f"| {way} | {statistics.median(rates):.0f} ({rates[0]:.0f}–{rates[-1]:.0f}) | {mean:.1f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if not args.no_save:
        path = ROOT / "bench/runs" / f"{time.strftime('%Y-%m-%d')}-{cores}-cores-protocols.md"
        path.write_text(text)
        print(f"saved as {path.relative_to(ROOT)}", file=sys.stderr)


def serve(work):
    certificate, key = make_certificate(work)
    (work / "segment").write_bytes(os.urandom(983_000))
    [port] = free_ports(1)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temp = " ".join(f"{kind}_temp_path {work}/{kind};" for kind in kinds)
    (work / "conf").write_text(
        f"daemon off; master_process off; pid {work}/pid; error_log {work}/err; events {{ }}"
        f" http {{ access_log off; keepalive_requests 1000000; {temp} server {{ listen 127.0.0.1:{port} ssl http2;"
        f" ssl_certificate {certificate}; ssl_certificate_key {key}; root {work}; }} }}"
    )
    nginx = subprocess.Popen(["nginx", "-p", work, "-c", work / "conf"], stderr=subprocess.DEVNULL)
    wait_for(port, nginx)
    return nginx, port


if __name__ == "__main__":
    main()
