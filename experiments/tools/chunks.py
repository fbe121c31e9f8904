#!/usr/bin/env python3
"""chunks.py: asks an edge for chunks, one after the other, and joins what TCP saw of each.

Every request carries an id of its own; the edge's records (docs/records.md) are joined to it by that.
Prints one JSON object: seconds from asking (and connecting) to the last byte, bytes sent again, TCP's
figures at the first chunk's start and end, and those of the last one's CMSD header and the metrics.

  chunks.py http://10.77.0.2/1.m4s --records edge.jsonl --chunks 3 --cmcd 'bl=3000,tb=6000'
"""

import argparse
import json
import pathlib
import re
import statistics
import time
import urllib.parse
import urllib.request
import uuid
from http.client import HTTPConnection

ALL_SENT_WITHIN = 10


def main():
    args = arguments()
    url = urllib.parse.urlsplit(args.url)
    client, chunks = None, []
    for _ in range(args.chunks):
        if client is None or not args.keep:
            client = HTTPConnection(url.hostname, url.port or 80, timeout=args.timeout)
        chunks.append(chunk(client, url, args))
        # Open until then: of a connection that is gone nothing can be seen.
        chunks[-1]["tcp"] = joined(pathlib.Path(args.records), chunks[-1]["id"])
        if not args.keep:
            client.close()
        time.sleep(args.pause)
    print(json.dumps(told(chunks, metrics(url.netloc) if args.metrics else None, args.algorithm)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--records", required=True, help="what the edge writes with --records")
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0, help="seconds after each")
    parser.add_argument("--keep", action="store_true", help="one connection for all")
    parser.add_argument("--metrics", action="store_true", help="ask for the edge's metrics at the end, too")
    parser.add_argument("--algorithm", help="congestion control that the records should name")
    parser.add_argument("--cmcd", help="what the player says of itself (CMCD-Request and CMCD-Object)")
    parser.add_argument("--timeout", type=float, default=190)
    return parser.parse_args()


def chunk(client, url, args):
    """Asks for one, and reads it all."""
    name = uuid.uuid4().hex
    headers = {"X-Request-Id": name}
    if args.cmcd:
        headers |= {"CMCD-Object": args.cmcd}
    began = time.perf_counter()
    client.request("GET", url.path, headers=headers)
    answer = client.getresponse()
    size = 0
    while body := answer.read(1 << 16):
        size += len(body)
    if answer.status != 200:
        raise SystemExit(f"{url.path}: {answer.status}")
    ended = time.perf_counter()
    return {"id": name, "seconds": ended - began, "bytes": size, "cmsd": answer.headers.get("CMSD-Dynamic")}


def joined(path, name):
    """The records of one request, once TCP has said that the client has all of it."""
    until = time.monotonic() + ALL_SENT_WITHIN
    while True:
        # What follows the last line's end is still being written.
        whole, _, _ = path.read_text().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines() if name in line]
        tcp = [line for line in lines if line["record"] == "tcp"]
        if any(line["phase"] == "acked" for line in tcp):
            return tcp
        if time.monotonic() > until:
            raise SystemExit(f"no record says that {name} has arrived: {[line['phase'] for line in tcp]}")
        time.sleep(0.05)


def metrics(host):
    """Round trips and rates that the edge counted, as means of its histograms."""
    text = urllib.request.urlopen(f"http://{host}/metrics").read().decode()
    found = {}
    for name in ("tcp_rtt_seconds", "tcp_delivery_rate_bytes_per_second"):
        of = lambda what: sum(float(value) for value in re.findall(rf"^headwater_{name}_{what}\{{.*\}} (\S+)$", text, re.M))
        found[name] = of("sum") / max(1, of("count"))
    return found


def told(chunks, counted, algorithm):
    every = [line for one in chunks for line in one["tcp"]]
    cmsd = dict(re.findall(r"(\w+)=(\d+)", chunks[-1]["cmsd"] or ""))
    resent = [one["tcp"][-1]["bytes_retrans"] - one["tcp"][0]["bytes_retrans"] for one in chunks]
    return {
        "seconds": statistics.mean(one["seconds"] for one in chunks),
        "mbps": statistics.mean(8e-6 * one["bytes"] / one["seconds"] for one in chunks),
        "resent_share": sum(resent) / sum(one["bytes"] for one in chunks),
        # How far the round trip is stretched by what waits in the line's queue.
        "rtt_ratio": max(line["rtt_us"] for line in every) / every[-1]["min_rtt_us"],
        "samples": len(every) / len(chunks),
        "told_algorithm": statistics.mean(line["algorithm"] == algorithm for line in every),
        "first": phases(chunks[0]["tcp"]),
        "cmsd_rtt_ms": float(cmsd["rtt"]) if "rtt" in cmsd else None,
        "metrics_rtt_ms": counted and 1000 * counted["tcp_rtt_seconds"],
        "metrics_mbps": counted and 8e-6 * counted["tcp_delivery_rate_bytes_per_second"],
        "series": {
            "cwnd": [[line["since_us"] / 1e6, line["cwnd_packets"]] for line in chunks[0]["tcp"]],
            "rtt_ms": [[line["since_us"] / 1e6, line["rtt_us"] / 1000] for line in chunks[0]["tcp"]],
        },
    }


def phases(lines):
    """What a response's start says, the most that was seen, and what its end says."""
    figures = lambda line: {
        "rtt_ms": line["rtt_us"] / 1000,
        "min_rtt_ms": line["min_rtt_us"] / 1000,
        "cwnd": line["cwnd_packets"],
        "retrans": line["total_retrans_packets"],
        "delivery_mbps": line["delivery_rate_bytes_per_s"] * 8e-6,
    }
    all_of = [figures(line) for line in lines]
    most = {name: max(one[name] for one in all_of) for name in all_of[0]}
    return {"start": all_of[0], "most": most, "end": all_of[-1]}


if __name__ == "__main__":
    main()
