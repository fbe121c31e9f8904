#!/usr/bin/env python3
"""Measures how many segments of a remote film `headwater serve` sends per CPU-second.

An nginx on core 1 serves the film over HTTP; the client runs there too. The server runs on core 0 and
packages just in time. "cold" reads every segment from the storage (no caches); with default settings,
repeated requests hit the cache. With --nginx-vod PATH, the same rounds measure an nginx with
nginx-vod-module (built elsewhere; it is AGPL) in remote mode with its metadata cache. Saves the table
and all rounds under bench/runs/.

  python3 bench/remote.py --rounds 5 --seconds 4
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import run
from backends import workspace


def main():
    args = arguments()
    with workspace("remote") as (work, ended):
        films = run.make_films(work / "films", args.film_seconds)
        storage = Storage(work, films)
        ended.append(storage.stop)
        nothing = ["--storage-memory", "0B", "--segment-memory", "0B"]
        servers = [Headwater("headwater, all from the storage", storage, nothing), Headwater("headwater, as it comes", storage, [])]
        ended += [server.stop for server in servers]
        paths = {server.name: run.segments(server.url, "/large-apart/video.mp4/.m3u8", "video=") for server in servers}
        if args.nginx_vod:
            theirs = Vod(work, args.nginx_vod, storage, ended)
            servers.append(theirs)
            paths[theirs.name] = run.segments(theirs.url, "/hls/large-apart/video.mp4/master.m3u8", "index")
        rounds = []
        for number in range(args.rounds):
            for server in servers if number % 2 == 0 else servers[::-1]:
                figures = run.wrk(args, server, paths[server.name], work)
                rounds.append({"round": number, "server": server.name, **figures})
    report(args, rounds)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--film-seconds", type=int, default=120)
    parser.add_argument("--nginx-vod", type=pathlib.Path, help="an nginx with nginx-vod-module")
    parser.add_argument("--no-save", action="store_true")
    return parser.parse_args()


class Pinned:
    """A server on core 0."""

    def start(self, core, *argv, **more):
        self.process = subprocess.Popen(["taskset", "-c", core, *map(str, argv)], stderr=subprocess.DEVNULL, **more)

    def pids(self):
        return [self.process.pid]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Storage(Pinned):
    def __init__(self, work, films):
        port = run.free_port()
        config = nginx_config(work, "storage", f"sendfile on; server {{ listen 127.0.0.1:{port}; root {films}; }}")
        self.start("1", "nginx", "-c", config)
        self.host = f"127.0.0.1:{port}"
        run.wait_for(f"http://{self.host}/large-apart/audio.m4a")


class Headwater(Pinned):
    def __init__(self, name, storage, flags):
        self.name = name
        argv = [run.ROOT / "target/release/headwater", "serve", f"http://{storage.host}/", "--listen", "127.0.0.1:0"]
        self.start("0", *argv, "--workers", "1", "--segment", "2s", *flags, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]


class Vod(Pinned):
    name = "nginx-vod, remote"

    def __init__(self, work, binary, storage, ended):
        port = run.free_port()
        config = nginx_config(
            work, "vod",
            f"""upstream storage {{ server {storage.host}; keepalive 32; }}
            vod_mode remote; vod_upstream_location /from; vod_metadata_cache metadata 64m; vod_response_cache responses 64m;
            vod_segment_duration 2000; vod_align_segments_to_key_frames on; vod_manifest_segment_durations_mode accurate;
            vod_hls_container_format fmp4; vod_base_url ""; vod_max_upstream_headers_size 8k; subrequest_output_buffer_size 2m;
            server {{ listen 127.0.0.1:{port};
              location /hls/ {{ vod hls; }}
              location /from/hls/ {{ internal; proxy_pass http://storage/; proxy_http_version 1.1;
                proxy_set_header Connection ""; }}
              location / {{ root /nowhere; }} }}""",
        )  # fmt: skip
        self.start("0", binary, "-c", config)
        self.url = f"http://127.0.0.1:{port}"
        ended.append(self.stop)
        run.wait_for(self.url + "/hls/large-apart/video.mp4/master.m3u8")


def nginx_config(work, name, http):
    at = work / name
    at.mkdir()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temp = " ".join(f"{kind}_temp_path {at}/{kind};" for kind in kinds)
    (at / "conf").write_text(
        f"daemon off; master_process off; worker_processes 1; pid {at}/pid; error_log {at}/err;"
        f" events {{ worker_connections 4096; }} http {{ access_log off; keepalive_requests 1000000; {temp} {http} }}"
    )
    return at / "conf"


def report(args, rounds):
    extra = " --nginx-vod PATH" if args.nginx_vod else ""
    lines = [
        "# Segments of a remote film, per CPU-second", "",
        f"`python3 bench/remote.py --rounds {args.rounds} --seconds {args.seconds:g} --film-seconds {args.film_seconds}{extra}`, {run.cpu_model()},"
        f" {os.cpu_count()} cores; the server on core 0, wrk and the storage (nginx, plain HTTP) on core 1;"
        " segments of 2 s at 3.9 Mb/s. Medians over rounds, in brackets the least and the most.", "",
        "| server | GB per CPU-second | GB/s | p50 | p99 |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name in dict.fromkeys(one["server"] for one in rounds):
        mine = [one for one in rounds if one["server"] == name]
        per_cpu = sorted(one["bytes"] / one["cpu_s"] / 1e9 for one in mine)
        per_second = statistics.median(one["bytes"] / one["wall_s"] / 1e9 for one in mine)
        middle = statistics.median(per_cpu)
        lines.append(f"| {name} | {middle:.2f} ({per_cpu[0]:.2f}–{per_cpu[-1]:.2f}) | {per_second:.2f} | {mine[-1]['p50']} | {mine[-1]['p99']} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if not args.no_save:
        path = run.ROOT / "bench/runs" / f"{time.strftime('%Y-%m-%d')}-{os.cpu_count()}-cores-remote.md"
        path.write_text(text + "\n```\n" + "\n".join(json.dumps(one) for one in rounds) + "\n```\n")
        print(f"saved as {path.relative_to(run.ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
