"""Computes the size of a deployment from measured coefficients (coefficients.json).

    python3 bench/sizing.py --viewers 10000 --mbps 5 [--hit-ratio 0.95] [--nic-gbps 25] [--cores 8]
    python3 bench/sizing.py --page      writes the tables of docs/how-to/sizing.md; --check compares them
"""

import argparse
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/how-to/sizing.md"
CALCULATOR = PAGE.with_name("sizing-calculator.js")
COEFFICIENTS = json.loads((ROOT / "bench/coefficients.json").read_text())
BEGIN, END = "<!-- sizing: {} -->", "<!-- end of sizing -->"
MACHINES = (1, 3, 30, 3000)
SECONDS_PER_MONTH = 30 * 86400
# Example prices for the table of costs. They are not those of any provider.
EXAMPLE = {
    "price_per_million": 0.4,
    "price_per_gb": 0.01,
    "price_per_machine": 200,
    "price_per_library_tb": 20,
    "library_tb": 50,
    "mean_share": 0.4,
}


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


def edges_for(viewers, args):
    """Returns the edges that serve a number of viewers while one of several is lost."""
    carrying = math.ceil(viewers / viewers_of(1, args)[0])
    return carrying if carrying == 1 else carrying + 1


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


def compute_costs(edges, viewers, args):
    """Returns the cost of a month by cause. The machines are paid for the peak, the storage for the mean."""
    needs = compute(viewers, args)
    requests = needs["storage_requests_per_s"] * SECONDS_PER_MONTH * args.mean_share
    machines = edges + math.ceil(needs["origin_cores"] / args.cores)
    return {
        "requests": requests / 1e6 * args.price_per_million,
        "traffic": needs["storage_tb_per_month"] * 1000 * args.mean_share * args.price_per_gb,
        "library": args.library_tb * args.price_per_library_tb,
        "machines": machines * args.price_per_machine,
    }


