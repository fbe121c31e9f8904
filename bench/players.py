#!/usr/bin/env python3
"""Compares `load players --like NAME` with the player of that name in Chromium over equal emulated links.

Each player has its default settings, and a `headwater lab link` with a `headwater serve` to itself. All six
players of a link run at once, and rounds of all links follow each other. `--rows FILE` appends each result
to a file and skips those that it contains, so that an interrupted comparison continues. The table contains
medians over the rounds. Exits with 1 if a link or a player was late. Needs root, Chromium, the node_modules of
tests/judge, and the vendored players. The time is that of the films; little of it is CPU time.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import ROOT, cpu_model, ffmpeg, get  # noqa: E402

LADDER = {90: 300, 144: 800, 216: 2000, 288: 4000}  # picture height: kb/s
# Options of a link; a list is a trace of rates with the second from which each applies.
LINES = {
    "3 Mb/s": ["3mbit", "--delay", "25ms"],
    "step down": [[(0, "4mbit"), (40, "500kbit"), (120, "end")], "--delay", "25ms"],
    "step up": [[(0, "700kbit"), (40, "4mbit"), (120, "end")], "--delay", "25ms"],
    "lossy": ["4mbit", "--delay", "50ms", "--loss", "1%"],
}
PLAYERS = {"hls.js": ".m3u8", "dash.js": ".mpd", "shaka": ".mpd"}
SETTLE_S = 25  # From the start of a link to that of its player: Chromium needs a while.
LATE_MS = 5  # 99th percentile of a link's packets.
BEGAN_LATE_S = 2  # Later players meet another part of a trace.
# Quantities: key, title, digits, and a difference that is never flagged, as too small to see.
QUANTITIES = [
    ("start_s", "start-up, s", 2, 0.5),
    ("stalls", "stalls", 1, 1),
    ("stalled_s", "stalled, s", 1, 1),
    ("kbps", "bitrate, kb/s", 0, 0),
    ("switches", "switches", 1, 1),
    ("abandoned", "abandoned", 1, 1),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("--rows", type=pathlib.Path, help="file of results, to continue a comparison")
    parser.add_argument("--only", default="", help="only links whose name contains this")
    parser.add_argument("--who", choices=("both", "real", "emulated"), default="both")
    parser.add_argument("--links", type=int, default=1, help="links at once")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/release/headwater")
    args = parser.parse_args()
    if not (ROOT / "tests/judge/node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=ROOT / "tests/judge", check=True)
    subprocess.run([ROOT / "player/vendor.sh", "--required"], check=True)
    rows = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows and args.rows.exists() else []
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-bench-players-"))
    try:
        make_title(work / "films/title", args.seconds + 15)
        declared = declared_kbps(args, work)
        play_rounds(args, work, declared, rows)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    faults = find_faults(rows)
    print(report(args, rows, faults))
    sys.exit(1 if faults else 0)


def make_title(folder, seconds):
    """Makes renditions at constant bitrates with a key frame every two seconds, and the audio."""
    folder.mkdir(parents=True)
    rate = "nal-hrd=cbr:force-cfr=1:keyint=24:min-keyint=24:scenecut=0"
    outputs = []
    for height, kbps in LADDER.items():
        outputs += [
            "-map", "0:v", "-vf", f"scale={height * 16 // 9}:{height}", "-c:v", "libx264", "-preset", "ultrafast",
            "-pix_fmt", "yuv420p", "-b:v", f"{kbps}k", "-minrate", f"{kbps}k", "-maxrate", f"{kbps}k",
            "-bufsize", f"{kbps}k", "-x264-params", rate, str(folder / f"{height}.mp4"),
        ]  # fmt: skip
    ffmpeg(
        "-f", "lavfi", "-i", f"testsrc2=s=512x288:r=12:d={seconds},noise=alls=60:allf=t",
        "-f", "lavfi", "-i", f"sine=f=440:r=48000:d={seconds}", *outputs,
        "-map", "1:a", "-c:a", "aac", "-b:a", "64k", str(folder / "sound.m4a"),
    )  # fmt: skip


def serve_command(args, work, listen):
    return [str(args.binary), "serve", "--listen", listen, "--segment", "2s", str(work / "films")]


def declared_kbps(args, work):
    """Returns the declared bitrates: manifest → picture height → kb/s. Emulated viewers report them too."""
    with subprocess.Popen(serve_command(args, work, "127.0.0.1:0"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        url = server.stdout.readline().split()[-1] + "/title/"
        playlist, mpd = get(url + ".m3u8").decode(), get(url + ".mpd")
        server.terminate()
    streams = re.findall(r"STREAM-INF:BANDWIDTH=(\d+),AVERAGE.*RESOLUTION=\d+x(\d+),FRAME", playlist)
    of_dash = [each for each in xml.etree.ElementTree.fromstring(mpd).iterfind(".//{*}Representation") if "height" in each.attrib]
    return {
        ".m3u8": {int(height): int(bps) / 1000 for bps, height in streams},
        ".mpd": {int(each.get("height")): int(each.get("bandwidth")) / 1000 for each in of_dash},
    }


# ── all players on one link ───────────────────────────────────────────────────────────────


def play_rounds(args, work, declared, rows):
    """Plays what is missing in `rows`, round by round, and adds it."""
    known = {(row["round"], row["line"], row["name"], row["who"]) for row in rows}
    kinds = ("real", "emulated") if args.who == "both" else (args.who,)
    lines = [line for line in LINES if args.only in line]
    pool = concurrent.futures.ThreadPoolExecutor(args.links)

    def play(number, line):
        missing = [(name, who) for name in PLAYERS for who in kinds if (number, line, name, who) not in known]
        return play_cells([Cell(args, work, number, line, name, who) for name, who in missing], declared)

    for done in pool.map(lambda key: play(*key), [(number, line) for number in range(args.rounds) for line in lines]):
        rows += done
        if args.rows:
            with args.rows.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in done)


def play_cells(cells, declared):
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

    def __init__(self, args, work, number, line, name, who):
        self.args, self.number, self.line, self.name, self.who = args, number, line, name, who
        self.file = work / "-".join(map(str, (number, list(LINES).index(line), list(PLAYERS).index(name), who)))
        rate, *options = LINES[line]
        if not isinstance(rate, str):
            trace = self.file.with_suffix(".trace")
            trace.write_text("".join(f"{second} {bits}\n" for second, bits in rate))
            rate = f"trace:{trace}"
        options += ["--queue", "64KiB", "--seed", str(number + 1)]
        server = " ".join(serve_command(args, work, "10.77.0.2:80")) + " >&2"
        self.link = subprocess.Popen(
            [args.binary, "lab", "link", "--until-eof", "--json", "-", "--rate", rate, *options, "--server", server],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.file.with_suffix(".link").open("w"), text=True,
        )  # fmt: skip

    def begin(self):
        description = self.link.stdout.readline()
        if not description:
            sys.exit(self.file.with_suffix(".link").read_text()[-2000:])
        at, url = int(time.time()) + SETTLE_S, f"http://10.77.0.2/title/{PLAYERS[self.name]}"
        if self.who == "emulated":
            argv = [
                str(self.args.binary), "load", "players", url, "--viewers", "1", "--spread", "0s", "--like", self.name,
                "--duration", f"{self.args.seconds}s", "--json", str(self.file),
            ]  # fmt: skip
            wait = f"while [ $(date +%s) -lt {at} ]; do sleep 0.05; done"
            argv = ["sh", "-c", f"{wait}; date +%s.%N >{self.file}.began; exec " + " ".join(argv)]
        else:
            argv = ["node", str(ROOT / "bench/players.mjs"), self.name, url, str(self.args.seconds), str(at * 1000)]
        self.at = at
        self.player = subprocess.Popen(
            [self.args.binary, "lab", "exec", json.loads(description)["link"], "client", "--", *argv],
            stdout=subprocess.PIPE, stderr=self.file.with_suffix(".err").open("w"), text=True,
        )  # fmt: skip

    def end(self, declared):
        text = self.player.communicate(timeout=SETTLE_S + self.args.seconds + 120)[0]
        if self.player.returncode:
            sys.exit(f"{self.name}, {self.who}: {self.file.with_suffix('.err').read_text()[-2000:]}")
        self.link.stdin.close()
        late = json.loads(self.link.stdout.read())["lateness_us"]["p99"] / 1000
        seen = self.emulated(text) if self.who == "emulated" else self.real(json.loads(text), declared[PLAYERS[self.name]])
        return {"round": self.number, "line": self.line, "name": self.name, "who": self.who, "late_ms": late, **seen}

    def emulated(self, text):
        seen = json.loads(self.file.read_text())["viewing"]
        start = re.search(r"^start-up +max ([\d.]+) ms", text, re.M)
        return {
            "kbps": seen["bitrates_kbps"][0], "start_s": float(start[1]) / 1000, "stalls": seen["stalls"],
            "stalled_s": seen["stalled_s"], "played_s": seen["played_s"], "switches": seen["switches"],
            "abandoned": seen.get("abandoned", 0),
            "began_late_s": float(pathlib.Path(f"{self.file}.began").read_text()) - self.at,
        }  # fmt: skip

    def real(self, seen, declared):
        if seen["errors"] or not seen["played_s"]:
            sys.exit(f"{self.name} on {self.line}: {seen}")
        bits = sum(declared[int(height)] * seconds for height, seconds in seen["shown"].items() if int(height) in declared)
        return {
            "kbps": bits / sum(seen["shown"].values()), "start_s": seen["start_s"], "stalls": len(seen["stalls"]),
            "stalled_s": sum(seen["stalls"]), "played_s": seen["played_s"], "switches": seen["switches"],
            "abandoned": seen["abandoned"], "began_late_s": seen["began_late_s"],
        }  # fmt: skip


# ── report ────────────────────────────────────────────────────────────────────────────────


def find_faults(rows):
    """Returns the links and players that were too slow for a fair comparison."""
    links = {f"{row['line']}: a link was {row['late_ms']:.1f} ms late" for row in rows if row["late_ms"] > LATE_MS}
    late = [row for row in rows if row.get("began_late_s", 0) > BEGAN_LATE_S]
    players = {f"{row['line']}: {row['name']}, {row['who']}, began {row['began_late_s']:.1f} s late" for row in late}
    return sorted(links | players)


def medians(rows, line, name, who):
    """Returns the medians of a player on a link by quantity; none without rows."""
    found = [row for row in rows if (row["line"], row["name"], row["who"]) == (line, name, who)]
    values = {key: statistics.median(row[key] for row in found) for key, *_ in QUANTITIES} if found else None
    if values and (name, who) == ("shaka", "real"):
        values["abandoned"] = None  # Shaka Player has no event for it.
    return values


def differs(real, emulated, floor):
    """Returns whether the emulated value differs by more than a third and more than the floor."""
    return abs(emulated - real) > max(floor, real / 3)


def report(args, rows, faults):
    versions = json.loads((ROOT / "player/package.json").read_text())["dependencies"]
    rounds = len({row["round"] for row in rows})
    lines = [
        f"machine: {cpu_model()}, {os.cpu_count()} cores, Linux {os.uname().release}; load average at the end {os.getloadavg()[0]:.1f}",
        f"command: bench/players.py --rounds {args.rounds} --seconds {args.seconds} --links {args.links}",
        f"players: hls.js {versions['hls.js']}, dash.js {versions['dashjs']}, Shaka Player {versions['shaka-player']}, {chromium_version()}, headless",
        f"title: {', '.join(f'{height}p {kbps} kb/s' for height, kbps in LADDER.items())}, segments of 2 s; audio 64 kb/s",
        *(f"link {line}: {describe_link(options)}" for line, options in LINES.items()),
        f"players start {SETTLE_S} s after the link; medians of {rounds} rounds: real → emulated; **bold**: more than a third apart",
        "",
        "| link | player | " + " | ".join(title for _, title, *_ in QUANTITIES) + " |",
        "|---|---|" + "---|" * len(QUANTITIES),
    ]
    for line in LINES:
        for name in PLAYERS:
            real, emulated = (medians(rows, line, name, who) for who in ("real", "emulated"))
            if real and emulated:
                lines.append(f"| {line} | {name} | " + " | ".join(format_pair(real, emulated, *quantity) for quantity in QUANTITIES) + " |")
    lines += ["", *(f"- FAILS: {fault}" for fault in faults)]
    return "\n".join(lines) + "\n"


def describe_link(options):
    rate, *others = options
    return " ".join([rate if isinstance(rate, str) else ", ".join(f"from {second} s {bits}" for second, bits in rate[:-1]), *others])


def format_pair(real, emulated, key, _title, digits, floor):
    if real[key] is None:
        return f"– → {emulated[key]:.{digits}f}"
    text = f"{real[key]:.{digits}f} → {emulated[key]:.{digits}f}"
    return f"**{text}**" if differs(real[key], emulated[key], floor) else text


def chromium_version():
    return subprocess.run([os.environ.get("CHROMIUM", "chromium"), "--version"], capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
