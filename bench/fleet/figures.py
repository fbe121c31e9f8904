"""The figures of a run, and their bounds."""

from remapping import moved_share
from storage_reads import describe_storage

READS_PER_BYTE_MAX = 1.05
REMAP_MARGIN = 0.02
# By which the load without a fault may miss the one that was asked for.
LOAD_MARGIN = 0.1
# The buffer of the viewers. A fault that is shorter cannot stall them.
BUFFER_SECONDS = 8
# Of a rolling upgrade, after each replacement; `minReadySeconds` of the Helm chart. A new edge has an empty memory, and
# its disk tier opens when the old process has left. At 80 % load, requests queue for a while.
UPGRADE_PAUSE_SECONDS = 30


def describe_event(event, figures, evidence, cold_failures):
    failures = figures.failures()
    faults = {f"{line.get('fault') or line['status']}" for line in failures} | {str(result) for result in cold_failures}
    return {
        "event": event.name,
        "planned": event.planned,
        "requests": len(figures.requests),
        "failed": len(failures) + len(cold_failures),
        "faults": sorted(faults),
        "viewers": len(figures.players),
        "failed_viewers": figures.failed_viewers(),
        "stalls": figures.stalls(),
        "stalled_s": round(figures.stalled_seconds(), 3),
        "played_s": round(figures.played_seconds(), 1),
        "evidence": evidence.text if evidence else None,
        "met": evidence.count if evidence else None,
        "in_flight": evidence.in_flight if evidence else 0,
    }


def describe_fleet(fleet):
    edges = len(fleet.edges) + 1
    return {
        **describe_storage(fleet.work, fleet.restarts_begin),
        "remapped": {way: round(moved_share(*maps), 4) for way, maps in fleet.remapped.items()},
        "remapped_max": round(1 / edges + REMAP_MARGIN, 4),
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
        limit = 0 if event["planned"] else event["in_flight"]
        if event["met"] == 0:
            broken.append(f"{event['event']}: the fault met nobody: 0 {event['evidence']}")
        if with_stalls and event["evidence"] and event["fault_s"] <= BUFFER_SECONDS:
            broken.append(f"{event['event']}: it took {event['fault_s']} s, which viewers have in their buffers")
        if event["failed"] > limit:
            broken.append(f"{event['event']}: {event['failed']} requests failed ({', '.join(event['faults'])}), at most {limit}")
        if event["failed_viewers"]:
            broken.append(f"{event['event']}: {event['failed_viewers']} viewers could not play on")
        if with_stalls and event["stalls"]:
            broken.append(f"{event['event']}: {event['stalls']} stalls")
    steady = next(event for event in result["events"] if event["event"] == "steady")
    if result["load"] and abs(steady["rate"] / result["saturation"] - result["load"]) > LOAD_MARGIN:
        share = steady["rate"] / result["saturation"]
        broken.append(f"the viewers requested {share:.0%} of what saturates the machine instead of {result['load']:.0%}")
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
