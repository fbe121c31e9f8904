#!/usr/bin/env python3
"""Measures the cost of the first segment of a film that `headwater serve` has not read before.

For a two-hour film, progressive and fragmented, measures storage reads and bytes by reason (from the
server's counters), and milliseconds from the playlist request to the last byte of the first segment,
in a new process. The index comes from the film itself, from disk, or from an index MP4. Medians over
rounds. Saves the table under bench/runs/.

Files are in the page cache, so the time is CPU work. Over a network, each read adds at least a round
trip.
"""

import argparse
import http.client
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERVER = ROOT / "target/release/headwater"
LOOP_SECONDS = 20
KINDS = {
    "progressive, moov first": ["-movflags", "+faststart"],
    "progressive, moov last": [],
    "fragments of 2 s": ["-movflags", "+frag_keyframe+empty_moov+default_base_moof"],
}


def main():
    args = arguments()
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-cold-"))
    rows = []
    try:
        loop = encode(work)
        for kind, flags in KINDS.items():
            film = make_film(work, loop, flags, args.minutes)
            rows += measure(args, work, kind, film)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report(args, rows)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-save", action="store_true")
    return parser.parse_args()


def ffmpeg(*argv):
    base = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y"]
    subprocess.run([*base, *map(str, argv)], check=True)


def encode(work):
    loop = work / "loop.mp4"
    picture = f"testsrc2=size=640x360:rate=24:duration={LOOP_SECONDS}"
    sound = f"sine=frequency=440:sample_rate=48000:duration={LOOP_SECONDS}"
    ffmpeg(
        "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound,
        "-c:v", "libx264", "-preset", "veryfast", "-b:v", "400k", "-g", 48, "-bf", 2,
        "-c:a", "aac", "-b:a", "64k", loop,
    )  # fmt: skip
    return loop


def make_film(work, loop, flags, minutes):
    library = work / "library"
    shutil.rmtree(library, ignore_errors=True)
    library.mkdir()
    film = library / "film.mp4"
    times = minutes * 60 // LOOP_SECONDS - 1
    ffmpeg("-stream_loop", times, "-i", loop, "-c", "copy", *flags, film)
    # Indexes of recently changed films are not persisted.
    then = time.time() - 60
    os.utime(film, (then, then))
    subprocess.run([SERVER, "index", film, "-o", library / "made"], check=True, stdout=subprocess.DEVNULL)
    return film


def measure(args, work, kind, film):
    library, index_cache = film.parent, work / "index-cache"
    shutil.rmtree(index_cache, ignore_errors=True)
    on_disk = ["--index-cache", "memory+disk", "--index-cache-dir", index_cache]
    # Fills the index cache on disk.
    first_segment(library, "film.mp4", on_disk)
    cases = {
        "nothing": ("film.mp4", []),
        "index on disk": ("film.mp4", on_disk),
        "index MP4": ("made/film-index.mp4", []),
        "server manifest and index MP4": ("made/film.ism", []),
    }
    rounds = {name: [] for name in cases}
    for _ in range(args.rounds):
        for name, (title, flags) in cases.items():
            rounds[name].append(first_segment(library, title, flags))
    sizes = {
        "film": film.stat().st_size,
        "index MP4": (library / "made/film-index.mp4").stat().st_size,
        "stored index": sum(path.stat().st_size for path in index_cache.iterdir()),
    }
    print(kind, sizes, file=sys.stderr)
    for name, found in rounds.items():
        counts = {frozenset(counts.items()) for _, counts in found}
        assert len(counts) == 1, f"{kind}, {name}: counts differ between rounds: {counts}"
    return [
        {
            "film": kind,
            "from": name,
            "ms": statistics.median(ms for ms, _ in found),
            **found[0][1],
        }
        for name, found in rounds.items()
    ]


def first_segment(library, title, flags):
    """Starts a server and requests the first segment like a player. Returns (milliseconds, counts)."""
    argv = [SERVER, "serve", library, "--listen", "127.0.0.1:0", "--workers", "1", *flags]
    server = subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = server.stdout.readline()
        host = line.removeprefix("listening on http://").strip()
        client = http.client.HTTPConnection(host)
        began = time.perf_counter()
        playlist = f"/{title}/.m3u8"
        media = follow(playlist, get(client, playlist), r"^(?!#)(\S+)$")
        text = get(client, media)
        get(client, follow(media, text, r'#EXT-X-MAP:URI="([^"]+)"'))
        get(client, follow(media, text, r"^(?!#)(\S+)$"))
        ms = (time.perf_counter() - began) * 1000
        metrics = get(client, "/metrics").decode()
        count = lambda name, reason: int(re.search(rf'^headwater_{name}{{reason="{reason}"}} (\d+)', metrics, re.M)[1])
        return ms, {
            "index reads": count("storage_requests_total", "index"),
            "index bytes": count("storage_bytes_total", "index"),
            "segment reads": count("storage_requests_total", "segment"),
        }
    finally:
        server.terminate()
        server.wait(30)


def get(client, target):
    client.request("GET", target)
    response = client.getresponse()
    body = response.read()
    if response.status != 200:
        sys.exit(f"{target}: {response.status} {body[:200]}")
    return body


def follow(base, text, pattern):
    found = re.search(pattern, text.decode(), re.M)[1]
    return urllib.parse.urljoin(base, found)


def report(args, rows):
    head = ["film", "from", "ms", "index reads", "index bytes", "segment reads"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [f"{row[name]:.1f}" if name == "ms" else str(row[name]) for name in head]
        lines.append("| " + " | ".join(cells) + " |")
    cores = os.cpu_count()
    date = time.strftime("%Y-%m-%d")
    command = f"python3 bench/cold.py --minutes {args.minutes} --rounds {args.rounds}"
    text = f"# The first segment of a film of {args.minutes} minutes\n\n`{command}`, {cores} cores\n\n"
    text += "\n".join(lines) + "\n"
    print(text)
    if not args.no_save:
        path = ROOT / "bench/runs" / f"{date}-{cores}-cores-cold.md"
        path.write_text(text)
        print(f"saved as {path.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
