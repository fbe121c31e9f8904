"""The measurements of bench/edge.py other than throughput: tail latencies at half of saturation, memory
of idle clients, and one long object.
"""

import json
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

IDLE = 10_000
# Clients before the measurement, because a server allocates some memory for its first clients only.
IDLE_FIRST = 200
# The least body length of a response.
IDLE_ANSWER_BYTES = 5_000
LONG_BYTES = 1 << 30
TAIL_KINDS = {"hit 5 KB": "/small/1", "hit 1 MB": "/large/1"}


def tails(args, binary, caches, rounds):
    """Returns p99.9 of the latency from the scheduled time, at half the rate of the slowest cache. At half
    the rate of the fastest one, the client on core 1 would be the bottleneck."""
    found = []
    for number in range(args.rounds):
        for kind, path in TAIL_KINDS.items():
            turn = number % len(caches)
            most = [
                statistics.median(
                    r["requests"] / r["wall_s"]
                    for r in rounds
                    if r["kind"] == kind and r["server"] == cache.name
                )
                for cache in caches
            ]
            for cache in caches[turn:] + caches[:turn]:
                found.append({"kind": kind, "server": cache.name, "round": number,
                              **tail(args, binary, cache.url + path, min(most) / 2)})  # fmt: skip
    return found


def tail(args, binary, url, rate):
    # p99.9 needs ten requests beyond it.
    seconds = max(args.seconds, 10500 / rate)
    output = subprocess.run(
        ["taskset", "-c", "1", binary, "load", "rate", url, "--rate", f"{rate:.0f}", "--threads", "1",
         "--duration", f"{seconds:g}s", "--connections", str(args.connections), "--json", "-"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    summary = json.loads(output)["summary"]
    due = summary["from_due_ms"]
    return {"rate": rate, "p50_ms": due["p50"], "p99_ms": due["p99"], "p999_ms": due["p99.9"],
            "lag_p99_ms": summary["lag_ms"]["p99"], "errors": summary["errors"]}  # fmt: skip


def idle(cache):
    """Returns private bytes per client with 10,000 idle clients: for all, and for the second half. The cache
    is new, because clients would otherwise reuse heap memory of earlier work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, IDLE + IDLE_FIRST + 1000), hard))
    host, port = cache.url.removeprefix("http://").split(":")
    request = f"GET /small/1 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    clients = []

    def come(count):
        for _ in range(count):
            client = socket.create_connection((host, int(port)), timeout=20)
            clients.append(client)
            client.sendall(request)
            length = 0
            while length < IDLE_ANSWER_BYTES:
                length += len(client.recv(1 << 16)) or sys.exit(f"{cache.name} closes the connection of client {len(clients)}")
        time.sleep(0.5)
        return private_bytes(cache)

    try:
        before, half, all_ = come(IDLE_FIRST), come(IDLE // 2), come(IDLE // 2)
        return {"each": (all_ - before) / IDLE, "each_of_second_half": (all_ - half) / (IDLE // 2)}
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def private_bytes(cache):
    """Returns the memory that the processes of a server wrote and do not share. Pages of the executable are
    left out: they are private or shared depending on what else runs from the same file."""
    total = 0
    for pid in cache.pids():
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        lines = dict(line.split(":", 1) for line in text.splitlines()[1:])
        total += int(lines["Private_Dirty"].split()[0]) << 10
    return total


def long_object(cache, work):
    """Returns the peak memory while 1 GiB is sent to four clients at once."""
    path = work / "files" / "long"
    with open(path, "wb") as file:
        file.truncate(LONG_BYTES)
    lengths = []

    def fetch():
        with urllib.request.urlopen(cache.url + "/long") as response:
            length = 0
            while piece := response.read(1 << 20):
                length += len(piece)
            lengths.append(length)

    clients = [threading.Thread(target=fetch) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    os.unlink(path)
    if lengths != [LONG_BYTES] * len(clients):
        raise RuntimeError(f"1 GiB was received as {lengths}")
    status = pathlib.Path(f"/proc/{cache.process.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) << 10
