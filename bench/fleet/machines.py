"""The processes of the fleet: S3 server and gateways, NATS server, origins, edges and HAProxy.

A machine keeps its port when it is started again. Ports are below the kernel's ephemeral range, so that no
outgoing connection takes the port of a machine that is down.
"""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEED = ROOT / "target/storage/bin/weed"
NATS_SERVER = ROOT / "target/nats/bin/nats-server"
HAPROXY_CONFIG = ROOT / "deploy/haproxy/haproxy.cfg"
ACCESS, SECRET = "HEADWATERFLEET", "not-a-secret-but-one-of-a-test"
PORTS = range(12_000, 30_000)
# Generous, because the machine may be busy.
PATIENCE_SECONDS = 90
ANNOUNCE_SECONDS = 4


class FleetError(Exception):
    """A machine did not start, or did not reach a state in time."""


def choose_port():
    while True:
        port = random.choice(PORTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            pass


def wait_until(condition, what):
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if condition():
            return
        time.sleep(0.05)
    raise FleetError(f"{what}: not within {PATIENCE_SECONDS} s")


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def has_unread_bytes(port):
    """Returns whether a connection to a local port has received bytes that its process has not read."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # Established connections: state 1. Queues are `sent:received`, in hexadecimal digits.
    return any(row[1].endswith(f":{port:04X}") and row[3] == "01" and int(row[4].split(":")[1], 16) for row in rows)


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Machine:
    """A program that is started, killed, and started again. Subclasses return its command line."""

    def __init__(self, work, name):
        self.work, self.name, self.port = work, name, choose_port()
        self.process, self.generation = None, 0

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def is_up(self):
        return is_ready(self.port)

    def start(self):
        """Starts the program, and waits until it is ready."""
        self.generation += 1
        log = open(self.work / f"{self.name}-{self.generation}.log", "w")
        command = [str(word) for word in self.command()]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | self.environment())
        wait_until(self.has_started, f"{self.name} starts; its log:\n{self.read_log()}")

    def read_log(self):
        return (self.work / f"{self.name}-{self.generation}.log").read_text()[-2000:]

    def has_started(self):
        if self.process.poll() is not None:
            raise FleetError(f"{self.name} exited with {self.process.returncode}: {self.read_log()}")
        return self.is_up()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Signals the program to stop, and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def upgrade(self):
        """Starts a successor that takes the ports, and returns the exit code of the old process."""
        old = self.process
        self.start()
        return old.wait(PATIENCE_SECONDS)

    def metric(self, name, *labels):
        """Returns the sum of a metric over its labels, or over those that contain texts such as `result="ok"`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as response:
            lines = response.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.partition("{")[0].split(" ")[0] == name and
                   all(label in line for label in labels))  # fmt: skip


class Storage(Machine):
    """seaweedfs with its first S3 gateway."""

    NAMES = ("master.port", "volume.port", "filer.port", "s3.port.grpc", "master.port.grpc", "volume.port.grpc", "filer.port.grpc")

    def __init__(self, work):
        super().__init__(work, "storage")
        self.ports = {name: choose_port() for name in self.NAMES}
        user = {"name": "fleet", "actions": ["Admin", "Read", "List", "Write"],
                "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}]}  # fmt: skip
        # The second gateway is read without a signature, because both gateways have the same bucket.
        users = [user, {"name": "anonymous", "actions": ["Read"]}]
        self.users = work / "s3.json"
        self.users.write_text(json.dumps({"identities": users}))
        (work / "s3").mkdir()

    def command(self):
        ports = [f"-{name}={port}" for name, port in self.ports.items()]
        return [WEED, "-logtostderr=true", "server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self.work}/s3",
                f"-s3.config={self.users}", "-volume.max=20", "-master.volumeSizeLimitMB=512", "-master.telemetry=false",
                "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.port={self.port}", *ports]  # fmt: skip

    def is_up(self):
        return is_listening(self.port) and is_listening(self.ports["filer.port"])

    def put(self, name, path):
        url = f"http://127.0.0.1:{self.ports['filer.port']}/buckets/films/{name}"

        def has_stored():
            request = urllib.request.Request(url, path.read_bytes(), {"Content-Type": "video/mp4"}, method="PUT")
            try:
                return urllib.request.urlopen(request, timeout=30).status in (200, 201)
            except OSError:
                return False

        wait_until(has_stored, f"the storage accepts {name}")


class Gateway(Machine):
    """A second S3 gateway to the same objects."""

    def __init__(self, work, storage):
        super().__init__(work, "gateway")
        self.storage, self.grpc = storage, choose_port()

    def command(self):
        filer = f"127.0.0.1:{self.storage.ports['filer.port']}.{self.storage.ports['filer.port.grpc']}"
        return [WEED, "-logtostderr=true", "s3", f"-filer={filer}", "-ip.bind=127.0.0.1", f"-port={self.port}",
                f"-port.grpc={self.grpc}", f"-config={self.storage.users}", "-port.iceberg=0", "-port.lance=0"]  # fmt: skip

    def is_up(self):
        return is_listening(self.port)


class CommandServer(Machine):
    """A NATS server with JetStream, which stores the commands to all edges."""

    def command(self):
        return [NATS_SERVER, "-a", "127.0.0.1", "-p", self.port, "--jetstream", "-sd", self.work / "nats"]

    def is_up(self):
        return is_listening(self.port)

    def url(self):
        return f"nats://127.0.0.1:{self.port}"


class Headwater(Machine):
    """`headwater serve` or `headwater edge`, with a socket over which a successor takes its port."""

    def __init__(self, work, name, binary):
        super().__init__(work, name)
        self.binary = binary

    def common(self):
        return ["--listen", f"127.0.0.1:{self.port}", "--handover-socket", self.work / f"{self.name}.sock", "--announce",
                f"{ANNOUNCE_SECONDS}s", "--records", self.work / f"{self.name}-{self.generation}.jsonl"]  # fmt: skip


class Origin(Headwater):
    def __init__(self, work, name, binary, storage, gateway):
        super().__init__(work, name, binary)
        self.storage, self.gateway = storage, gateway

    def command(self):
        return [self.binary, "serve", "s3://films", "--segment", "2s", *self.common(),
                "--storage-option", f"aws_endpoint_url=http://127.0.0.1:{self.storage.port}",
                "--storage-endpoint", f"http://127.0.0.1:{self.gateway.port}/films 1"]  # fmt: skip

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}


