"""What happens to the fleet. Each event runs under its own viewers; `planned` events must lose no request.

An event returns its evidence: what it counted, and how often that happened. A count of zero means that the fault met
nobody, so that the event proves nothing; it is a broken bound.
"""

import contextlib
import dataclasses
import signal
import subprocess
import time
from typing import Callable

from machines import PATIENCE_SECONDS, Edge, has_unread_bytes, wait_until
from remapping import map_paths
from storage_reads import failed_storage_requests

# Delay of every block between the edges and the slow origin, in each direction.
SLOW_SECONDS = 0.3
# Purges after the return of the NATS server.
PURGES = 3
# Titles that are requested for the first time during a fault of the storage or of an origin.
COLD_TITLES = 4


@dataclasses.dataclass
class Event:
    name: str
    run: Callable
    # No response may be lost.
    planned: bool = True
    # The origins' caches in memory start empty, so that bytes are read from the storage again. These events are last.
    restarts_origins: bool = False
    # Ends the fault when the viewers have left.
    repair: Callable | None = None


@dataclasses.dataclass
class Evidence:
    """How often a fault was met. `in_flight`: responses that the end of a process may have cut."""

    text: str
    count: int
    in_flight: int = 0


def steady(fleet):
    """The reference: no machine changes."""
    fleet.hold()


def slow_origin(fleet):
    sent = lambda: sum(edge.metric("headwater_upstream_requests_total", f":{fleet.relay.port}") for edge in fleet.edges)
    fleet.relay.delay.value = SLOW_SECONDS
    try:
        before = sent()
        fleet.cold.read_until(lambda: sent() > before)
        fleet.hold()
        return Evidence("requests of the edges to the slow origin", int(sent() - before))
    finally:
        fleet.relay.delay.value = 0


def fill_disk(fleet):
    """The disk of the first edge is full from the start: waits until a write fails there."""
    edge = fleet.edges[0]
    if edge.disk_kib is None:
        print("SKIPPED full disk: a file system of its own needs root")
        return None
    refused = lambda: int(edge.metric("headwater_cache_disk_dropped_total"))
    before = refused()
    # The edges may have all that the viewers play. The paths of the segments are spread over the edges.
    fleet.cold.read_all()
    wait_until(lambda: refused() > before, "a write to the full disk fails")
    fleet.hold()
    return Evidence("responses that the full disk refused", refused() - before)


def repair_disk(fleet):
    """Gives the first edge a disk with space. Each later event lets the caches fill before it begins."""
    edge = fleet.edges[0]
    if edge.disk_kib is None:
        return
    edge.disk_kib = None
    fleet.exit_codes.append(edge.stop())
    edge.start()
    fleet.balancer.wait_for_state(edge, "UP")


def lose_storage_endpoint(fleet):
    """Half of the objects belong to each endpoint."""
    lost = f":{fleet.gateway.port}"
    begin = time.time()
    fleet.gateway.kill()
    fleet.cold.read(COLD_TITLES)
    wait_until(lambda: failed_storage_requests(fleet.work, lost, begin), "an origin sends a request to the lost endpoint")
    fleet.hold()
    failed = failed_storage_requests(fleet.work, lost, begin)
    fleet.gateway.start()
    return Evidence("storage requests that failed at the lost endpoint", failed)


def lose_nats(fleet):
    """Ends the NATS server and starts it again. Each edge must execute the purges that follow, once."""
    if fleet.nats is None:
        print("SKIPPED lost NATS: nats-server is not installed; run scripts/nats.sh")
        return None
    connected = lambda: sum(edge.is_connected() for edge in fleet.edges)
    wait_until(lambda: connected() == len(fleet.edges), "the edges connect to NATS")
    fleet.nats.kill()
    wait_until(lambda: connected() == 0, "the edges notice the lost NATS server")
    fleet.hold()
    lost = len(fleet.edges) - connected()
    fleet.nats.start()
    wait_until(lambda: connected() == len(fleet.edges), "the edges connect to NATS again")
    before = [edge.executed_purges() for edge in fleet.edges]
    failed = sum(not purge_title(fleet, title) for title in fleet.titles[:PURGES])
    fleet.wait()
    fleet.commands = {
        "purges": PURGES,
        "failed": failed,
        "executed": [edge.executed_purges() - count for edge, count in zip(fleet.edges, before, strict=True)],
        "repeated": sum(edge.repeated_commands() for edge in fleet.edges),
    }
    return Evidence("edges without NATS", lost)


def purge_title(fleet, title):
    """Returns whether all edges executed the purge."""
    command = [fleet.binary, "edge", "purge", "--prefix", f"/{title}/", "--nats", fleet.nats.url(), "--edges", len(fleet.edges),
               "--wait", f"{PATIENCE_SECONDS}s"]  # fmt: skip
    return subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL).returncode == 0


