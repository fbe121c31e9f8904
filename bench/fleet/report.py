"""Writes a run as JSON, Markdown and a plot."""

import collections
import json
import os
import platform
import subprocess
import time

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 1000, 320, 50, 90, 40


def write_report(result, timelines, folder):
    machine = describe_machine()
    result = {"machine": machine, **result}
    base = folder / f"{machine['date']}-{machine['processors']}-cores-fleet"
    base.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    base.with_suffix(".svg").write_text(draw(timelines))
    base.with_suffix(".md").write_text(describe(result, base.name))
    print(f"wrote {base}.md")


def describe_machine():
    haproxy = subprocess.run(["haproxy", "-v"], capture_output=True, text=True).stdout.split()[2]
    return {"processors": os.cpu_count(), "kernel": platform.release(), "haproxy": haproxy, "date": time.strftime("%Y-%m-%d")}


def describe(result, name):
    machine, fleet = result["machine"], result["fleet"]
    lines = [
        "# The fleet under events",
        "",
        f"`make fleet`, {machine['date']}: {machine['processors']} processors, Linux {machine['kernel']}, HAProxy {machine['haproxy']}. "
        f"{result['viewers']} emulated viewers on the same machine played from HAProxy, three edges, three origins and an S3 "
        f"server ({result['load']}). Each event ran under its own viewers.",
        "",
        f"![Responses per second]({name}.svg)",
        "",
        "| event | requests | failed | viewers | stalls | stalled | processors | retried by HAProxy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for event in result["events"]:
        failed = f"{event['failed']} ({', '.join(event['faults'])})" if event["failed"] else "0"
        lines.append(f"| {event['event']} | {event['requests']:,} | {failed} | {event['viewers']} | {event['stalls']} | "
                     f"{event['stalled_s']:.1f} s of {event['played_s']:,.0f} s | {event.get('processors', '–')} | "
                     f"{event['retried_by_balancer']} |")  # fmt: skip
    remapped = ", ".join(f"{share:.1%} by scaling {way}" for way, share in fleet["remapped"].items())
    lines += [
        "",
        f"- Bytes of media read from the storage per distinct byte: {fleet['storage_reads_per_byte']} before an origin was "
        f"restarted, {fleet['storage_reads_per_byte_with_restarts']} with the restarts, which empty the caches in memory. "
        f"Indexes and manifests: {fleet['storage_index_bytes'] / 1e6:.1f} MB beside {fleet['storage_media_bytes'] / 1e6:.1f} MB.",
        f"- Paths that moved to another edge: {remapped}; at most {fleet['remapped_max']:.1%}.",
        f"- Edge 1 had a full disk throughout (64 KiB): {fleet['disk_writes_refused']} responses were not stored during the event.",
        describe_commands(fleet["commands"]),
        "- Bounds: no failed request in planned events; after `kill -9`, at most one per viewer, and every viewer plays on; "
        "no stall; 1.05 bytes read per distinct byte; 1/N + 2 % of the paths moved.",
        f"- Broken bounds: {'; '.join(result['broken']) or 'none'}.",
        "",
    ]
    return "\n".join(lines)


def describe_commands(commands):
    if commands is None:
        return "- The NATS server was not installed."
    return (f"- Purges sent after the NATS server had returned: {commands['purges']}; executed by the edges: "
            f"{', '.join(map(str, commands['executed']))}; delivered twice: {commands['repeated']}.")  # fmt: skip


def draw(timelines):
    """Draws responses per second as bars, failures in red, and the time of each event as a band."""
    spans = [1 + max((line["end_ms"] for line in figures.requests), default=0) / 1000 for _, figures, _, _ in timelines]
    scale_x = (WIDTH - LEFT - 10) / sum(spans)
    counts = [collections.Counter(int(line["end_ms"] / 1000) for line in figures.requests) for _, figures, _, _ in timelines]
    most = max((max(count.values(), default=1) for count in counts), default=1)
    scale_y = (HEIGHT - TOP - BOTTOM) / most
    parts, x = [], LEFT
    for (event, figures, begin, end), span, count in zip(timelines, spans, counts, strict=True):
        left = x + max(0, begin - figures.start) * scale_x
        parts.append(rectangle(left, TOP, max(1, (end - begin) * scale_x), HEIGHT - TOP - BOTTOM, "#f2c14e", 0.35))
        failures = collections.Counter(int(line["end_ms"] / 1000) for line in figures.failures())
        for second, number in sorted(count.items()):
            parts.append(bar(x + second * scale_x, scale_x, number * scale_y, "#4f7cac"))
            if failed := failures[second]:
                parts.append(bar(x + second * scale_x, scale_x, max(2, failed * scale_y), "#c1292e"))
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#999"/>')
        parts.append(f'<text transform="translate({x + 4:.1f},{TOP - 4}) rotate(-35)">{event.name}</text>')
        x += span * scale_x
    axis = f'<text x="{LEFT - 6}" y="{TOP + 4}" text-anchor="end">{most}</text><text x="{LEFT - 6}" y="{HEIGHT - BOTTOM}" text-anchor="end">0</text>'
    caption = f'<text x="{LEFT}" y="{HEIGHT - 14}">responses per second; failed in red; yellow: the event</text>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(parts)}{axis}{caption}</svg>\n')  # fmt: skip


def bar(x, width, height, color):
    return rectangle(x, HEIGHT - BOTTOM - height, max(0.5, width - 0.3), height, color)


def rectangle(x, y, width, height, color, opacity=1):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}" opacity="{opacity}"/>'