class Edge(Headwater):
    """An edge with a disk tier. `disk_kib`: the tier is in a file system of this size, which is soon full. Its mount
    namespace ends with the process."""

    def __init__(self, work, name, binary, origins, nats, disk_kib=None):
        super().__init__(work, name, binary)
        self.origins, self.nats, self.disk_kib = origins, nats, disk_kib

    def command(self):
        origins = [word for url in self.origins for word in ("--origin", url)]
        edge = [self.binary, "edge", *self.common(), *origins, "--origin-balance", "folder", "--origin-health", "/readyz",
                "--trust-forwarded", "127.0.0.0/8"]  # fmt: skip
        if self.nats:
            edge += ["--nats", self.nats.url(), "--node-name", self.name]
        folder = self.work / f"{self.name}-disk"
        folder.mkdir(exist_ok=True)
        if self.disk_kib is None:
            return [*edge, "--disk-dir", folder, "--disk", "4GiB"]
        script = f'mount -t tmpfs -o size={self.disk_kib}k full "$0" && exec "$@" --disk-dir "$0" --disk 1GiB'
        return ["unshare", "--mount", "sh", "-c", script, folder, *edge]

    def failed_requests(self, port):
        """Returns the number of requests to the origin at a port that got no response."""
        return self.metric("headwater_upstream_requests_total", f':{port}/"', 'result="failed"')

    def is_connected(self):
        return self.metric("headwater_fleet_connected") == 1

    def executed_purges(self):
        return int(self.metric("headwater_fleet_commands_total", 'command="purge",result="ok"'))

    def repeated_commands(self):
        return int(self.metric("headwater_fleet_commands_total", 'result="duplicate"'))


class Balancer(Machine):
    """HAProxy with the configuration of deploy/haproxy."""

    def __init__(self, work, edges, config=HAPROXY_CONFIG):
        super().__init__(work, "haproxy")
        self.edges, self.socket, self.config = edges, work / "haproxy.sock", config

    def command(self):
        return ["haproxy", "-db", "-f", self.config]

    def environment(self):
        edges = {f"HEADWATER_{edge.name.upper()}": f"127.0.0.1:{edge.port}" for edge in self.edges}
        return edges | {"HEADWATER_LISTEN": f"127.0.0.1:{self.port}", "HEADWATER_STATS_SOCKET": str(self.socket)}

    def is_up(self):
        return is_ready(self.port)

    def run(self, command):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(str(self.socket))
            client.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: client.recv(65536), b"")).decode()

    def statistics(self):
        """Returns {(proxy, server): {column: value}} of `show stat`."""
        lines = self.run("show stat").strip().lstrip("# ").splitlines()
        names = lines[0].split(",")
        rows = [dict(zip(names, line.split(","))) for line in lines[1:] if line]
        return {(row["pxname"], row["svname"]): row for row in rows}

    def responses(self):
        return int(self.statistics()["films", "FRONTEND"]["hrsp_2xx"])

    def responses_of(self, machine):
        """Returns the number of responses of an edge. Origins have none: they are not behind the balancer."""
        return int(self.statistics().get(("edges", machine.name), {}).get("hrsp_2xx", 0))

    def requests_in_flight(self, edges):
        statistics = self.statistics()
        return sum(int(statistics["edges", edge.name]["scur"]) for edge in edges)

    def wait_for_responses(self, count):
        until = self.responses() + count
        wait_until(lambda: self.responses() >= until, f"{count} more responses")

    def wait_for_state(self, edge, state):
        wait_until(lambda: self.statistics()["edges", edge.name]["status"].startswith(state), f"{edge.name} is {state}")

    def add(self, edge):
        self.run(f"set server edges/{edge.name} addr 127.0.0.1 port {edge.port}")
        self.run(f"set server edges/{edge.name} state ready")
        self.run(f"enable health edges/{edge.name}")
        self.wait_for_state(edge, "UP")

    def remove(self, edge):
        self.run(f"set server edges/{edge.name} state maint")
