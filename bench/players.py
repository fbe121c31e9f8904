#!/usr/bin/env python3
"""Compares emulated viewers with hls.js and dash.js in Chromium over the same emulated links.

`headwater serve` runs at one end of `headwater lab link` and a player at the other. Every player has a
link and a server to itself, all players of a link rate run at once, and all have the same buffer limit.
Exits with 1 if the mean bitrate of an emulated viewer differs from the real player of the same manifest
by more than a factor of two, if the stalled time differs by more than a factor of two and a few seconds,
or if a link was late. Needs root, Chromium, the node_modules of tests/judge, and the vendored players.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import ROOT, cpu_model, ffmpeg, get  # noqa: E402

LADDER = {180: 300, 270: 800, 360: 2000, 540: 4000}  # picture height: kb/s
# Rates of a link; for a trace, with the second from which each applies.
LINES = {
    "0.3 Mb/s": "300kbit",
    "1.5 Mb/s": "1500kbit",
    "3 Mb/s": "3mbit",
    "changing": [(0, "4mbit"), (20, "700kbit"), (35, "3mbit"), (45, "1200kbit"), (60, "end")],
    "starved": [(0, "2mbit"), (20, "150kbit"), (45, "2mbit"), (60, "end")],
}
LINE = ["--delay", "40ms", "--queue", "64KiB"]
# Players per manifest: (real or emulated, rule). dash.js has the original rules, hls.js its own.
RULES = ("dynamic", "throughput", "bola")
PLAYERS = {
    "hls": [("hls.js", "own"), *(("emulated", rule) for rule in RULES)],
    "dash": [(who, rule) for rule in RULES for who in ("dash.js", "emulated")],
}
MANIFEST = {"hls": ".m3u8", "dash": ".mpd"}
SETTLE_S = 8  # From the line's start to the player's: Chromium needs a while.
STALLED_S = 4  # What stalls may differ by, however short.
LATE_MS = 2  # 99th percentile of a line's packets.


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("--buffer", type=int, default=15)
    parser.add_argument("--only", default="", help="only links whose name contains this; the run is not saved")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/release/headwater")
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_args()
    if not (ROOT / "tests/judge/node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=ROOT / "tests/judge", check=True)
    subprocess.run([ROOT / "player/vendor.sh", "--required"], check=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-bench-players-"))
    try:
        make_title(work / "films/title", args.seconds + 20)
        for line, rate in LINES.items():
            if not isinstance(rate, str):
                (work / line).write_text("".join(f"{second} {bits}\n" for second, bits in rate))
        declared = declared_kbps(args, work)
        rows = [row for line in LINES if args.only in line for row in play(args, work, line, declared)]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    faults = compare(rows)
    report(args, rows, faults)
    sys.exit(1 if faults else 0)


def make_title(folder, seconds):
    """Makes renditions at constant bitrates with a key frame every two seconds, and the audio."""
    folder.mkdir(parents=True)
    rate = "nal-hrd=cbr:force-cfr=1:keyint=48:min-keyint=48:scenecut=0"
    outputs = []
    for height, kbps in LADDER.items():
        outputs += [
            "-map", "0:v", "-vf", f"scale={height * 16 // 9}:{height}", "-c:v", "libx264", "-preset", "ultrafast",
            "-pix_fmt", "yuv420p", "-b:v", f"{kbps}k", "-minrate", f"{kbps}k", "-maxrate", f"{kbps}k",
            "-bufsize", f"{kbps}k", "-x264-params", rate, str(folder / f"{height}.mp4"),
        ]  # fmt: skip
    ffmpeg(
        "-f", "lavfi", "-i", f"testsrc2=s=960x540:r=24:d={seconds},noise=alls=40:allf=t",
        "-f", "lavfi", "-i", f"sine=f=440:r=48000:d={seconds}", *outputs,
        "-map", "1:a", "-c:a", "aac", "-b:a", "64k", str(folder / "sound.m4a"),
    )  # fmt: skip


def serve_command(args, work, listen):
    return [str(args.binary), "serve", "--listen", listen, "--segment", "2s", str(work / "films")]


def declared_kbps(args, work):
    """Returns the declared bitrates: manifest kind → video height → kb/s. Emulated viewers use them too."""
    with subprocess.Popen(serve_command(args, work, "127.0.0.1:0"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        url = server.stdout.readline().split()[-1] + "/title/"
        playlist, mpd = get(url + ".m3u8").decode(), get(url + ".mpd")
        server.terminate()
    streams = re.findall(r"STREAM-INF:BANDWIDTH=(\d+),AVERAGE.*RESOLUTION=\d+x(\d+),FRAME", playlist)
    of_dash = [each for each in xml.etree.ElementTree.fromstring(mpd).iterfind(".//{*}Representation") if "height" in each.attrib]
    return {
        "hls": {int(height): int(bps) / 1000 for bps, height in streams},
        "dash": {int(each.get("height")): int(each.get("bandwidth")) / 1000 for each in of_dash},
    }


# ── all players on one link ───────────────────────────────────────────────────────────────


def play(args, work, line, declared):
    cells = [Cell(args, work, line, kind, *player) for kind, players in PLAYERS.items() for player in players]
    try:
        for cell in cells:
            cell.begin()
        return [cell.end(declared) for cell in cells]
    finally:
        for cell in cells:
            cell.link.stdin.close()
            cell.link.wait()


class Cell:
    """A link with a server and one player."""

    def __init__(self, args, work, line, kind, who, rule):
        self.args, self.work, self.line, self.kind, self.who, self.rule = args, work, line, kind, who, rule
        self.file = work / f"{who}-{kind}-{rule}"
        rate = LINES[line] if isinstance(LINES[line], str) else f"trace:{work / line}"
        server = " ".join(serve_command(args, work, "10.77.0.2:80")) + " >&2"
        self.link = subprocess.Popen(
            [args.binary, "lab", "link", "--until-eof", "--json", "-", "--rate", rate, *LINE, "--server", server],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(work / "link.err").open("w"), text=True,
        )  # fmt: skip

    def begin(self):
        description = self.link.stdout.readline()
        if not description:
            sys.exit((self.work / "link.err").read_text()[-2000:])
        at, url = time.time() + SETTLE_S, f"http://10.77.0.2/title/{MANIFEST[self.kind]}"
        if self.who == "emulated":
            argv = [
                str(self.args.binary), "load", "players", url, "--viewers", "1", "--spread", "0s", "--abr", self.rule,
                "--duration", f"{self.args.seconds}s", "--buffer", f"{self.args.buffer}s", "--json", str(self.file),
            ]  # fmt: skip
            argv = ["sh", "-c", f"sleep {SETTLE_S}; exec " + " ".join(argv)]
        else:
            argv = ["node", str(ROOT / "bench/players.mjs"), self.kind, self.rule, url]
            argv += map(str, (self.args.seconds, self.args.buffer, int(at * 1000)))
        self.player = subprocess.Popen(
            [self.args.binary, "lab", "exec", json.loads(description)["link"], "client", "--", *argv],
            stdout=subprocess.PIPE, stderr=self.file.with_suffix(".err").open("w"), text=True,
        )  # fmt: skip

    def end(self, declared):
        text = self.player.communicate(timeout=SETTLE_S + self.args.seconds + 60)[0]
        if self.player.returncode:
            sys.exit(f"{self.who}, {self.rule}: {self.file.with_suffix('.err').read_text()[-2000:]}")
        self.link.stdin.close()
        late = json.loads(self.link.stdout.read())["lateness_us"]["p99"] / 1000
        seen = self.emulated(text) if self.who == "emulated" else self.real(json.loads(text), declared[self.kind])
        return {"line": self.line, "kind": self.kind, "who": self.who, "rule": self.rule, "late_ms": late, **seen}

    def emulated(self, text):
        seen = json.loads(self.file.read_text())["viewing"]
        start = re.search(r"^start-up +p50 ([\d.]+)", text, re.M)
        return {
            "kbps": seen["bitrates_kbps"][0], "start_s": float(start[1]) / 1000, "stalls": seen["stalls"],
            "stalled_s": seen["stalled_s"], "played_s": seen["played_s"], "switches": seen["switches"],
        }  # fmt: skip

    def real(self, seen, declared):
        if seen["errors"] or not seen["played_s"]:
            sys.exit(f"{self.who} on {self.line}: {seen}")
        bits = sum(declared[int(height)] * seconds for height, seconds in seen["shown"].items())
        return {
            "kbps": bits / sum(seen["shown"].values()), "start_s": seen["start_s"], "stalls": len(seen["stalls"]),
            "stalled_s": sum(seen["stalls"]), "played_s": seen["played_s"], "switches": seen["switches"],
        }  # fmt: skip


# ── comparison and report ─────────────────────────────────────────────────────────────────


def real_player(rows, row):
    """Returns the real player of the same manifest on the same link, with the same rule if it has it."""
    candidates = [r for r in rows if (r["line"], r["kind"]) == (row["line"], row["kind"]) and r["who"] != "emulated"]
    return next(r for r in candidates if r["rule"] in (row["rule"], "own"))


def compare(rows):
    """Pairs rules with those of dash.js. hls.js has none of them, so it is paired with our default rule."""
    faults = [f"{row['line']}: the link was {row['late_ms']:.1f} ms late" for row in rows if row["late_ms"] > LATE_MS]
    for row in rows:
        if row["who"] != "emulated" or (row["kind"] == "hls" and row["rule"] != RULES[0]):
            continue
        real, what = real_player(rows, row), f"{row['line']}, {MANIFEST[row['kind']]}, {row['rule']}"
        if not 0.5 <= row["kbps"] / real["kbps"] <= 2:
            faults.append(f"{what}: {row['kbps']:.0f} kb/s, the real player {real['kbps']:.0f}")
        less, more = sorted((row["stalled_s"], real["stalled_s"]))
        if more > max(2 * less, less + STALLED_S):
            faults.append(f"{what}: stalled {row['stalled_s']:.1f} s, the real player {real['stalled_s']:.1f}")
    return faults


def report(args, rows, faults):
    versions = json.loads((ROOT / "player/package.json").read_text())["dependencies"]
    traces = {line: ", ".join(f"{second} s {bits}" for second, bits in rate) for line, rate in LINES.items() if not isinstance(rate, str)}
    lines = [
        f"machine: {cpu_model()}, {os.cpu_count()} cores, Linux {os.uname().release}; load average at the end {os.getloadavg()[0]:.1f}",
        f"command: bench/players.py --seconds {args.seconds} --buffer {args.buffer}",
        f"players: hls.js {versions['hls.js']}, dash.js {versions['dashjs']}, {chromium_version()}, headless",
        f"title: {', '.join(f'{height}p {kbps} kb/s' for height, kbps in LADDER.items())}, segments of 2 s; audio 64 kb/s",
        f"links: {' '.join(LINE)}; {'; '.join(f'{line}: {steps}' for line, steps in traces.items())}; players start at {SETTLE_S} s",
        "",
        "| link | manifest | player | bitrate, kb/s | ratio to the real player | start-up, s | stalls | stalled, s | switches | link late, p99 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        real = real_player(rows, row)
        lines.append(
            f"| {row['line']} | {MANIFEST[row['kind']]} | {row['who']}, {row['rule']} | {row['kbps']:.0f} | {row['kbps'] / real['kbps']:.2f} |"
            f" {row['start_s']:.2f} | {row['stalls']} | {row['stalled_s']:.1f} | {row['switches']} | {row['late_ms']:.2f} ms |"
        )
    lines += ["", *(f"- FAILS: {fault}" for fault in faults)]
    if not faults:
        lines.append(f"- pass: bitrates within a factor of two of the real player's, and stalled seconds too, or within {STALLED_S} s")
    text = "\n".join(lines) + "\n"
    print(text)
    if not (args.no_save or args.only or faults):
        name = f"{time.strftime('%Y-%m-%d')}-{os.cpu_count()}-cores-players.md"
        (ROOT / "bench/runs" / name).write_text(text)


def chromium_version():
    return subprocess.run([os.environ.get("CHROMIUM", "chromium"), "--version"], capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
