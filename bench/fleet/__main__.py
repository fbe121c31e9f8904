"""Runs a fleet: HAProxy in front of three edges and three origins over an S3 server, under emulated viewers.

    python3 bench/fleet [--small] [--binary FILE] [--load 0.8] [--save [FOLDER]]

During each event, viewers play; see events.py. Exits with 1 if a bound is broken (figures.py). `--small` is the
version of `make test`: few viewers, and no bound that depends on time. Otherwise the number of viewers is the one
that requests `--load` of what saturates the machine, and each fault lasts longer than the viewers' buffers. `--save` writes
the report to bench/runs, or to a folder. `python3 bench/fleet/remap.py` counts only the paths that move.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from cold_titles import FILES, ColdTitles
from events import EVENTS, measure_remapping
from figures import BUFFER_SECONDS, UPGRADE_PAUSE_SECONDS, broken_bounds, describe_event, describe_fleet
from load import SPREAD_SECONDS, Viewers
from machines import (
    HAPROXY_CONFIG,
    NATS_SERVER,
    ROOT,
    WEED,
    Balancer,
    CommandServer,
    Edge,
    FleetError,
    Gateway,
    Origin,
    Storage,
    cpu_seconds,
)
from relay import Relay
from remapping import edges_by_query
from report import write_report
from storage_reads import reads_over_time

FILM = ROOT / "target/fixtures/library/film"
# Less than one segment of video.
FULL_DISK_KIB = 64
CALIBRATION_VIEWERS = 700
CALIBRATION_SECONDS = 20
CALIBRATIONS = 6
# Of the processors.
SATURATED = 0.95
# Of the fault of each event.
FAULT_SECONDS = 1.5 * BUFFER_SECONDS
COLD_TITLES = 80


class Fleet:
    def __init__(self, work, args, ended):
        self.work, self.binary, self.small = work, args.binary, args.small
        self.titles = [f"t{n:02}" for n in range(args.titles)]
        self.responses, self.fault_seconds = args.responses, 0 if args.small else FAULT_SECONDS
        self.upgrade_pause_seconds = 0 if args.small else UPGRADE_PAUSE_SECONDS
        self.exit_codes, self.remapped, self.restarts_begin = [], {}, None
        self.storage = self.begin(Storage(work), ended)
        self.fill()
        self.gateway = self.begin(Gateway(work, self.storage), ended)
        self.origins = [Origin(work, f"origin{n}", self.binary, self.storage, self.gateway) for n in (1, 2, 3)]
        self.relay = Relay(self.origins[2].port)
        ended.callback(self.relay.stop)
        ports = [self.origins[0].port, self.origins[1].port, self.relay.port]
        self.origin_urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.nats = self.begin(CommandServer(work, "nats"), ended) if NATS_SERVER.exists() else None
        full = FULL_DISK_KIB if os.geteuid() == 0 else None
        self.edges = [Edge(work, f"edge{n}", self.binary, self.origin_urls, self.nats, full if n == 1 else None) for n in (1, 2, 3)]
        for machine in [*self.origins, *self.edges]:
            self.begin(machine, ended)
        self.balancer = self.begin(Balancer(work, self.edges), ended)
        for edge in self.edges:
            self.balancer.wait_for_state(edge, "UP")
        self.edges_of_one_path = edges_by_query(self.balancer.port)
        self.cold = ColdTitles(self.balancer.port, self.cold_titles)
        self.commands = None

    def begin(self, machine, ended):
        # A machine that does not become ready has to be ended, too.
        ended.callback(lambda: machine.process and machine.kill())
        machine.start()
        return machine

    def fill(self):
        """Stores the film under several names, with its index MP4s, and a smaller one for the cold titles."""
        self.store(self.make_film("film", [path.name for path in FILM.glob("*.mp4")]), self.titles)
        self.cold_titles = [f"c{n:02}" for n in range(COLD_TITLES)]
        self.store(self.make_film("small-film", FILES), self.cold_titles)

    def make_film(self, name, files):
        film = self.work / name
        film.mkdir()
        for file in files:
            shutil.copy(FILM / file, film)
        command = [self.binary, "index", *sorted(film.glob("*.mp4")), "-o", film, "--name", "film"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return film

    def store(self, film, titles):
        for title in titles:
            for path in sorted(film.iterdir()):
                self.storage.put(f"{title}/{path.name}", path)

    def wait(self, share=1.0):
        """Waits until viewers received a number of responses."""
        self.balancer.wait_for_responses(max(1, int(self.responses * share)))

    def settle(self):
        """Waits as `wait` does, and until all viewers have arrived and filled their buffers."""
        arrived = time.monotonic() + (0 if self.small else SPREAD_SECONDS + BUFFER_SECONDS)
        self.wait()
        time.sleep(max(0, arrived - time.monotonic()))

    def hold(self):
        """Waits as `wait` does, and until the fault is longer than the viewers' buffers."""
        until = time.monotonic() + self.fault_seconds
        self.wait()
        time.sleep(max(0, until - time.monotonic()))

    def used_cpu(self):
        """Returns {process id: CPU-seconds} of the processes that run."""
        machines = [self.storage, self.gateway, *self.origins, *self.edges, self.balancer, self.relay]
        return {machine.process.pid: cpu_seconds(machine.process.pid) for machine in machines}


def count_processors(before, after, seconds):
    """Returns the mean number of busy processors. What a process used that ended in between is not counted."""
    return sum(used - before.get(pid, 0) for pid, used in after.items()) / seconds


