"""What happens to the fleet. Each event runs under its own viewers; `planned` events must lose no request."""

import contextlib
import dataclasses
import subprocess
from typing import Callable

from machines import PATIENCE_SECONDS, Edge, wait_until
from remapping import map_paths

# Delay of every block between the edges and the slow origin, in each direction.
SLOW_SECONDS = 0.3
# Purges after the return of the NATS server.
PURGES = 3


@dataclasses.dataclass
class Event:
    name: str
    run: Callable
    # No response may be lost.
    planned: bool = True
    # The processes whose responses in flight may be cut.
    kills: bool = False
    # The origins' caches in memory start empty, so that bytes are read from the storage again. These events are last.
    restarts_origins: bool = False


def nothing(fleet):
    """The reference: no machine changes."""


def slow_origin(fleet):
    fleet.relay.delay.value = SLOW_SECONDS
    try:
        fleet.wait()
    finally:
        fleet.relay.delay.value = 0


def fill_disk(fleet):
    """The disk of the first edge is full from the start: waits until a write fails there."""
    edge = fleet.edges[0]
    if edge.disk_kib is None:
        print("SKIPPED full disk: a file system of its own needs root")
        return
    refused = lambda: int(edge.metric("headwater_cache_disk_dropped_total"))
    wait_until(lambda: refused() > 0, "a write to the full disk fails")
    fleet.wait()
    fleet.disk_writes_refused = refused()


def lose_storage_endpoint(fleet):
    fleet.gateway.kill()
    fleet.wait()
    fleet.gateway.start()


def lose_nats(fleet):
    """Ends the NATS server and starts it again. Each edge must execute the purges that follow, once."""
    if fleet.nats is None:
        print("SKIPPED lost NATS: nats-server is not installed; run scripts/nats.sh")
        return
    wait_until(lambda: all(edge.is_connected() for edge in fleet.edges), "the edges connect to NATS")
    fleet.nats.kill()
    wait_until(lambda: not any(edge.is_connected() for edge in fleet.edges), "the edges notice the lost NATS server")
    fleet.wait()
    fleet.nats.start()
    wait_until(lambda: all(edge.is_connected() for edge in fleet.edges), "the edges connect to NATS again")
    before = [edge.executed_purges() for edge in fleet.edges]
    failed = sum(not purge_title(fleet, title) for title in fleet.titles[:PURGES])
    fleet.wait()
    fleet.commands = {
        "purges": PURGES,
        "failed": failed,
        "executed": [edge.executed_purges() - count for edge, count in zip(fleet.edges, before, strict=True)],
        "repeated": sum(edge.repeated_commands() for edge in fleet.edges),
    }


def purge_title(fleet, title):
    """Returns whether all edges executed the purge."""
    command = [fleet.binary, "edge", "purge", "--prefix", f"/{title}/", "--nats", fleet.nats.url(), "--edges", len(fleet.edges),
               "--wait", f"{PATIENCE_SECONDS}s"]  # fmt: skip
    return subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL).returncode == 0


def kill_edge(fleet):
    edge = fleet.edges[1]
    edge.kill()
    fleet.wait()
    edge.start()
    fleet.balancer.wait_for_state(edge, "UP")


def kill_origin(fleet):
    fleet.origins[1].kill()
    fleet.wait()
    fleet.origins[1].start()


def upgrade(fleet):
    """Replaces every process by a successor that takes its port."""
    for machine in [*fleet.origins, *fleet.edges]:
        fleet.exit_codes.append(machine.upgrade())
        fleet.wait(0.3)


def restart(fleet):
    """Stops an edge and starts it again, as Kubernetes does: no successor takes its port."""
    edge = fleet.edges[2]
    fleet.exit_codes.append(edge.stop())
    edge.start()
    fleet.balancer.wait_for_state(edge, "UP")


@contextlib.contextmanager
def fourth_edge(fleet):
    """Adds an edge; at the end, removes it in order."""
    edge = Edge(fleet.work, "edge4", fleet.binary, fleet.origin_urls, fleet.nats)
    edge.start()
    with contextlib.ExitStack() as ended:
        ended.callback(edge.kill)
        fleet.balancer.add(edge)
        yield
        fleet.exit_codes.append(edge.stop())
        fleet.balancer.remove(edge)


def scale(fleet):
    """Adds a fourth edge and removes it again."""
    with fourth_edge(fleet):
        fleet.wait()


def measure_remapping(fleet):
    """Counts the paths that move when an edge is added and removed, without viewers: an edge with more than its share
    of the load passes requests on."""
    maps = [map_paths(fleet.balancer.port)]
    with fourth_edge(fleet):
        maps.append(map_paths(fleet.balancer.port))
    maps.append(map_paths(fleet.balancer.port))
    fleet.remapped = {"up": (maps[0], maps[1]), "down": (maps[1], maps[2])}


EVENTS = [
    Event("steady", nothing),
    Event("full disk", fill_disk),
    Event("slow origin", slow_origin),
    Event("lost S3 endpoint", lose_storage_endpoint),
    Event("lost NATS", lose_nats),
    Event("restart of an edge", restart),
    Event("scale up and down", scale),
    Event("kill -9 of an edge", kill_edge, planned=False, kills=True),
    Event("rolling upgrade", upgrade, restarts_origins=True),
    Event("kill -9 of an origin", kill_origin, planned=False, kills=True, restarts_origins=True),
]
