"""Just-in-time packaging compared with ready-made files, and long films compared with short ones."""

import re
import subprocess

import run

from .beside_vod import compare_with_vod, start_vod
from .row import CLIENTS, GB, MS, REQUESTS, Row, interleave, row

# nginx-vod-module 1.33: GB per CPU-second (fMP4 from local files), and cached playlists and MPDs of a
# 2-hour film per CPU-second; see beside_vod.py.
VOD = 2.40
VOD_TEXTS = 21_000
READY = "nginx, ready-made, sendfile"
# Target for generating a manifest, in milliseconds.
COLD_MS = 3.0
# Target for a segment of text in all its forms, and for its playlist.
TEXT_MS = 1.0
WITHIN_TEXT_MS = ("text-segments", "imsc-segment", "text-playlist")


def files(args, work, ended):
    films = run.make_films(work / "films", 120)
    servers = {
        "ours": run.Headwater(films, "2s"),
        "ours, 4 s": run.Headwater(films, "4s"),
        # A separate server: both packagings of the film would exceed --segment-memory.
        "ours, TS": run.Headwater(films, "2s"),
        # Paced like all other servers: see docs/decisions/0018.
        "ours, paced": run.Headwater(films, "2s", "--near-rtt", "0s"),
        "ours, cold": run.Headwater(films, "2s", "--segment-memory", "0B"),
    }
    ended += [server.stop for server in servers.values()]
    lists = run.list_kinds(servers["ours"].url)
    paths = {name: lists[name] for name in ("CMAF 1 MB", "CMAF 127 KB", "TS 1 MB", "media playlist", "MPD")}
    paths["CMAF 2 MB"] = run.segments(servers["ours, 4 s"].url, "/large-apart/.m3u8", "video=")
    ready = run.make_ready(work / "ready", servers["ours"].url, {k: v for k, v in paths.items() if k != "CMAF 2 MB"})
    run.make_ready(ready, servers["ours, 4 s"].url, {"": paths["CMAF 2 MB"]})
    servers["nginx"] = run.Nginx(work, ready)
    ended.append(servers["nginx"].stop)
    vod_paths = start_vod(args, work, ended, films, servers, ["fMP4"])

    both = ["ours", "nginx"]
    kinds = {("CMAF 1 MB", client): ["ours", "ours, paced", "nginx", *vod_paths] for client in CLIENTS}
    kinds |= {("CMAF 2 MB", client): ["ours, 4 s", "nginx"] for client in CLIENTS}
    kinds |= {("TS 1 MB", client): ["ours, TS", "ours, cold", "nginx"] for client in CLIENTS}
    kinds |= {("CMAF 127 KB", client): both for client in CLIENTS}
    kinds |= {(kind, "wrk"): both for kind in ("media playlist", "MPD")}
    found = interleave(args, kinds, lambda kind, name: CLIENTS[kind[1]](args, servers[name], vod_paths.get(name) or paths[kind[0]], work))

    rows = []
    for size, name in (("1 MB", "ours"), ("2 MB", "ours, 4 s")):
        for client, target in (("wrk", 2.0), ("discard", 1.0)):
            of = found[f"CMAF {size}", client]
            rows.append(row(f"JIT CMAF, {size}, {client}", READY, target, GB, of[name], of["nginx"]))
    for client in CLIENTS:
        of = found["CMAF 1 MB", client]
        paced = f"JIT CMAF, 1 MB, with pacing like nginx, {client}"
        rows.append(row(paced, READY, 0, GB, of["ours, paced"], of["nginx"]))
    for client in CLIENTS:
        of = found["CMAF 1 MB", client]
        rows.append(compare_with_vod(f"JIT CMAF, 1 MB, {client}", 2.0, of, "ours", "fMP4", VOD))
    for client, target in (("wrk", 1.2), ("discard", 0)):
        of = found["CMAF 127 KB", client]
        rows.append(row(f"JIT CMAF, 127 KB, {client}", READY, target, REQUESTS, of["ours"], of["nginx"]))
    for name, what, target in (("ours, cold", "cold", 1.0), ("ours, TS", "repeated", 2.0)):
        for client in CLIENTS:
            of = found["TS 1 MB", client]
            least = target if client == "wrk" else 0
            rows.append(row(f"JIT TS, 1 MB, {what}, {client}", READY + " TS", least, GB, of[name], of["nginx"]))
    for kind in ("media playlist", "MPD"):
        of = found[kind, "wrk"]
        rows.append(row(f"{kind} of 60 segments, cached", "nginx, ready-made", 1.2, REQUESTS, of["ours"], of["nginx"]))
    of = found["media playlist", "wrk"]
    saturated = f"media playlist, cached, {args.connections} connections without a pause"
    for percentile in ("p50", "p99"):
        ours, theirs = ([in_milliseconds(f[percentile]) for f in of[name]] for name in both)
        rows.append(Row(f"{saturated}: {percentile}", "nginx, ready-made", 0, ours, theirs, MS, less=True))
    return rows


