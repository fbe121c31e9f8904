#!/usr/bin/env python3
"""Measures films in an object store: pooled and fresh connections, cold titles, and configurations A to F.

The storage is an S3 server that checks signatures (seaweedfs, scripts/storage.sh) with TLS, behind a
relay with a round trip of 15 ms. One film is that of document 2: 4891 s, video of 3894 kb/s and audio of
132 kb/s in separate files, segments of 2 s, with index MP4s and a server manifest. The other is a
two-hour film in one file without an index. Measures

- pooled and fresh connections, and HTTP/2 on one connection: throughput, latencies, connections;
- the first segment of a cold title: sequential requests, and milliseconds;
- OUT/IN for experiments/configurations A to F: bytes to clients divided by bytes from the storage, in
  the same interval, after the caches of each configuration are filled.

The cache of B, D and E is an nginx that caches server manifests and index MP4s and passes everything
else. Fails if a property that follows from the design does not hold. Saves the run under bench/runs/.

  python3 bench/storage.py --seconds 6 --rounds 3
"""

import argparse
import calendar
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse
from http.client import HTTPConnection

from backends import ACCESS, ROOT, S3, SECRET, Relay, free_ports, make_certificate, make_films, wait_for, workspace


def main():
    args = arguments()
    with workspace("storage") as (work, ended):
        certificate, key = make_certificate(work)
        films = make_films(work, args)
        store = S3(work, certificate, key)
        ended.append(store.stop)
        for film in sorted(films.iterdir()):
            store.put(film)
        shutil.rmtree(films)
        relay = Relay(store.tls_port, args.rtt_ms)
        ended.append(relay.stop)
        bench = Bench(args, work, certificate, relay)
        ended.append(bench.stop)
        bench.wait()
        parts = [measure(bench) for name, measure in PARTS.items() if args.only in (None, name)]
    report(args, parts)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rtt-ms", type=float, default=15)
    parser.add_argument("--seconds", type=float, default=6, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of pooled and fresh connections")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--film-seconds", type=int, default=4891)
    parser.add_argument("--cold-seconds", type=int, default=7200)
    parser.add_argument("--only", choices=PARTS, help="run one of the three measurements")
    parser.add_argument("--binary", default=ROOT / "target/release/headwater")
    parser.add_argument("--no-save", action="store_true")
    return parser.parse_args()


# ── servers ───────────────────────────────────────────────────────────────────────────────


class Origin:
    """`headwater serve` with the bucket as its library, and a client connection to it."""

    def __init__(self, bench, *flags):
        endpoint = f"aws_endpoint_url=https://localhost:{bench.relay.port}"
        argv = [bench.args.binary, "serve", "s3://films", "--listen", "127.0.0.1:0", "--segment", "2s",
                 "--storage-ca", bench.certificate, "--storage-option", endpoint, *flags]  # fmt: skip
        keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen(list(map(str, argv)), env={**os.environ, **keys}, **pipes)
        self.host = self.process.stdout.readline().removeprefix("listening on http://").strip()
        self.client = HTTPConnection(self.host)

    def request(self, path):
        self.client.request("GET", path)
        response = self.client.getresponse()
        return response.status, response.read(), response.headers

    def get(self, path):
        status, body, headers = self.request(path)
        if status != 200:
            raise SystemExit(f"{path}: {status} {headers.get('Headwater-Error')}")
        return body

    def metrics(self):
        found = re.findall(r"^(headwater_storage_\S+) (\d+)$", self.get("/metrics").decode(), re.M)
        return {name: int(value) for name, value in found}

    def lists(self, title):
        """Returns the media playlists: audio, then video."""
        text = self.get(f"{title}/.m3u8").decode()
        names = [name for name in re.findall(r'URI="([^"]+)"', text) if "keyframes" not in name]
        names += [line for line in text.splitlines() if line and line[0] != "#"]
        return [urllib.parse.urljoin(f"{title}/", name) for name in names]

    def segments(self, playlist):
        lines = self.get(playlist).decode().splitlines()
        return [urllib.parse.urljoin(playlist, line) for line in lines if line and line[0] != "#"]

    def first_segment(self, playlist):
        """Returns only the first URL: resolving thousands of names takes longer than serving them."""
        text = self.get(playlist).decode()
        return urllib.parse.urljoin(playlist, re.search(r"^(?!#)(\S+)$", text, re.M)[1])

    def stop(self):
        self.client.close()
        self.process.terminate()
        self.process.wait()