def kill_edge(fleet):
    """Kills an edge that has requests in flight: it is frozen until it has."""
    edge = fleet.edges[1]
    edge.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: fleet.balancer.requests_in_flight([edge]), "the frozen edge has a request in flight")
    in_flight = fleet.balancer.requests_in_flight([edge])
    edge.kill()
    fleet.hold()
    edge.start()
    fleet.balancer.wait_for_state(edge, "UP")
    return Evidence("requests in flight at the killed edge", in_flight, in_flight)


def kill_origin(fleet):
    """Kills an origin that has a request in flight: it is frozen until it has, and only for that time."""
    origin = fleet.origins[1]
    sent = lambda: sum(edge.metric("headwater_upstream_requests_total", f":{origin.port}/") for edge in fleet.edges)
    failed = lambda: sum(edge.failed_requests(origin.port) for edge in fleet.edges)
    before = sent()
    # All paths of a title are the share of one origin.
    title = fleet.cold.read_until(lambda: sent() > before)
    before = failed()
    origin.process.send_signal(signal.SIGSTOP)
    fleet.cold.fetch(f"{title}/film.ism/.mpd")
    # A viewer's request may have made the condition hold, so that the title is another origin's.
    for _ in range(COLD_TITLES):
        fleet.cold.fetch_next()
    wait_until(lambda: has_unread_bytes(origin.port), "a request reaches the frozen origin")
    in_flight = fleet.balancer.requests_in_flight(fleet.edges)
    origin.kill()
    wait_until(lambda: failed() > before, "a request at the killed origin fails")
    fleet.hold()
    evidence = Evidence("requests of the edges that failed at the killed origin", int(failed() - before), in_flight)
    origin.start()
    return evidence


def upgrade(fleet):
    """Replaces every process by a successor that takes its port. Each new edge must serve.

    The next process is replaced after a pause, as with `minReadySeconds` of Kubernetes: a new process has an empty
    memory, so it costs more until it has read the titles that are played."""
    served = []
    for machine in [*fleet.origins, *fleet.edges]:
        fleet.exit_codes.append(machine.upgrade())
        before = fleet.balancer.responses_of(machine)
        fleet.wait(0.3)
        time.sleep(fleet.upgrade_pause_seconds)
        if machine in fleet.edges:
            fleet.cold.read_until(lambda: fleet.balancer.responses_of(machine) > before)
            served.append(fleet.balancer.responses_of(machine) - before)
    fleet.hold()
    return Evidence("responses of the new edge with the fewest ones", min(served))


def restart(fleet):
    """Stops an edge and starts it again later, as Kubernetes does: no successor takes its port."""
    edge = fleet.edges[2]
    before = fleet.balancer.responses_of(edge)
    fleet.exit_codes.append(edge.stop())
    served = fleet.balancer.responses_of(edge) - before
    fleet.hold()
    edge.start()
    fleet.balancer.wait_for_state(edge, "UP")
    return Evidence("responses of the edge while it stopped", served)


@contextlib.contextmanager
def fourth_edge(fleet):
    """Adds an edge; at the end, removes it in order."""
    edge = Edge(fleet.work, "edge4", fleet.binary, fleet.origin_urls, fleet.nats)
    edge.start()
    with contextlib.ExitStack() as ended:
        ended.callback(edge.kill)
        fleet.balancer.add(edge)
        yield edge
        fleet.exit_codes.append(edge.stop())
        fleet.balancer.remove(edge)


def scale(fleet):
    """Adds a fourth edge and removes it again."""
    with fourth_edge(fleet) as edge:
        before = fleet.balancer.responses_of(edge)
        fleet.hold()
        served = fleet.balancer.responses_of(edge) - before
    return Evidence("responses of the added edge", served)


def measure_remapping(fleet):
    """Counts the paths that move when an edge is added and removed, without viewers: an edge with more than its share
    of the load passes requests on."""
    maps = [map_paths(fleet.balancer.port)]
    with fourth_edge(fleet):
        maps.append(map_paths(fleet.balancer.port))
    maps.append(map_paths(fleet.balancer.port))
    fleet.remapped = {"up": (maps[0], maps[1]), "down": (maps[1], maps[2])}


EVENTS = [
    Event("steady", steady),
    Event("full disk", fill_disk, repair=repair_disk),
    Event("slow origin", slow_origin),
    Event("lost S3 endpoint", lose_storage_endpoint),
    Event("lost NATS", lose_nats),
    Event("restart of an edge", restart),
    Event("scale up and down", scale),
    Event("kill -9 of an edge", kill_edge, planned=False),
    Event("rolling upgrade", upgrade, restarts_origins=True),
    Event("kill -9 of an origin", kill_origin, planned=False, restarts_origins=True),
]