def in_milliseconds(text):
    if text == "–":
        raise RuntimeError("too few requests for a percentile; use more --seconds")
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


# ── long films ───────────────────────────────────────────────────────────────────────────────


def long_films(args, work, ended):
    films = work / "films"
    films.mkdir()
    loop = films / "short.mp4"
    run.ffmpeg(
        "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=60", "-f", "lavfi", "-i", "sine=r=48000:d=60",
        "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", "100k", "-maxrate", "100k",
        "-bufsize", "100k", "-g", "50", "-sc_threshold", "0", "-c:a", "aac", "-b:a", "32k", str(loop),
    )  # fmt: skip
    for hours in (2, 10):
        long = str(films / f"{hours}-hours.mp4")
        run.ffmpeg("-stream_loop", "-1", "-i", str(loop), "-t", str(hours * 3600), "-c", "copy", long)
    # No segment cache, so that every request finds and plans its segment.
    ours = run.Headwater(films, "2s", "--segment-memory", "0B")
    ended.append(ours.stop)
    names = ("short", "2-hours", "10-hours")
    lists = {name: run.segments(ours.url, f"/{name}.mp4/.m3u8", "video=") for name in names}
    # Equal numbers: the first minute of the short film, and the last minute of the others.
    minute = {name: paths[:29] if name == "short" else paths[-30:-1] for name, paths in lists.items()}
    texts = {"media playlist": run.playlists(ours.url, "/2-hours.mp4/.m3u8", "video=")[:1],
             "MPD": ["/2-hours.mp4/.mpd"]}  # fmt: skip
    kinds = {"segments": list(names), "media playlist": ["ours"], "MPD": ["ours"]}
    measure = lambda kind, name: run.wrk(args, ours, texts.get(kind) or minute[name], work)
    found = interleave(args, kinds, measure)
    of = found["segments"]
    rows = [
        row(f"last minute of a film of {hours} hours, uncached, wrk", "Headwater, first minute of a short film", 0.97,
            REQUESTS, of[f"{hours}-hours"], of["short"])
        for hours in (2, 10)
    ]  # fmt: skip
    for kind in texts:
        ours = row("", "", 0, REQUESTS, found[kind]["ours"], found[kind]["ours"])
        known = [VOD_TEXTS] * len(ours.ours)
        rows.append(Row(f"{kind} of a 2-hour film, cached, wrk", "nginx-vod, cached (figure of an earlier run)", 1.5, ours.ours, known,
                        rounds=ours.rounds))  # fmt: skip
    return rows


def cold_texts(args, work, ended):
    build = ["cargo", "build", "--release", "--locked", "-p", "media", "--example", "hot"]
    subprocess.run(build, cwd=run.ROOT, check=True, capture_output=True)
    hot = ["taskset", "-c", "0", run.ROOT / "target/release/examples/hot"]
    rows = []
    for job, what in (
        ("playlist", "media playlist"), ("mpd", "MPD"), ("multivariant", "multivariant playlist"),
        ("cold-playlist", "media playlist and segment grid"), ("cold-mpd", "MPD and segment grid"),
        ("text-segments", "segment of text in WebVTT and one in CMAF, of 5000 cues"),
        ("imsc-segment", "segment of text in IMSC, of 5000 cues"),
        ("text-playlist", "media playlist of text, of 5000 cues"), ("text-mpd", "MPD of a film with 5000 cues"),
        ("text-multivariant", "multivariant playlist of a film with 5000 cues"),
        ("first-text-mpd", "first MPD of a film with 5000 cues, with the measurement of their bandwidth"),
    ):  # fmt: skip
        times = [
            float(subprocess.run([*hot, job, "2", "20", "ms"], check=True, capture_output=True, text=True).stdout)
            for _ in range(args.rounds)
        ]
        most = [TEXT_MS if job in WITHIN_TEXT_MS else COLD_MS] * len(times)
        rows.append(Row(f"time to generate a {what}: 2 hours, 8 renditions, indexes in memory", "absolute target", 1.0, times, most, MS, less=True))
    return rows
