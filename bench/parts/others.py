"""The edge compared with Varnish, and the load tester with wrk, measured by edge.py and load.py."""

import types

import edge
import load
import run

from .row import GB, REQUESTS, interleave, row

# Kind of edge.py, client, target ratio.
EDGE = [
    ("hit 1 MB", "wrk", 1.1),
    ("hit 1 MB", "discard", 1.3),
    ("hit 5 KB", "wrk", 3.0),
    ("miss 1 MB", "wrk", 1.0),
    ("miss 5 KB", "wrk", 1.0),
]
PACED = "with pacing like Varnish"
LOAD = [("1 MB", GB, 1.5), ("5 KB", REQUESTS, 1.0)]


def edges(args, work, ended):
    origin = edge.Nginx(work, "origin", edge.origin_config(work), core=1)
    ended.append(origin.stop)
    servers = {"ours": edge.Headwater(work, origin.url)}
    ended.append(servers["ours"].stop)
    servers["Varnish"] = edge.Varnish(work, origin.url)
    ended.append(servers["Varnish"].stop)
    # Paced like all other servers: see docs/decisions/0018.
    servers[PACED] = edge.Headwater(work, origin.url, "--near-rtt", "0s")
    ended.append(servers[PACED].stop)
    measure = lambda kind, name: edge.measure_kind(args, servers[name], kind[0], work, run.discard if kind[1] == "discard" else run.wrk)
    both, hits = ["ours", "Varnish"], ("hit 1 MB", "wrk")
    kinds = {(kind, client): both for kind, client, _ in EDGE} | {hits: list(servers)}
    found = interleave(args, kinds, measure)
    rows = [
        row(f"edge {kind}, {client}", "Varnish", target, GB if "MB" in kind else REQUESTS,
            *(found[kind, client][name] for name in both))
        for kind, client, target in EDGE
    ]  # fmt: skip
    paced = row(f"edge hit 1 MB, {PACED}, wrk", "Varnish", 0, GB, found[hits][PACED], found[hits]["Varnish"])
    return [*rows, paced]


def testers(args, work, ended):
    nginx, url = load.serve(work)
    ended += [nginx.wait, nginx.terminate]
    options = types.SimpleNamespace(**vars(args), rate=0)
    measure = lambda kind, tool: load.once(tool, f"{url}/{load.SIZES[kind]}.bin", options, None, None, work / "log")
    found = interleave(args, {kind: ["headwater", "wrk"] for kind, _, _ in LOAD}, measure)
    rows = []
    for kind, unit, target in LOAD:
        ours, theirs = ([{**f, "bytes": f["requests"] * load.SIZES[kind]} for f in found[kind][tool]] for tool in ("headwater", "wrk"))
        rows.append(row(f"load tester, {kind}, closed loop", "wrk", target, unit, ours, theirs))
    return rows
