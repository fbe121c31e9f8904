#!/usr/bin/env python3
"""Measures the memory of `headwater serve` with a thousand titles in use, at default settings.

Requests a multivariant playlist, a media playlist and a segment of each title, with films of ten minutes
and of two hours. Fails if anonymous memory exceeds the budget: `index-memory` plus 64 MiB. Saves the
table under bench/runs/.
"""

import argparse
import concurrent.futures
import http.client
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
# The default of `index-memory`.
INDEX_BYTES_MAX = 512 * MIB
OTHER_BYTES_MAX = 64 * MIB
# Renditions of a film: size and bitrate. The first one contains the audio.
RENDITIONS = (("320x180", "60k"), ("160x90", "30k"))
LOOP_SECONDS = 20


def main():
    args = arguments()
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-memory-"))
    rows = []
    try:
        loops = [encode(work, *rendition, sound=n == 0) for n, rendition in enumerate(RENDITIONS)]
        for minutes in args.minutes:
            print(f"{args.titles} films of {minutes} minutes", file=sys.stderr)
            library = make_library(work / f"{minutes}-minutes", loops, minutes, args.titles)
            rows.append(measure(args, library, minutes))
            shutil.rmtree(library)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report(args, rows)
    if any(row["anonymous"] > budget() for row in rows):
        sys.exit("anonymous memory exceeds the budget")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--titles", type=int, default=1000)
    parser.add_argument("--minutes", type=int, nargs="+", default=[10, 120])
    parser.add_argument("--clients", type=int, default=16, help="concurrent requests for titles")
    parser.add_argument("--no-save", action="store_true")
    return parser.parse_args()


def budget():
    return INDEX_BYTES_MAX + OTHER_BYTES_MAX


# ── the films ────────────────────────────────────────────────────────────────────────────────


def encode(work, size, rate, sound):
    """Makes a short film: 25 frames per second with B-frames, a key frame every 2 s."""
    path = work / f"{size}.mp4"
    ffmpeg(
        "-f", "lavfi", "-i", f"testsrc2=s={size}:r=25:d={LOOP_SECONDS}",
        *(["-f", "lavfi", "-i", f"sine=r=48000:d={LOOP_SECONDS}", "-c:a", "aac", "-b:a", "64k"] if sound else []),
        "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", rate,
        "-maxrate", rate, "-bufsize", rate, "-g", "50", "-keyint_min", "50",
        "-sc_threshold", "0", str(path),
    )  # fmt: skip
    return path


def make_library(folder, loops, minutes, titles):
    """Links one film under many names. The links share bytes, but not indexes."""
    first = folder / "0000"
    first.mkdir(parents=True)
    for loop in loops:
        ffmpeg(
            "-stream_loop", "-1", "-i", str(loop), "-t", str(minutes * 60), "-c", "copy",
            "-movflags", "+faststart", str(first / loop.name),
        )  # fmt: skip
    for number in range(1, titles):
        title = folder / f"{number:04}"
        title.mkdir()
        for loop in loops:
            os.link(first / loop.name, title / loop.name)
    return folder


def ffmpeg(*args):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *args], check=True)


# ── requests ──────────────────────────────────────────────────────────────────────────────


def measure(args, library, minutes):
    server = subprocess.Popen(
        [ROOT / "target/release/headwater", "serve", library, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        address = server.stdout.readline().split()[-1].removeprefix("http://")
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(args.clients) as clients:
            list(clients.map(lambda n: play(address, f"/{n:04}/.m3u8"), range(args.titles)))
        seconds = time.monotonic() - started
        metrics = get(http.client.HTTPConnection(address), "/metrics")
        after = memory(server.pid)
    finally:
        server.terminate()
        server.wait()
    return {
        "minutes": minutes, "titles": args.titles, "ms": seconds * 1000 / args.titles,
        "kept": metric(metrics, "headwater_index_titles"),
        "indexes": metric(metrics, "headwater_index_memory_bytes"),
        "resident": after["VmRSS"], "anonymous": after["RssAnon"], "files": after["RssFile"],
        "peak": after["VmHWM"],
    }  # fmt: skip


def play(address, multivariant):
    """Requests what a player requests first: two playlists and one segment."""
    client = http.client.HTTPConnection(address, timeout=60)
    media = first_uri(multivariant, get(client, multivariant))
    get(client, first_uri(media, get(client, media)))
    client.close()


def first_uri(base, text):
    uri = re.search(r"^(?!#)(\S+)$", text.decode(), re.M)[1]
    return urllib.parse.urljoin("http://x" + base, uri).removeprefix("http://x")


def get(client, path):
    client.request("GET", path)
    response = client.getresponse()
    body = response.read()
    if response.status != 200:
        sys.exit(f"{path}: {response.status} {response.getheader('Headwater-Error')}")
    return body


def metric(text, name):
    return int(re.search(rf"^{name} (\d+)", text.decode(), re.M)[1])


def memory(pid):
    """Returns a memory figure of a process in bytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    names = ("VmRSS", "VmHWM", "RssAnon", "RssFile")
    return {name: int(re.search(rf"{name}:\s+(\d+)", status)[1]) * 1024 for name in names}


# ── report ────────────────────────────────────────────────────────────────────────────────


def report(args, rows):
    lines = [
        f"machine: {os.cpu_count()} cores, Linux {os.uname().release}",
        f"command: bench/memory.py --titles {args.titles} --minutes {' '.join(map(str, args.minutes))}"
        f" --clients {args.clients}",
        "films: folders of two AVC renditions, 25 pictures a second, one with AAC; 6 s segments",
        f"budget of anonymous memory: index-memory {INDEX_BYTES_MAX // MIB} MiB"
        f" + {OTHER_BYTES_MAX // MIB} MiB = {budget() // MIB} MiB",
        "",
        "| film | titles requested | cached | index memory, as estimated | anonymous | mapped files"
        " | resident | peak resident | ms a title | within budget |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *map(line, rows),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if not args.no_save:
        name = f"{time.strftime('%Y-%m-%d')}-{os.cpu_count()}-cores-memory.md"
        (ROOT / "bench/runs" / name).write_text(text)


def line(row):
    sizes = ("indexes", "anonymous", "files", "resident", "peak")
    cells = [f"{row[name] / MIB:.0f} MiB" for name in sizes]
    verdict = "yes" if row["anonymous"] <= budget() else "NO"
    cells = [f"{row['minutes']} min", row["titles"], row["kept"], *cells, f"{row['ms']:.1f}", verdict]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
