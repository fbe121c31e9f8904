#!/usr/bin/env python3
"""Measures what HTTP/2 to the storage would bring: segments of 983 KB over TLS from nginx, behind a
relay that makes a round trip 15 ms long, on sixteen connections of HTTP/1.1 and on one and four of
HTTP/2 with as many requests under way. The client is h2load, so nothing of ours is judged, only the
choice of decision 5. Prints a table; compare within one run only.

  python3 bench/protocols.py --rounds 3
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

import storage

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
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-protocols-"))
    os.chmod(work, 0o755)
    nginx = relay = None
    try:
        nginx, port = serve(work)
        relay = storage.Relay(port, args.rtt_ms)
        found = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way, flags in WAYS.items():
                words = ["h2load", f"-D{args.seconds}", "--warm-up-time=1", *flags, f"https://127.0.0.1:{relay.port}/segment"]
                said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
                requests = float(re.search(r"finished in [^,]+, ([\d.]+) req/s", said)[1])
                mean, unit = re.search(r"time for request: +\S+ +\S+ +([\d.]+)(\w+)", said).groups()
                found[way].append((requests * 0.983, float(mean) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]))
        print("| | MB/s (least–most) | mean ms |\n|---|---|---|")
        for way, rounds in found.items():
            rates = sorted(rate for rate, _ in rounds)
            mean = statistics.median(ms for _, ms in rounds)
            print(f"| {way} | {statistics.median(rates):.0f} ({rates[0]:.0f}–{rates[-1]:.0f}) | {mean:.1f} |")
    finally:
        if relay:
            relay.stop()
        if nginx:
            nginx.terminate()
            nginx.wait()
        shutil.rmtree(work, ignore_errors=True)


def serve(work):
    certificate, key = storage.make_certificate(work)
    (work / "segment").write_bytes(os.urandom(983_000))
    [port] = storage.free_ports(1)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temp = " ".join(f"{kind}_temp_path {work}/{kind};" for kind in kinds)
    (work / "conf").write_text(
        f"daemon off; master_process off; pid {work}/pid; error_log {work}/err; events {{ }}"
        f" http {{ access_log off; keepalive_requests 1000000; {temp} server {{ listen 127.0.0.1:{port} ssl http2;"
        f" ssl_certificate {certificate}; ssl_certificate_key {key}; root {work}; }} }}"
    )
    nginx = subprocess.Popen(["nginx", "-p", work, "-c", work / "conf"], stderr=subprocess.DEVNULL)
    storage.wait_for(port, nginx)
    return nginx, port


if __name__ == "__main__":
    main()
