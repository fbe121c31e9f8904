"""Writes a run as JSON, Markdown and plots."""

import json
import os
import platform
import subprocess
import time

from figures import BUFFER_SECONDS, READS_PER_BYTE_MAX, UPGRADE_PAUSE_SECONDS
from plots import draw_bars, draw_reads, draw_responses


def write_report(result, timelines, reads, folder):
    machine = describe_machine()
    result = {"machine": machine, **result}
    load = "" if result["load"] is None else f"-load-{100 * result['load']:.0f}"
    base = folder / f"{machine['date']}-{machine['processors']}-cores-fleet{load}"
    base.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    for name, plot in draw_plots(result, timelines, reads):
        base.with_name(f"{base.name}{name}.svg").write_text(plot)
    base.with_suffix(".md").write_text(describe(result, base.name))
    print(f"wrote {base}.md")


def draw_plots(result, timelines, reads):
    fleet = result["fleet"]
    yield "", draw_responses(timelines)
    stalled = [(event["event"], 100 * event["stalled_s"] / max(1, event["played_s"]), f"{event['stalls']}") for event in result["events"]]
    yield "-stalls", draw_bars(stalled, "time stalled, in % of the time played; above each bar: the number of stalls", [])
    yield "-reads", draw_reads(reads, timelines, READS_PER_BYTE_MAX)
    yield "-remapped", draw_remapped(fleet["remapped"], fleet["remapped_max"])


def draw_remapped(remapped, limit):
    moved = [(f"scaling {way}", 100 * share, f"{share:.1%}") for way, share in remapped.items()]
    return draw_bars(moved, f"paths that moved to another edge, in %; red: the bound of {limit:.1%}", [100 * limit])


def describe_machine():
    haproxy = subprocess.run(["haproxy", "-v"], capture_output=True, text=True).stdout.split()[2]
    return {"processors": os.cpu_count(), "kernel": platform.release(), "haproxy": haproxy, "date": time.strftime("%Y-%m-%d")}


def describe(result, name):
    machine, fleet = result["machine"], result["fleet"]
    lines = [
        "# The fleet under events",
        "",
        f"`{describe_command(result['load'])}`, {machine['date']}: {machine['processors']} processors, Linux {machine['kernel']}, HAProxy {machine['haproxy']}. "
        f"{result['viewers']} emulated viewers on the same machine played from HAProxy, three edges, three origins and an S3 "
        f"server ({describe_load(result)}). Each event ran under its own viewers.",
        "",
        f"![Responses per second]({name}.svg)",
        "",
        "| event | requests | failed | viewers | stalls | stalled | length | responses/s | processors | the fault was met by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for event in result["events"]:
        failed = f"{event['failed']} ({', '.join(event['faults'])})" if event["failed"] else "0"
        met = f"{event['met']} {event['evidence']}" if event["evidence"] else "–"
        lines.append(f"| {event['event']} | {event['requests']:,} | {failed} | {event['viewers']} | {event['stalls']} | "
                     f"{event['stalled_s']:.1f} s of {event['played_s']:,.0f} s | {event['fault_s']} s | {event['rate']:,} | {event['load']:.0%} | "
                     f"{met} |")  # fmt: skip
    remapped = ", ".join(f"{share:.1%} by scaling {way}" for way, share in fleet["remapped"].items())
    lines += [
        "",
        f"The viewers' buffers are {BUFFER_SECONDS} s long. Responses per second and the share of the processors are "
        "means of the event; all processes use the processors, viewers included.",
        "",
        f"![Stalls]({name}-stalls.svg)",
        f"![Bytes read per distinct byte]({name}-reads.svg)",
        f"![Paths that moved]({name}-remapped.svg)",
        "",
        f"- Bytes of media read from the storage per distinct byte: {fleet['storage_reads_per_byte']} before an origin was "
        f"restarted, {fleet['storage_reads_per_byte_with_restarts']} with the restarts, which empty the caches in memory. "
        f"Indexes and manifests: {fleet['storage_index_bytes'] / 1e6:.1f} MB beside {fleet['storage_media_bytes'] / 1e6:.1f} MB.",
        f"- Paths that moved to another edge: {remapped}; at most {fleet['remapped_max']:.1%}.",
        "- Edge 1 had a full disk (64 KiB) until the end of that event.",
        f"- The rolling upgrade replaces the next process {UPGRADE_PAUSE_SECONDS} s after the last one was ready.",
        describe_commands(fleet["commands"]),
        "- Bounds: no failed request in planned events; after `kill -9`, at most as many as were in flight, and every viewer "
        "plays on; no stall; each fault was met, and lasted longer than the buffers; 1.05 bytes read per distinct byte; "
        "1/N + 2 % of the paths moved.",
        f"- Broken bounds: {'; '.join(result['broken']) or 'none'}.",
        "",
    ]
    return "\n".join(lines)


def describe_command(load):
    return "make fleet" if load is None else f"python3 bench/fleet --load {load:g} --save"


def describe_load(result):
    if result["load"] is None:
        return "a few viewers"
    return f"{result['load']:.0%} of the {result['saturation']:,} responses per second that saturate the processors"


def describe_commands(commands):
    if commands is None:
        return "- The NATS server was not installed."
    return (f"- Purges sent after the NATS server had returned: {commands['purges']}; executed by the edges: "
            f"{', '.join(map(str, commands['executed']))}; delivered twice: {commands['repeated']}.")  # fmt: skip
