#!/usr/bin/env python3
"""Compares two builds of headwater: work per CPU-second of the server, in interleaved rounds.

Both serve the same films and the same cached responses. For each kind of work, prints the median of the
paired ratios NEW / OLD with the smallest and the largest. A ratio below 1 that the whole span shares
means that NEW is slower.

  bench/versions.py OLD NEW                  paths of two binaries
  bench/versions.py OLD NEW --only playlist  kinds whose name contains this
"""

import pathlib
import statistics
import sys
import types

import edge
import run
from backends import make_certificate, workspace
from parts.films import in_milliseconds


def main():
    args = arguments()
    with workspace("versions") as (work, ended):
        films = run.make_films(work / "films", 60)
        kinds = {**serve_kinds(args, work, films, ended), **edge_kinds(args, work, ended)}
        wanted = {name: measure for name, measure in kinds.items() if not args.only or args.only in name}
        rounds = {name: [] for name in wanted}
        for number in range(args.rounds):
            for name, measure in wanted.items():
                order = ("old", "new") if number % 2 == 0 else ("new", "old")
                rounds[name].append({version: measure(version) for version in order})
            print(f"\rround {number + 1} of {args.rounds}", end="", file=sys.stderr)
    report(args, rounds)


def arguments():
    parser = run.round_arguments(__doc__)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.set_defaults(rounds=6, seconds=1)
    args = parser.parse_args()
    args.seconds = max(1, round(args.seconds))
    return args


def both(args, ended, start):
    """Starts a server of each version. The program is a global of the modules that start servers."""
    servers = {}
    for version in ("old", "new"):
        run.BINARY = edge.BINARY = getattr(args, version)
        servers[version] = start()
        ended.append(servers[version].stop)
    return servers


def serve_kinds(args, work, films, ended):
    plain = both(args, ended, lambda: run.Headwater(films, "2s"))
    cold = both(args, ended, lambda: run.Headwater(films, "2s", "--segment-memory", "0B"))
    certificate, key = make_certificate(work)
    tls = both(args, ended, lambda: run.Headwater(films, "2s", "--tls-cert", certificate, "--tls-key", key))
    # Names of segments differ between versions.
    lists = {version: run.list_kinds(server.url) for version, server in plain.items()}
    measure = lambda servers, kind: lambda version: run.wrk(args, servers[version], lists[version][kind], work)
    kinds = {kind: measure(plain, kind) for kind in lists["old"]}
    kinds["TS 1 MB, cold"] = measure(cold, "TS 1 MB")
    kinds["CMAF 1 MB, interleaved, cold"] = measure(cold, "CMAF 1 MB, interleaved")
    return kinds | {f"{kind}, TLS": measure(tls, kind) for kind in ("CMAF 1 MB", "CMAF 127 KB", "media playlist")}


def edge_kinds(args, work, ended):
    origin = edge.Nginx(work, "origin", edge.origin_config(work), core=1)
    ended.append(origin.stop)
    servers = both(args, ended, lambda: edge.Headwater(work, origin.url))
    options = types.SimpleNamespace(**vars(args))
    measure = lambda kind: lambda version: edge.measure_kind(options, servers[version], kind, work, run.wrk)
    return {f"edge {kind}": measure(kind) for kind in edge.KINDS}


def report(args, rounds):
    print(f"\n{run.cpu_model()}; wrk, {args.rounds} rounds of {args.seconds} s; work per CPU-second\n")
    print("| work | old | new | new / old (smallest–largest) | p99 old | p99 new |\n|---|---|---|---|---|---|")
    for name, of in rounds.items():
        rate = {v: [per_cpu_second(r[v]) for r in of] for v in ("old", "new")}
        ratios = sorted(new / old for old, new in zip(rate["old"], rate["new"], strict=True))
        spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f})"
        p99 = {v: statistics.median(in_milliseconds(r[v]["p99"]) for r in of) for v in rate}
        middle = {v: statistics.median(values) for v, values in rate.items()}
        print(f"| {name} | {middle['old']:,.0f} | {middle['new']:,.0f} | {spread} | {p99['old']:.2f} ms | {p99['new']:.2f} ms |")


def per_cpu_second(figures):
    return figures["requests"] / max(figures["cpu_s"], 1 / run.TICKS)


if __name__ == "__main__":
    main()