class Bench:
    """The storage, relay and films that all measurements share."""

    def __init__(self, args, work, certificate, relay):
        self.args, self.work, self.certificate, self.relay = args, work, certificate, relay
        self.cache = None

    def origin(self, *flags):
        return Origin(self, *flags)

    def wait(self):
        """Waits until objects that were written through the filer are visible through S3."""
        origin = self.origin()
        until = time.time() + 30
        while origin.request("/film.ism/.mpd")[0] != 200:
            if time.time() > until:
                raise SystemExit(f"the storage has no film: {origin.request('/film.ism/.mpd')}")
            time.sleep(0.2)
        origin.stop()

    def start_cache(self):
        """Starts an nginx that caches server manifests and index MP4s, and forwards signatures."""
        self.stop()
        at = self.work / "cache"
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir()
        [port] = free_ports(1)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temp = " ".join(f"{kind}_temp_path {at}/{kind};" for kind in kinds)
        passing = ("proxy_pass https://storage; proxy_http_version 1.1; proxy_set_header Connection '';"
                   " proxy_set_header Host $http_host; proxy_set_header Range $http_range;"
                   " proxy_max_temp_file_size 0; proxy_buffers 16 64k;")  # fmt: skip
        keeping = "proxy_cache kept; proxy_cache_key $uri$http_range; proxy_cache_valid 200 206 1h; proxy_cache_lock on;"
        (at / "conf").write_text(
            f"daemon off; master_process off; pid {at}/pid; error_log {at}/err; events {{ worker_connections 4096; }}"
            f" http {{ access_log off; keepalive_requests 1000000; {temp}"
            f" proxy_cache_path {at}/kept keys_zone=kept:10m max_size=1g;"
            f" upstream storage {{ server 127.0.0.1:{self.relay.port}; keepalive 64; }}"
            f" server {{ listen 127.0.0.1:{port};"
            f" location / {{ {passing} }} location ~* \\.(ism|mp4)$ {{ {passing} {keeping} }} }} }}"
        )
        self.cache = subprocess.Popen(["nginx", "-p", at, "-c", at / "conf"], stderr=subprocess.DEVNULL)
        wait_for(port, self.cache)
        return port

    def stop(self):
        if self.cache:
            self.cache.terminate()
            self.cache.wait()
            self.cache = None


# ── measurements ──────────────────────────────────────────────────────────────────────────


