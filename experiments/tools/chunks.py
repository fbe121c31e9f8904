#!/usr/bin/env python3
"""chunks.py: requests chunks from a server, one after the other, and joins the edge's TCP records of each.

Every request has a unique id, which joins it to the edge's records (docs/records.md). Prints one JSON
object: seconds from the request (including the connection) to the last byte, retransmitted bytes, the TCP
figures at the start and the end of the first chunk, and those of the last CMSD header and the metrics.
Other servers have no records; the kernel's counters in the network namespace of --server-pid include them.

  chunks.py http://10.77.0.2/1.m4s --records edge.jsonl --chunks 3 --cmcd 'bl=3000,tb=6000'
  chunks.py https://10.77.0.2/1.m4s --ca certificate.pem --server-pid nginx.pid
"""

import argparse
import json
import pathlib
import re
import ssl
import statistics
import time
import urllib.parse
import urllib.request
import uuid
from http.client import HTTPConnection, HTTPSConnection

ALL_SENT_WITHIN = 10


def main():
    args = arguments()
    url = urllib.parse.urlsplit(args.url)
    client, chunks = None, []
    before = tcp_counters(args.server_pid)
    for _ in range(args.chunks):
        if client is None or not args.keep:
            client = open_connection(url, args)
        chunks.append(fetch_chunk(client, url, args))
        # The connection stays open until then, because the edge cannot sample a closed one.
        chunks[-1]["tcp"] = tcp_records(pathlib.Path(args.records), chunks[-1]["id"]) if args.records else []
        if not args.keep:
            client.close()
        time.sleep(args.pause)
    result = summarize(chunks)
    if args.records:
        result |= summarize_records(chunks, read_metrics(url.netloc) if args.metrics else None, args.algorithm)
    if args.server_pid:
        result |= summarize_counters(before, tcp_counters(args.server_pid))
    print(json.dumps(result))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--records", help="file that the edge writes with --records")
    parser.add_argument("--server-pid", help="file with the id of the server's process")
    parser.add_argument("--ca", help="certificate in PEM that an https server presents; requires TLS 1.3")
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0, help="seconds after each chunk")
    parser.add_argument("--keep", action="store_true", help="use one connection for all chunks")
    parser.add_argument("--metrics", action="store_true", help="also request the edge's metrics at the end")
    parser.add_argument("--algorithm", help="expected congestion control of the records")
    parser.add_argument("--cmcd", help="CMCD of the player, sent as CMCD-Object")
    parser.add_argument("--timeout", type=float, default=190)
    return parser.parse_args()


def open_connection(url, args):
    if url.scheme == "http":
        return HTTPConnection(url.hostname, url.port or 80, timeout=args.timeout)
    context = ssl.create_default_context(cafile=args.ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return HTTPSConnection(url.hostname, url.port or 443, timeout=args.timeout, context=context)


def fetch_chunk(client, url, args):
    """Requests one chunk and reads its whole body."""
    name = uuid.uuid4().hex
    headers = {"X-Request-Id": name}
    if args.cmcd:
        headers |= {"CMCD-Object": args.cmcd}
    began = time.perf_counter()
    client.request("GET", url.path, headers=headers)
    response = client.getresponse()
    size = 0
    while body := response.read(1 << 16):
        size += len(body)
    if response.status != 200:
        raise SystemExit(f"{url.path}: {response.status}")
    ended = time.perf_counter()
    return {"id": name, "seconds": ended - began, "bytes": size, "cmsd": response.headers.get("CMSD-Dynamic")}


def tcp_records(path, name):
    """Returns the TCP records of a request, once the client has acknowledged the whole response."""
    until = time.monotonic() + ALL_SENT_WITHIN
    while True:
        # The last line may be incomplete.
        whole, _, _ = path.read_text().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines() if name in line]
        tcp = [line for line in lines if line["record"] == "tcp"]
        if any(line["phase"] == "acked" for line in tcp):
            return tcp
        if time.monotonic() > until:
            raise SystemExit(f"no record confirms the delivery of {name}: {[line['phase'] for line in tcp]}")
        time.sleep(0.05)


def tcp_counters(pid_file):
    """Returns the kernel's TCP counters in the network namespace of a process."""
    if not pid_file:
        return None
    pid = pathlib.Path(pid_file).read_text().strip()
    lines = pathlib.Path(f"/proc/{pid}/net/snmp").read_text().splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
    return dict(zip(names, map(int, values)))


def summarize_counters(before, after):
    delta = lambda name: after[name] - before[name]
    # Linux does not count retransmitted segments in OutSegs.
    return {"resent_segments_share": delta("RetransSegs") / max(1, delta("OutSegs"))}


def read_metrics(host):
    """Returns the means of the edge's histograms of round trips and delivery rates."""
    text = urllib.request.urlopen(f"http://{host}/metrics").read().decode()
    found = {}
    for name in ("tcp_rtt_seconds", "tcp_delivery_rate_bytes_per_second"):
        of = lambda what: sum(float(value) for value in re.findall(rf"^headwater_{name}_{what}\{{.*\}} (\S+)$", text, re.M))
        found[name] = of("sum") / max(1, of("count"))
    return found


def summarize(chunks):
    seconds = [one["seconds"] for one in chunks]
    return {
        "seconds": statistics.mean(seconds),
        "spread": statistics.stdev(seconds) / statistics.mean(seconds) if len(seconds) > 1 else None,
        "mbps": statistics.mean(8e-6 * one["bytes"] / one["seconds"] for one in chunks),
        # Only records contain these.
        "resent_share": None,
        "rtt_ratio": None,
    }


def summarize_records(chunks, counted, algorithm):
    every = [line for one in chunks for line in one["tcp"]]
    cmsd = dict(re.findall(r"(\w+)=(\d+)", chunks[-1]["cmsd"] or ""))
    resent = [one["tcp"][-1]["bytes_retrans"] - one["tcp"][0]["bytes_retrans"] for one in chunks]
    return {
        "resent_share": sum(resent) / sum(one["bytes"] for one in chunks),
        # The factor by which queueing lengthens the round trip.
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
    """Returns the figures at the start of a response, their maxima, and those at its end."""
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
