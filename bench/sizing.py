"""Computes the size of a deployment from measured coefficients (coefficients.json).

    python3 bench/sizing.py --viewers 10000 --mbps 5 [--hit-ratio 0.95] [--nic-gbps 25] [--cores 8]
    python3 bench/sizing.py --page      writes the tables of docs/how-to/sizing.md; --check compares them
"""

import argparse
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/how-to/sizing.md"
COEFFICIENTS = json.loads((ROOT / "bench/coefficients.json").read_text())
BEGIN, END = "<!-- sizing: {} -->", "<!-- end of sizing -->"
MACHINES = (1, 3, 30, 3000)
SECONDS_PER_MONTH = 30 * 86400


def coefficient(name):
    return COEFFICIENTS[name]["value"]


def compute(viewers, args):
    """Returns the needs of a number of concurrent viewers."""
    gbps = viewers * args.mbps / 1000
    missed_gbps = gbps * (1 - args.hit_ratio)
    edge_cores = gbps * coefficient("viewer_cores_per_gbps") + missed_gbps / 8 / coefficient("edge_miss_gb_per_core_second")
    origin_cores = missed_gbps / 8 / coefficient("origin_gb_per_core_second")
    segments = missed_gbps * 1e9 / (args.mbps * 1e6 * args.segment_seconds)
    return {
        "gbps": gbps,
        "edge_cores": edge_cores / args.utilisation,
        "edge_memory_gib": viewers * coefficient("viewer_kib") / 2**20,
        "origin_gbps": missed_gbps,
        "origin_cores": origin_cores / args.utilisation,
        "storage_requests_per_s": segments * coefficient("storage_requests_per_segment"),
        "storage_tb_per_month": missed_gbps / 8 * SECONDS_PER_MONTH / 1000,
    }


def viewers_of(edges, args):
    """Returns the viewers that a number of edges serves while one of them is lost, and what limits them."""
    carrying = max(1, edges - 1)
    by_network = carrying * args.nic_gbps * args.utilisation * 1000 / args.mbps
    cores_per_viewer = compute(1, args)["edge_cores"]
    by_cores = carrying * args.cores / cores_per_viewer
    return int(min(by_network, by_cores)), "network" if by_network < by_cores else "processors"


def table_of_machines(args):
    lines = [
        "| edges | viewers | limited by | sent | edge cores | memory for viewers | from the origins | origin cores | storage requests |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for edges in MACHINES:
        viewers, limit = viewers_of(edges, args)
        needs = compute(viewers, args)
        lines.append(
            f"| {edges:,} | {viewers:,} | {limit} | {needs['gbps']:,.0f} Gb/s | {math.ceil(needs['edge_cores']):,} | "
            f"{needs['edge_memory_gib']:,.2f} GiB | {needs['origin_gbps']:,.1f} Gb/s | {math.ceil(needs['origin_cores']):,} | "
            f"{needs['storage_requests_per_s']:,.0f}/s |"
        )
    return "\n".join(lines)


def table_of_coefficients(_):
    lines = ["| coefficient | value | measured | repeat |", "|---|---|---|---|"]
    for name, one in COEFFICIENTS.items():
        lines.append(f"| `{name}` | {one['value']} {one['unit']} | {one['meaning']} (`{one['source']}`) | `{one['command']}` |")
    return "\n".join(lines)


TABLES = {"machines": table_of_machines, "coefficients": table_of_coefficients}


def fill(page, args):
    for name, table in TABLES.items():
        before, _, rest = page.partition(BEGIN.format(name) + "\n")
        _, _, after = rest.partition(END)
        page = f"{before}{BEGIN.format(name)}\n{table(args)}\n{END}{after}"
    return page


def missing_evidence():
    """Returns the coefficients whose source no longer contains their measurement."""
    return [name for name, one in COEFFICIENTS.items() if one["evidence"] not in (ROOT / one["source"]).read_text()]


def check(args):
    if gone := missing_evidence():
        sys.exit(f"the source no longer contains the measurement of: {', '.join(gone)}")
    page = PAGE.read_text()
    if fill(page, args) != page:
        sys.exit("docs/how-to/sizing.md is out of date; run python3 bench/sizing.py --page")
    print("the sizing page is current, and its coefficients are in the measured results")


def describe(viewers, args):
    needs = compute(viewers, args)
    print(f"{viewers:,} viewers at {args.mbps:g} Mb/s, {args.hit_ratio:.0%} of the bytes from the edges:")
    print(f"  sent          {needs['gbps']:,.2f} Gb/s")
    print(f"  edges         {needs['edge_cores']:,.1f} cores, {needs['edge_memory_gib']:,.2f} GiB for viewers, beside the cache")
    print(f"  origins       {needs['origin_gbps']:,.2f} Gb/s, {needs['origin_cores']:,.1f} cores")
    print(f"  storage       {needs['storage_requests_per_s']:,.0f} requests/s, {needs['storage_tb_per_month']:,.1f} TB/month")
    if args.titles:
        index = args.titles * args.hours / 2 * coefficient("index_mib_per_two_hour_title") / 1024
        print(f"  indexes       {index:,.2f} GiB for {args.titles:,} titles in use")
    requests = needs["storage_requests_per_s"] * SECONDS_PER_MONTH
    if args.price_per_million or args.price_per_gb:
        cost = requests / 1e6 * args.price_per_million + needs["storage_tb_per_month"] * 1000 * args.price_per_gb
        print(f"  cost          {cost:,.2f} per month, if these viewers watch all the time")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--viewers", type=int)
    parser.add_argument("--mbps", type=float, default=5, help="mean bitrate of a viewer")
    parser.add_argument("--hit-ratio", type=float, default=0.95, help="share of bytes that the edges have")
    parser.add_argument("--segment-seconds", type=float, default=6)
    parser.add_argument("--utilisation", type=float, default=0.6, help="share of a machine that is used at most")
    parser.add_argument("--cores", type=int, default=8, help="of an edge")
    parser.add_argument("--nic-gbps", type=float, default=25, help="of an edge")
    parser.add_argument("--titles", type=int, help="titles in use at the same time")
    parser.add_argument("--hours", type=float, default=2, help="length of a title")
    parser.add_argument("--price-per-million", type=float, default=0, help="price of a million storage requests")
    parser.add_argument("--price-per-gb", type=float, default=0, help="price of a GB from the storage")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.check:
        check(args)
    elif args.page:
        PAGE.write_text(fill(PAGE.read_text(), args))
    else:
        describe(args.viewers or 10_000, args)


if __name__ == "__main__":
    main()
