"""Emulated viewers of one event, and what they report."""

import json
import signal
import subprocess
import time

from figures import BUFFER_SECONDS
from machines import PATIENCE_SECONDS, cpu_seconds

# Each viewer plays for a short time and is replaced, so that much of the library is requested for the first time.
WATCH_SECONDS = (4, 30)
# Viewers fill their buffers when they arrive. Arrivals over the longest stay make the load as high as it is later:
# with 15 s, it rose for 35 s, from 70 % of the processors to all of them.
SPREAD_SECONDS = WATCH_SECONDS[1]


class Viewers:
    """`headwater load players` against the balancer, until it is stopped."""

    def __init__(self, fleet, name, viewers, seed):
        self.name, self.viewers = name, viewers
        self.records, self.json = fleet.work / f"load-{name}.jsonl", fleet.work / f"load-{name}.json"
        manifests = [f"http://127.0.0.1:{fleet.balancer.port}/{title}/film.ism/.m3u8" for title in fleet.titles]
        watch = "uniform:{}s..{}s".format(*WATCH_SECONDS)
        command = [fleet.binary, "load", "players", *manifests, "--viewers", viewers, "--duration", "1h", "--seed", seed,
                   "--abr", "highest", "--buffer", f"{BUFFER_SECONDS}s", "--watch", watch, "--zipf", "0.8", "--cmcd", "2-query",
                   "--spread", f"{2 if fleet.small else SPREAD_SECONDS}s",
                   "--records", self.records, "--json", self.json]  # fmt: skip
        self.log = open(fleet.work / f"load-{name}.log", "w")
        self.start = time.time()
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log)

    def used_cpu(self):
        return {self.process.pid: cpu_seconds(self.process.pid)}

    def stop(self):
        """Ends the run, and returns its figures."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_SECONDS)
        self.log.close()
        return ViewerFigures(self)


class ViewerFigures:
    def __init__(self, viewers):
        lines = [json.loads(line) for line in viewers.records.read_text().splitlines()]
        self.start = viewers.start
        self.requests = [line for line in lines if "record" not in line]
        self.players = [line for line in lines if line.get("record") == "player"]

    def failures(self):
        """Returns the failed requests. A request that was in flight when the run was stopped is none."""
        return [line for line in self.requests if line.get("fault") or line["status"] >= 400]

    def stalls(self):
        return sum(player["stalls"] for player in self.players)

    def failed_viewers(self):
        return sum(player["end"] in ("failed", "gave_up") for player in self.players)

    def stalled_seconds(self):
        return sum(player["stalled_ms"] for player in self.players) / 1000

    def played_seconds(self):
        return sum(player["played_ms"] for player in self.players) / 1000