def workers(bench, origin, tracks, seconds):
    """Runs several workers of document 2, spread over the film. Each requests audio and video of one time
    after another. Returns bytes to clients, bytes from the storage, and latencies."""
    count = bench.args.clients
    totals, times, lock = [0], [], threading.Lock()
    ready = threading.Barrier(count + 1)

    def work(number):
        client, n = HTTPConnection(origin.host), number * len(tracks[0]) // count
        ready.wait()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for track in tracks:
                began = time.perf_counter()
                client.request("GET", track[n % len(track)])
                response = client.getresponse()
                size = len(response.read())
                took = time.perf_counter() - began
                if response.status != 200:
                    raise SystemExit(f"{track[n % len(track)]}: {response.status} {response.headers.get('Headwater-Error')}")
                with lock:
                    totals[0] += size
                    times.append(took * 1000)
            n += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    before, counted = bench.relay.bytes(), origin.metrics()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    after = origin.metrics()
    grown = lambda name: sum(after[key] - counted.get(key, 0) for key in after if key.startswith(name))
    times.sort()
    return {
        "MB/s": totals[0] / 1e6 / took,
        "p50 ms": times[len(times) // 2],
        "p99 ms": times[int(len(times) * 0.99)],
        "segments": len(times),
        "requests a segment": grown("headwater_storage_requests_total") / len(times),
        "opened": grown("headwater_storage_connections_opened_total"),
        "OUT MB": totals[0] / 1e6,
        "IN MB": (bench.relay.bytes() - before) / 1e6,
        "OUT/IN": totals[0] / (bench.relay.bytes() - before),
    }


def connections(bench):
    """Compares connection pooling and protocols, with indexes in memory and without cached segments."""
    ways = {
        "pooled": ["--storage-connections", "pooled"],
        "fresh": ["--storage-connections", "fresh"],
        "pooled, HTTP/2": ["--storage-http", "2"],
    }
    rounds = {name: [] for name in ways}
    for n in range(bench.args.rounds):
        names = list(ways) if n % 2 == 0 else list(ways)[::-1]
        for name in names:
            origin = bench.origin(*ways[name], "--storage-memory", "0B", "--segment-memory", "0B")
            tracks = [origin.segments(one) for one in origin.lists("/film.ism")]
            rounds[name].append(workers(bench, origin, tracks, bench.args.seconds))
            origin.stop()
    columns = ["MB/s", "p50 ms", "p99 ms", "segments", "requests a segment", "opened"]
    rows = []
    for name, found in rounds.items():
        rows.append([name, *(statistics.median(one[column] for one in found) for column in columns)])
    ratio = rows[0][1] / rows[1][1]
    expected = [(f"pooled transfers {ratio:.2f} times the bytes of fresh; target 1.24", ratio >= 1.24)]
    return "Connections", ["connections", *columns], rows, expected


def cold(bench):
    """Measures a cold title, in a process with open connections and in a new one."""
    columns = ["requests", "sequential requests", "ms", "waiting for the storage, ms", "transfer ms", "connections opened"]
    rows, expected = [], []
    kinds = [("/last.mp4", "moov last", 4), ("/first.mp4", "moov first", 4), ("/last-index.mp4", "index MP4", 2)]
    for title, what, most in kinds:
        for warm in (True, False):
            found = [cold_once(bench, title, warm) for _ in range(3)]
            row = [statistics.median(one[column] for one in found) for column in columns]
            rows.append([what, "open" if warm else "none", *row])
            if warm:
                own = row[2] - row[3] - row[4] - row[1] * bench.args.rtt_ms
                text = f"{what}: {row[1]:g} sequential requests; at most {most}. The origin itself took {own:.0f} ms"
                expected.append((text, row[1] <= most))
    return "A cold title of two hours, to the last byte of its first segment", ["film", "connections", *columns], rows, expected


def cold_once(bench, title, warm):
    records = bench.work / "records"
    records.write_text("")
    origin = bench.origin("--records", records)
    if warm:
        # Two connections, as many as the requests of a title use at once.
        origin.get("/film.ism/.m3u8")
    opened = origin.metrics()["headwater_storage_connections_opened_total"]
    since, began = time.time(), time.perf_counter()
    # The video segment, which is the longer one.
    playlist = origin.lists(title)[-1]
    origin.get(origin.first_segment(playlist))
    ms = (time.perf_counter() - began) * 1000
    opened = origin.metrics()["headwater_storage_connections_opened_total"] - opened
    origin.stop()
    made = storage_records(records, since)
    transfer = sum(ended - first for _, first, ended in made) * 1000
    # Time to first byte minus a round trip is the time of the storage itself, plus the connection set-up
    # if there is no connection yet.
    waits = sum(first - requested for requested, first, _ in made) * 1000 - len(made) * bench.args.rtt_ms
    turns, busy_until = 0, 0
    for requested, _, ended in made:
        turns += requested >= busy_until
        busy_until = max(busy_until, ended)
    return {"requests": len(made), "sequential requests": turns, "ms": ms, "waiting for the storage, ms": waits,
            "transfer ms": transfer, "connections opened": opened}  # fmt: skip


def storage_records(path, since):
    """Returns the start, first byte and end of each storage request."""
    found = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "storage":
            seconds = calendar.timegm(time.strptime(record["time"][:19], "%Y-%m-%dT%H:%M:%S"))
            requested = seconds + float("0" + record["time"][19:].rstrip("Z"))
            found.append((requested, requested + record["first_byte_us"] / 1e6, requested + record["total_us"] / 1e6))
    return sorted(one for one in found if one[0] >= since)


def configurations(bench):
    columns = ["MB/s", "p50 ms", "p99 ms", "requests a segment", "OUT MB", "IN MB", "OUT/IN", "opened"]
    rows, found = [], {}
    for name in "abcdef":
        flags = ["--config", ROOT / f"experiments/configurations/{name}.toml"]
        if name in "bde":
            match = r"(?i)\.(ism|mp4)$" if name == "e" else "."
            flags += ["--storage-via", f"{match} http://127.0.0.1:{bench.start_cache()}"]
        origin = bench.origin(*flags)
        tracks = [origin.segments(one) for one in origin.lists("/film.ism")]
        for track in tracks:
            origin.get(track[-1])
        measured = workers(bench, origin, tracks, bench.args.seconds)
        origin.stop()
        found[name] = measured
        rows.append([name.upper(), *(measured[column] for column in columns)])
    bench.stop()
    wanted = {"a": (0.2, 0.4), "c": (0.2, 0.4), "b": (0.96, 1), "d": (0.96, 1), "e": (0.96, 1), "f": (0.99, 1)}
    expected = []
    for name, (least, most) in wanted.items():
        is_now = found[name]["OUT/IN"]
        expected.append((f"{name.upper()}: OUT/IN {is_now:.3f}; target {least} to {most}", least <= is_now <= most))
    more = found["f"]["MB/s"] / found["e"]["MB/s"]
    expected.append((f"F transfers {more:.2f} times the bytes of E; target: more than 1", more > 1))
    return "Document 2's configurations", ["", *columns], rows, expected


PARTS = {"connections": connections, "cold": cold, "configurations": configurations}


# ── report ────────────────────────────────────────────────────────────────────────────────


def report(args, parts):
    cores = os.cpu_count()
    film = f"{args.film_seconds} s"
    command = f"python3 bench/storage.py --seconds {args.seconds:g} --rounds {args.rounds}"
    command += f" --only {args.only} --film-seconds {args.film_seconds}" if args.only else ""
    lines = ["# Films in object storage", "", f"`{command}`, {cores} cores shared by the storage (seaweedfs, S3",
             f"with signatures, TLS), a relay in Python that adds {args.rtt_ms:g} ms to a round trip, the origin, and",
             f"{args.clients} clients. The film is of {film}; medians over rounds where there are several."]  # fmt: skip
    failed = False
    for title, head, rows, expected in parts:
        lines += ["", f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(format_cell(cell) for cell in row) + " |" for row in rows] + [""]
        lines += [f"- {'pass' if passed else 'FAILS'}: {text}" for text, passed in expected]
        failed |= not all(passed for _, passed in expected)
    text = "\n".join(lines) + "\n"
    print(text)
    if not args.no_save:
        path = ROOT / "bench/runs" / f"{time.strftime('%Y-%m-%d')}-{cores}-cores-storage{'-' + args.only if args.only else ''}.md"
        path.write_text(text)
        print(f"saved as {path.relative_to(ROOT)}", file=sys.stderr)
    sys.exit(1 if failed else 0)


def format_cell(cell):
    if isinstance(cell, float):
        return f"{cell:.3f}" if cell < 10 else f"{cell:.1f}"
    return str(cell)


if __name__ == "__main__":
    main()
