"""The figures of a run, and their bounds."""

import datetime
import json

from remapping import moved_share

READS_PER_BYTE_MAX = 1.05
REMAP_MARGIN = 0.02


INDEX_REASONS = ("index", "manifest", "look")


def read_storage_records(work):
    records = [parse_record(line) for path in work.glob("origin*.jsonl") for line in path.read_text().splitlines()]
    return [record for record in records if record.get("record") == "storage" and record["bytes"]]


def count_media(records):
    """Returns the bytes of media that the origins read, and the distinct ones among them."""
    ranges = {}
    for record in records:
        ranges.setdefault(record["key"], []).append((record["offset"], record["offset"] + record["bytes"]))
    return sum(record["bytes"] for record in records), sum(union_length(of_key) for of_key in ranges.values())


def describe_storage(work, restarts_begin):
    """Separates the time in which the origins keep their memory from all of it. Indexes and manifests are counted
    apart: each origin reads them itself, and again after a restart."""
    records = read_storage_records(work)
    media = [record for record in records if record["of"] not in INDEX_REASONS]
    before = [record for record in media if read_time(record["time"]) < restarts_begin]
    all_bytes, all_distinct = count_media(media)
    early_bytes, early_distinct = count_media(before)
    return {
        "storage_media_bytes": all_bytes,
        "storage_index_bytes": sum(record["bytes"] for record in records if record["of"] in INDEX_REASONS),
        "storage_reads_per_byte": round(early_bytes / max(1, early_distinct), 4),
        "storage_reads_per_byte_with_restarts": round(all_bytes / max(1, all_distinct), 4),
    }


def read_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def parse_record(line):
    """A process that was killed may have written half a line."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return {}


def union_length(ranges):
    length, end = 0, 0
    for start, stop in sorted(ranges):
        length += max(0, stop - max(start, end))
        end = max(end, stop)
    return length


def describe_event(event, figures, statistics):
    failures = figures.failures()
    return {
        "event": event.name,
        "planned": event.planned,
        "requests": len(figures.requests),
        "failed": len(failures),
        "faults": sorted({f"{line.get('fault') or line['status']}" for line in failures}),
        "viewers": len(figures.players),
        "failed_viewers": figures.failed_viewers(),
        "stalls": figures.stalls(),
        "stalled_s": round(figures.stalled_seconds(), 3),
        "played_s": round(figures.played_seconds(), 1),
        "retried_by_balancer": statistics,
    }


def describe_fleet(fleet):
    edges = len(fleet.edges) + 1
    return {
        **describe_storage(fleet.work, fleet.restarts_begin),
        "remapped": {way: round(moved_share(*maps), 4) for way, maps in fleet.remapped.items()},
        "remapped_max": round(1 / edges + REMAP_MARGIN, 4),
        "disk_writes_refused": fleet.disk_writes_refused,
        "commands": fleet.commands,
        "exit_codes": fleet.exit_codes,
        "edges_of_one_path": len(fleet.edges_of_one_path),
    }


def were_executed_once(commands):
    """Returns whether each edge executed each command once."""
    counts = set(commands["executed"])
    return counts == {commands["purges"]} and not commands["failed"] and not commands["repeated"]


def broken_bounds(result, with_stalls):
    """Returns the bounds that the run broke, as sentences."""
    fleet, broken = result["fleet"], []
    for event in result["events"]:
        limit = 0 if event["planned"] else result["viewers"]
        if event["failed"] > limit:
            broken.append(f"{event['event']}: {event['failed']} requests failed ({', '.join(event['faults'])}), at most {limit}")
        if event["failed_viewers"]:
            broken.append(f"{event['event']}: {event['failed_viewers']} viewers could not play on")
        if with_stalls and event["stalls"]:
            broken.append(f"{event['event']}: {event['stalls']} stalls")
    if fleet["storage_reads_per_byte"] > READS_PER_BYTE_MAX:
        broken.append(f"{fleet['storage_reads_per_byte']} bytes of media read from the storage per distinct byte")
    for way, share in fleet["remapped"].items():
        if share > fleet["remapped_max"]:
            broken.append(f"scaling {way} moved {share:.1%} of the paths, at most {fleet['remapped_max']:.1%}")
    if (commands := fleet["commands"]) and not were_executed_once(commands):
        broken.append(f"purges after the return of NATS: {commands}")
    if any(fleet["exit_codes"]):
        broken.append(f"exit codes of stopped processes: {fleet['exit_codes']}")
    if fleet["edges_of_one_path"] != 1:
        broken.append(f"{fleet['edges_of_one_path']} edges served one path with different CMCD")
    return broken
