"""What the origins read from the storage, by their records."""

import datetime
import json

INDEX_REASONS = ("index", "manifest", "look")


def read_storage_records(work):
    records = [parse_record(line) for path in work.glob("origin*.jsonl") for line in path.read_text().splitlines()]
    return [record for record in records if record.get("record") == "storage"]


def failed_storage_requests(work, endpoint, begin):
    """Returns the number of requests since a time to an endpoint with this end of its name that got no response."""
    records = read_storage_records(work)
    failed = [record for record in records if record["endpoint"].endswith(endpoint) and record["status"] is None]
    return sum(read_time(record["time"]) >= begin for record in failed)


def reads_over_time(work):
    """Returns [(time, bytes read, distinct bytes)] of media, cumulative, at each storage request."""
    media = [record for record in read_storage_records(work) if record["bytes"] and record["of"] not in INDEX_REASONS]
    seen, points, read, distinct = {}, [], 0, 0
    for record in sorted(media, key=lambda record: record["time"]):
        ranges = seen.setdefault(record["key"], [])
        before = union_length(ranges)
        ranges.append((record["offset"], record["offset"] + record["bytes"]))
        read, distinct = read + record["bytes"], distinct + union_length(ranges) - before
        points.append((read_time(record["time"]), read, distinct))
    return points


def count_media(records):
    """Returns the bytes of media that the origins read, and the distinct ones among them."""
    ranges = {}
    for record in records:
        ranges.setdefault(record["key"], []).append((record["offset"], record["offset"] + record["bytes"]))
    return sum(record["bytes"] for record in records), sum(union_length(of_key) for of_key in ranges.values())


def describe_storage(work, restarts_begin):
    """Separates the time in which the origins keep their memory from all of it. Indexes and manifests are counted
    apart: each origin reads them itself, and again after a restart."""
    records = [record for record in read_storage_records(work) if record["bytes"]]
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
