#!/usr/bin/env python3
"""watch.py: samples the traffic, connections, processor time and memory of an origin under load.

Runs in the origin's namespace. It reads the bytes of both interfaces from /proc/net/dev at the same time:
IN is received from the storage, OUT is sent to the clients, both with headers and retransmissions, as a
cloud provider counts them. Prints one JSON object with totals and, under "series", figures over time.

  watch.py --clients 10.77.0.1 --storage 10.77.1.2:443 --pid origin.pid --until load.json
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import struct
import time

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
ESTABLISHED, TIME_WAIT = 1, 6


def main():
    args = arguments()
    until = pathlib.Path(args.until)
    clients, (storage, port) = args.clients.split(":")[0], args.storage.split(":")
    time.sleep(args.begin)
    seen = [take_sample(args, device(clients), device(storage), to_hex(storage), int(port))]
    deadline = time.monotonic() + args.at_most
    while not until.exists() and time.monotonic() < deadline:
        time.sleep(args.every)
        seen.append(take_sample(args, device(clients), device(storage), to_hex(storage), int(port)))
    print(json.dumps(summarize(seen)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", required=True, help="address in the clients' network")
    parser.add_argument("--storage", required=True, help="ADDRESS:PORT of the storage")
    parser.add_argument("--pid", required=True, help="file with the origin's process id")
    parser.add_argument("--from", dest="begin", type=float, default=0, help="seconds before the first sample")
    parser.add_argument("--until", required=True, help="file that appears when the load has finished")
    parser.add_argument("--every", type=float, default=0.25, help="seconds between samples")
    parser.add_argument("--at-most", type=float, default=600, help="seconds")
    return parser.parse_args()


def take_sample(args, front, back, address, port):
    """Reads all counters."""
    pid = pathlib.Path(args.pid).read_text().strip()
    rows = dict(line.split(":") for line in pathlib.Path("/proc/net/dev").read_text().splitlines()[2:])
    cards = {name.strip(): [int(word) for word in row.split()] for name, row in rows.items()}
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    states = connections(address, port)
    return {
        "t": time.monotonic(),
        # In /proc/net/dev, the first column is received bytes and the ninth is sent bytes.
        "in": cards[back][0],
        "out": cards[front][8],
        "open": states.count(ESTABLISHED),
        "waiting": states.count(TIME_WAIT),
        "cpu": (int(stat[11]) + int(stat[12])) / TICKS,
        "rss": int(stat[21]) * PAGE,
        "anonymous": anonymous_bytes(pid),
        "opened": opened_connections(),
    }


def connections(address, port):
    """Returns the kernel's state numbers of the connections to the storage."""
    other = f"{address}:{port:04X}"
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(line[3], 16) for line in lines if line[2] == other]


def anonymous_bytes(pid):
    """Returns the resident memory of a process that no file backs: its heap and its stacks."""
    line = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


def opened_connections():
    """Returns the number of connections that this namespace has opened so far (TCP ActiveOpens, RFC 4022)."""
    names, values = [line.split() for line in pathlib.Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Tcp:")]
    return int(values[names.index("ActiveOpens")])


def device(address):
    """Returns the interface whose network contains an address."""
    for line in pathlib.Path("/proc/net/route").read_text().splitlines()[1:]:
        name, to, _, _, _, _, _, mask, *_ = line.split()
        if int(to_hex(address), 16) & int(mask, 16) == int(to, 16) and int(mask, 16):
            return name
    raise SystemExit(f"no interface has a route to {address}")


def to_hex(address):
    """Returns an address in the format of /proc/net."""
    return f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}"


def summarize(seen):
    first, last = seen[0], seen[-1]
    took = last["t"] - first["t"]
    grown = {name: last[name] - first[name] for name in ("in", "out", "cpu", "opened")}
    opened = [one["open"] for one in seen[1:]]
    pairs = list(zip(seen, seen[1:]))
    paired = lambda values: [[round(b["t"] - first["t"], 3), value] for (_, b), value in zip(pairs, values)]
    rate = lambda name: [8e-6 * (b[name] - a[name]) / (b["t"] - a["t"]) for a, b in pairs]
    return {
        "seconds": took,
        "in_mbps": 8e-6 * grown["in"] / took,
        "out_mbps": 8e-6 * grown["out"] / took,
        "out_in": grown["out"] / max(1, grown["in"]),
        "in_out": grown["in"] / max(1, grown["out"]),
        "cpu_s": grown["cpu"],
        "cpu_ms_per_mb": 1e9 * grown["cpu"] / max(1, grown["out"]),
        "rss_mb": max(one["rss"] for one in seen) / 1e6,
        "anonymous_mb": max(one["anonymous"] for one in seen) / 1e6,
        # ESTABLISHED and TIME_WAIT are separate, because only the former cost the storage memory.
        "open_mean": statistics.mean(opened),
        "open_max": max(opened),
        # Mean change between two samples, relative to the mean number.
        "open_unsteady": statistics.mean(abs(b - a) for a, b in zip(opened, opened[1:])) / max(1, statistics.mean(opened)),
        "waiting_mean": statistics.mean(one["waiting"] for one in seen[1:]),
        "opened_per_s": grown["opened"] / took,
        "waiting_max": max(one["waiting"] for one in seen),
        "series": {
            "in_mbps": paired(rate("in")),
            "out_mbps": paired(rate("out")),
            "open": paired(opened),
            "closing": paired([one["waiting"] for one in seen[1:]]),
            "cpu": paired([(b["cpu"] - a["cpu"]) / (b["t"] - a["t"]) for a, b in pairs]),
            "rss_mb": paired([one["rss"] / 1e6 for one in seen[1:]]),
        },
    }


if __name__ == "__main__":
    main()
