"""Counts the paths that move to another edge when one is added and removed, without viewers and without a storage.

    python3 bench/fleet/remap.py [--binary FILE] [--save [FOLDER]]

HAProxy places servers on its hash ring by their ids and weights, so the figures depend on neither addresses nor speed:
each run on each machine has the same. The configuration is that of deploy/haproxy, and once more with HAProxy's default
weight. Exits with 1 if the weight of deploy/haproxy breaks the bound of 1/N + 2 %.
"""

import argparse
import contextlib
import json
import pathlib
import re
import sys
import tempfile

from events import fourth_edge
from figures import REMAP_MARGIN
from machines import HAPROXY_CONFIG, ROOT, Balancer, Edge, Headwater
from plots import draw_bars
from remapping import PATHS, map_paths, moved_share

EDGES = 4


class LocalOrigin(Headwater):
    def command(self):
        return [self.binary, "serve", ROOT / "media", *self.common()]


class SmallFleet:
    """Three edges behind HAProxy, and one origin of local films."""

    def __init__(self, work, binary, config, ended):
        self.work, self.binary, self.nats, self.exit_codes = work, binary, None, []
        origin = self.begin(LocalOrigin(work, "origin", binary), ended)
        self.origin_urls = [f"http://127.0.0.1:{origin.port}"]
        edges = [self.begin(Edge(work, f"edge{n}", binary, self.origin_urls, None), ended) for n in range(1, EDGES)]
        self.balancer = self.begin(Balancer(work, edges, config), ended)
        for edge in edges:
            self.balancer.wait_for_state(edge, "UP")

    def begin(self, machine, ended):
        ended.callback(lambda: machine.process and machine.kill())
        machine.start()
        return machine


def measure(binary, config):
    with tempfile.TemporaryDirectory(prefix="headwater-remap-") as folder, contextlib.ExitStack() as ended:
        work = pathlib.Path(folder)
        (work / "haproxy.cfg").write_text(config)
        fleet = SmallFleet(work, binary, work / "haproxy.cfg", ended)
        before = map_paths(fleet.balancer.port)
        with fourth_edge(fleet):
            during = map_paths(fleet.balancer.port)
        after = map_paths(fleet.balancer.port)
    return {"up": moved_share(before, during), "down": moved_share(during, after)}


def describe(shares, limit):
    rows = [f"| {weight} | {moved['up']:.1%} | {moved['down']:.1%} |" for weight, moved in shares.items()]
    return "\n".join([
        "# Paths that move when an edge is added and removed", "",
        f"`python3 bench/fleet/remap.py --save`: {PATHS} paths through HAProxy to three edges, to four, and to three again. "
        f"The bound is 1/{EDGES} + 2 % = {limit:.1%}, for the weight of `deploy/haproxy/haproxy.cfg` (128).", "",
        "| weight of each server | edge added | edge removed |", "|---|---|---|", *rows, "",
        "![Paths that moved](fleet-remap.svg)", ""])  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/debug/headwater")
    parser.add_argument("--save", nargs="?", type=pathlib.Path, const=ROOT / "bench/runs", metavar="FOLDER")
    args = parser.parse_args()
    config, limit = HAPROXY_CONFIG.read_text(), 1 / EDGES + REMAP_MARGIN
    configs = {"128": config, "1": re.sub(r" weight 128\b", "", config)}
    assert configs["1"] != config, "deploy/haproxy/haproxy.cfg has another weight"
    shares = {weight: measure(args.binary.resolve(), text) for weight, text in configs.items()}
    print(json.dumps(shares))
    if args.save:
        bars = [(f"{way}, weight {weight}", 100 * share, f"{share:.1%}") for weight, moved in shares.items() for way, share in moved.items()]
        caption = f"paths that moved to another edge, in %; red: the bound of {limit:.1%}"
        (args.save / "fleet-remap.svg").write_text(draw_bars(bars, caption, [100 * limit]))
        (args.save / "fleet-remap.json").write_text(json.dumps({"paths": PATHS, "bound": limit, "moved": shares}, indent=1) + "\n")
        (args.save / "fleet-remap.md").write_text(describe(shares, limit))
    return int(max(shares["128"].values()) > limit)


if __name__ == "__main__":
    sys.exit(main())