def measure_load(fleet, viewers):
    """Returns the responses per second of a number of viewers after their start, and the share of the processors that
    all processes use, viewers included."""
    load = Viewers(fleet, f"calibration-{viewers}", viewers, 99)
    fleet.settle()
    before, responses = fleet.used_cpu() | load.used_cpu(), fleet.balancer.responses()
    time.sleep(CALIBRATION_SECONDS)
    used = count_processors(before, fleet.used_cpu() | load.used_cpu(), CALIBRATION_SECONDS)
    rate = (fleet.balancer.responses() - responses) / CALIBRATION_SECONDS
    load.stop()
    return rate, used / os.cpu_count()


def calibrate(fleet, load):
    """Returns the number of viewers whose requests are a share of the responses per second that saturate the processors,
    and these responses per second.

    The share of the processors would be a poor measure: they do more at once when they are busy, so the number of
    viewers that uses 80 % of them varied by a tenth, and was 93 % of what saturates them."""
    viewers = CALIBRATION_VIEWERS
    rate_of_one = None
    for _ in range(CALIBRATIONS):
        rate, share = measure_load(fleet, viewers)
        print(f"calibration: {viewers} viewers, {rate:.0f} responses per second, {share:.0%} of the processors", flush=True)
        if rate_of_one and share >= SATURATED:
            return int(load * rate / rate_of_one), round(rate)
        rate_of_one = rate_of_one or rate / viewers
        viewers *= 2
    raise FleetError(f"{viewers // 2} viewers used less than {SATURATED:.0%} of the processors")


def run_event(fleet, event, viewers, seed):
    print(f"{event.name} …", flush=True)
    load = Viewers(fleet, event.name.replace(" ", "-"), viewers, seed)
    fleet.settle()
    before, responses, begin = fleet.used_cpu() | load.used_cpu(), fleet.balancer.responses(), time.time()
    evidence = event.run(fleet)
    end, after = time.time(), fleet.used_cpu() | load.used_cpu()
    responses = fleet.balancer.responses() - responses
    fleet.wait()
    figures = load.stop()
    if event.repair:
        event.repair(fleet)
    described = describe_event(event, figures, evidence, fleet.cold.failures())
    described["fault_s"] = round(end - begin, 1)
    described["rate"] = round(responses / (end - begin))
    described["load"] = round(count_processors(before, after, end - begin) / os.cpu_count(), 3)
    return described, (figures, begin, end)


def run(args, work, ended):
    start = time.monotonic()
    fleet = Fleet(work, args, ended)
    print(f"started in {time.monotonic() - start:.1f} s", flush=True)
    viewers, saturation = (args.viewers, None) if args.viewers else calibrate(fleet, args.load)
    events, timelines = [], []
    for seed, event in enumerate(EVENTS, 1):
        if event.restarts_origins and not fleet.restarts_begin:
            fleet.restarts_begin = time.time()
        described, timeline = run_event(fleet, event, viewers, seed)
        met = f"; {described['met']} {described['evidence']}" if described["evidence"] else ""
        print(f"  {described['requests']} requests, {described['failed']} failed, {described['stalls']} stalls, "
              f"{described['fault_s']} s{met}", flush=True)  # fmt: skip
        events.append(described)
        timelines.append((event, *timeline))
    measure_remapping(fleet)
    # The records of the storage requests are complete when the origins have exited.
    fleet.exit_codes += [origin.stop() for origin in fleet.origins]
    return {"viewers": viewers, "saturation": saturation, "events": events, "fleet": describe_fleet(fleet)}, timelines, reads_over_time(work)


def missing_program():
    if not WEED.exists():
        return "the S3 server is not installed; run scripts/storage.sh"
    if not shutil.which("haproxy"):
        return "haproxy is not installed"
    return None if FILM.exists() else "the films are missing; run fixtures/make.sh"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--binary", type=pathlib.Path)
    parser.add_argument("--viewers", type=int)
    parser.add_argument("--titles", type=int)
    parser.add_argument("--responses", type=int, help="responses before, during and after each event")
    parser.add_argument("--load", type=float, default=0.8, help="share of the responses per second that saturate the machine [0.8]")
    parser.add_argument("--save", nargs="?", type=pathlib.Path, const=ROOT / "bench/runs", metavar="FOLDER")
    args = parser.parse_args()
    if not 0 < args.load < 1:
        parser.error(f"--load {args.load:g} is not a share of the processors between 0 and 1, such as 0.8")
    args.binary = (args.binary or ROOT / ("target/debug" if args.small else "target/release") / "headwater").resolve()
    args.viewers = args.viewers or (8 if args.small else None)
    args.titles = args.titles or (6 if args.small else 60)
    args.responses = args.responses or (20 if args.small else 3000)
    return args


def main():
    args = parse_arguments()
    # Ends all machines when the run is stopped from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if reason := missing_program():
        print(f"SKIPPED fleet: {reason}")
        return 0
    subprocess.run(["haproxy", "-c", "-f", HAPROXY_CONFIG], check=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headwater-fleet-") as folder, contextlib.ExitStack() as ended:
        try:
            result, timelines, reads = run(args, pathlib.Path(folder), ended)
        except FleetError as error:
            print(f"FAILED: {error}")
            return 1
        result["seconds"] = round(time.monotonic() - start)
        result["load"] = None if args.viewers else args.load
        result["broken"] = broken_bounds(result, with_stalls=not args.small)
        if args.save:
            write_report(result, timelines, reads, args.save)
    print(json.dumps(result["fleet"]))
    broken = result["broken"]
    for sentence in broken:
        print(f"FAILED: {sentence}")
    print(f"fleet: {sum(e['requests'] for e in result['events'])} requests, {len(broken)} bounds broken, {result['seconds']} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