def table_of_costs(args):
    args = argparse.Namespace(**{**vars(args), **EXAMPLE})
    lines = [
        "| edges | viewers | storage requests | traffic out of the storage | library | machines | total per month |",
        "|---|---|---|---|---|---|---|",
    ]
    for edges in MACHINES:
        viewers, _ = viewers_of(edges, args)
        costs = compute_costs(edges, viewers, args)
        cells = [f"{cost:,.0f}" for cost in [*costs.values(), sum(costs.values())]]
        lines.append(f"| {edges:,} | {viewers:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_coefficients(_):
    lines = ["| coefficient | value | measured | repeat |", "|---|---|---|---|"]
    for name, one in COEFFICIENTS.items():
        lines.append(f"| `{name}` | {one['value']} {one['unit']} | {one['meaning']} (`{one['source']}`) | `{one['command']}` |")
    return "\n".join(lines)


def describe(viewers, args):
    """Returns the lines of the result."""
    needs = compute(viewers, args)
    edges = edges_for(viewers, args)
    lines = [f"{viewers:,} viewers at {args.mbps:g} Mb/s, {args.hit_ratio:.0%} of the bytes from the edges:"]
    lines.append(f"  sent          {needs['gbps']:,.2f} Gb/s")
    spare = " (one may be lost)" if edges > 1 else ""
    lines.append(f"  machines      {edges:,} for edges{spare}, {math.ceil(needs['origin_cores'] / args.cores):,} for origins")
    lines.append(f"  edges         {needs['edge_cores']:,.1f} cores, {needs['edge_memory_gib']:,.2f} GiB for viewers, beside the cache")
    lines.append(f"  origins       {needs['origin_gbps']:,.2f} Gb/s, {needs['origin_cores']:,.1f} cores")
    lines.append(f"  storage       {needs['storage_requests_per_s']:,.0f} requests/s, {needs['storage_tb_per_month']:,.1f} TB/month")
    if args.titles:
        index = args.titles * args.hours / 2 * coefficient("index_mib_per_two_hour_title") / 1024
        lines.append(f"  indexes       {index:,.2f} GiB for {args.titles:,} titles in use")
    if args.library_tb and args.disk_tb:
        stored = min(1, edges * args.disk_tb / args.library_tb)
        lines.append(f"  edge disks    {stored:.0%} of the library of {args.library_tb:g} TB, with hashing by path")
    costs = compute_costs(edges, viewers, args)
    if total := sum(costs.values()):
        parts = ", ".join(f"{name} {cost:,.2f}" for name, cost in costs.items())
        lines.append(f"  cost          {total:,.2f} per month: {parts}")
    return lines


def example(args):
    prices = {**vars(args), **EXAMPLE, "titles": 500, "disk_tb": 4}
    lines = describe(10_000, argparse.Namespace(**prices))
    return "\n".join(["```text", *lines, "```"])


TABLES = {"example": example, "machines": table_of_machines, "costs": table_of_costs, "coefficients": table_of_coefficients}


def fill(page, args):
    for name, table in TABLES.items():
        before, _, rest = page.partition(BEGIN.format(name) + "\n")
        _, _, after = rest.partition(END)
        page = f"{before}{BEGIN.format(name)}\n{table(args)}\n{END}{after}"
    return page


def fill_calculator(script):
    """Returns the calculator's script with the current coefficients."""
    values = json.dumps({name: one["value"] for name, one in COEFFICIENTS.items()})
    return re.sub(r"const COEFFICIENTS = .*;", lambda _: f"const COEFFICIENTS = {values};", script)


def compare_calculator(args):
    """Exits if the calculator's result differs from ours for a number of viewers."""
    if not shutil.which("node"):
        return print("SKIPPED sizing calculator: node is not installed")
    args = argparse.Namespace(**{**vars(args), **EXAMPLE, "titles": 500})
    for viewers in [1, 10_000] + [viewers_of(edges, args)[0] for edges in MACHINES]:
        ours = {**compute(viewers, args), "edges": edges_for(viewers, args)}
        ours["cost"] = sum(compute_costs(ours["edges"], viewers, args).values())
        code = f"console.log(JSON.stringify(require({json.dumps(str(CALCULATOR))}).computeNeeds(JSON.parse(process.argv[1]))))"
        text = json.dumps({**vars(args), "viewers": viewers})
        theirs = json.loads(subprocess.run(["node", "-e", code, text], check=True, capture_output=True).stdout)
        for name, value in ours.items():
            if not math.isclose(theirs[name], value, rel_tol=1e-9):
                sys.exit(f"the calculator computes {theirs[name]} instead of {value}: {name} for {viewers} viewers")


def missing_evidence():
    """Returns the coefficients whose source no longer contains their measurement."""
    return [name for name, one in COEFFICIENTS.items() if one["evidence"] not in (ROOT / one["source"]).read_text()]


def check(args):
    if gone := missing_evidence():
        sys.exit(f"the source no longer contains the measurement of: {', '.join(gone)}")
    page = PAGE.read_text()
    if fill(page, args) != page:
        sys.exit("docs/how-to/sizing.md is out of date; run python3 bench/sizing.py --page")
    if fill_calculator(CALCULATOR.read_text()) != CALCULATOR.read_text():
        sys.exit("docs/how-to/sizing-calculator.js is out of date; run python3 bench/sizing.py --page")
    compare_calculator(args)
    print("the sizing page is current, and its coefficients are in the measured results")


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
    parser.add_argument("--price-per-machine", type=float, default=0, help="price of a machine for a month")
    parser.add_argument("--price-per-library-tb", type=float, default=0, help="price of a TB in the storage for a month")
    parser.add_argument("--library-tb", type=float, default=0, help="size of the library")
    parser.add_argument("--disk-tb", type=float, default=0, help="disk tier of an edge")
    parser.add_argument("--mean-share", type=float, default=1, help="viewers over the month, as a share of those of the peak")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.check:
        check(args)
    elif args.page:
        PAGE.write_text(fill(PAGE.read_text(), args))
        CALCULATOR.write_text(fill_calculator(CALCULATOR.read_text()))
    else:
        print("\n".join(describe(args.viewers or 10_000, args)))


if __name__ == "__main__":
    main()
