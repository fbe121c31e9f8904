"""Runs origin and edge under mixed load, and checks that memory stays flat and that no descriptor is lost.

`make soak` runs it for 30 minutes (SOAK_SECONDS). The load: segments and playlists of the demo film over HTTP/1.1
and HTTP/2, from the origin without TLS and through an edge with TLS whose memory and disk are too small, emulated
viewers, and clients that leave early or send garbage. Memory is private memory, sampled every second. The median of the last
third must be at most 5 % above that of the third before.
"""

import argparse
import json
import os
import pathlib
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parent.parent
GROWTH_MAX = 0.05
# Idle connections of clients and to the origin close within this time.
IDLE_SECONDS = 20
QUIET_SECONDS = 60
FILL_SECONDS = 15
LIMITS = ["--idle-timeout", f"{IDLE_SECONDS}s"]


class Server:
    """A running `headwater serve` or `headwater edge`."""

    def __init__(self, binary, program, *flags):
        command = [binary, program, "--listen", "127.0.0.1:0", *LIMITS, *flags]
        self.name = program
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = next(line.split()[-1] for line in self.process.stdout if line.startswith("listening on"))
        self.address = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.samples = []

    def private_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        kib = [int(re.search(rf"{name}:\s+(\d+)", text)[1]) for name in ("RssAnon", "RssShmem")]
        return sum(kib) * 1024

    def descriptors(self, origin_port):
        """Counts open descriptors. Those of two bounded pools are left out: files of objects on disk, and idle
        connections to the origin (256 per worker), which the edge closes when it wants to use them again."""
        pooled = sockets_to(self.process.pid, origin_port)
        folder = pathlib.Path(f"/proc/{self.process.pid}/fd")
        targets = [read_link(entry) for entry in folder.iterdir()]
        return sum("/headwater-soak-" not in target and target not in pooled for target in targets)


def sockets_to(process, port):
    """Returns the links of a process's sockets whose other end has this port."""
    lines = pathlib.Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return {f"socket:[{field[9]}]" for field in fields if int(field[2].split(":")[1], 16) == port}


def read_link(path):
    try:
        return os.readlink(path)
    except FileNotFoundError:
        # Closed meanwhile.
        return ""


def certificate(folder):
    """Returns the flags of a self-signed certificate."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", key, "-out", cert], check=True, capture_output=True,
    )  # fmt: skip
    return ["--tls-cert", str(cert), "--tls-key", str(key)]


def hostile_client(address, until, seed):
    """Sends requests without reading the response, and garbage."""
    chance = random.Random(seed)
    while time.monotonic() < until:
        try:
            with socket.create_connection(address, timeout=5) as client:
                kind = chance.randrange(4)
                if kind == 0:
                    client.sendall(chance.randbytes(chance.randrange(2000)))
                elif kind == 1:
                    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
                elif kind == 2:
                    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
                    client.recv(100)
                else:
                    client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
                    client.recv(100)
        except OSError:
            pass
        time.sleep(0.02)


def load(binary, *arguments):
    command = [binary, "load", *arguments, "--json", "-", "--insecure"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def start_load(args, origin, edge, folder):
    """Starts the load generators, which end by themselves."""
    duration = ["--duration", f"{args.seconds}s", "--threads", "1"]
    film = args.film
    started = []
    for server, rate in ((origin, args.rate), (edge, args.rate)):
        for version in ("1", "2"):
            started.append(load(args.binary, "rate", f"manifest:{server.url}/{film}/.mpd", "--http", version,
                                "--rate", str(rate), *duration))  # fmt: skip
    # Each URL is an object of its own, so that memory and disk of the edge overflow.
    targets = folder / "targets"
    targets.write_text("".join(f"GET {edge.url}/{film}/.m3u8?{n}\n\n" for n in range(20_000)))
    started.append(load(args.binary, "rate", f"@{targets}", "--rate", str(args.rate), *duration))
    return started


def start_viewers(args, edge):
    """Starts emulated viewers, some of whom are still watching at the end."""
    return load(args.binary, "players", f"{edge.url}/{args.film}/.m3u8", "--viewers", "5", "--seeks", "60",
                "--duration", f"{args.seconds}s")  # fmt: skip


def watch(servers, until):
    while time.monotonic() < until:
        for server in servers:
            server.samples.append(server.private_bytes())
        time.sleep(1)


def check_memory(server):
    """Returns a fault of the server's memory, if any."""
    third = len(server.samples) // 3
    before, after = (statistics.median(server.samples[n * third : (n + 1) * third]) for n in (1, 2))
    growth = after / before - 1
    print(f"{server.name}: {before / 2**20:.1f} MiB, then {after / 2**20:.1f} MiB ({growth:+.1%})")
    if growth > GROWTH_MAX:
        return f"{server.name}: memory grew by {growth:.1%}"
    return None


def check_descriptors(server, origin_port, before):
    """Waits until the server has closed what the load opened."""
    end = time.monotonic() + QUIET_SECONDS
    while (left := server.descriptors(origin_port)) > before and time.monotonic() < end:
        time.sleep(1)
    print(f"{server.name}: {before} descriptors before, {left} after")
    return f"{server.name}: {left - before} descriptors are lost" if left > before else None


def check_load(generator):
    result = json.loads(generator.communicate()[0])
    summary = result["summary"]
    if summary["errors"] or not summary["requests"]:
        return f"load: {summary['errors']} errors in {summary['requests']} requests: {result['examples']}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("HEADWATER", ROOT / "target/release/headwater"))
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("SOAK_SECONDS", 1800)))
    parser.add_argument("--rate", type=int, default=40, help="requests per second of each of five generators")
    parser.add_argument("--film", default="demo")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-soak-") as folder:
        folder = pathlib.Path(folder)
        origin = Server(args.binary, "serve", str(ROOT / "media"))
        edge = Server(args.binary, "edge", "--origin", origin.url, "--memory", "32MiB", "--disk", "64MiB",
                      "--disk-dir", str(folder / "disk"), *certificate(folder))  # fmt: skip
        servers = [origin, edge]
        faults = run(args, servers, folder)
        for server in servers:
            server.process.terminate()
            if server.process.wait(30) != 0:
                faults.append(f"{server.name} exited with {server.process.returncode}")
    for fault in faults:
        print(f"FAILED: {fault}")
    sys.exit(bool(faults))


def run(args, servers, folder):
    """Runs the load, and returns the faults."""
    # One round of the same load opens what stays open: files, pools, worker threads.
    warm = argparse.Namespace(**{**vars(args), "seconds": 3})
    for generator in start_load(warm, *servers, folder):
        generator.communicate()
    many = ["--rate", "max", "--connections", "16", "--threads", "1"]
    # Reaches every worker of the origin: each keeps a pipe from its first segment on.
    load(args.binary, "rate", f"manifest:{servers[0].url}/{args.film}/.mpd", *many, "--duration", "3s").communicate()
    # Fills the edge's memory, so that it only evicts from now on.
    load(args.binary, "rate", f"@{folder / 'targets'}", *many, "--duration", f"{FILL_SECONDS}s").communicate()
    time.sleep(IDLE_SECONDS + 5)
    port = servers[0].address[1]
    descriptors = [server.descriptors(port) for server in servers]
    until = time.monotonic() + args.seconds
    generators = start_load(args, *servers, folder)
    viewers = start_viewers(args, servers[1])
    hostile = [
        threading.Thread(target=hostile_client, args=(server.address, until, number))
        for number, server in enumerate(servers)
    ]
    for thread in hostile:
        thread.start()
    watch(servers, until)
    for thread in hostile:
        thread.join()
    faults = [check_load(generator) for generator in generators]
    viewers.communicate()
    if viewers.returncode:
        faults.append(f"load players exited with {viewers.returncode}")
    faults += [check_memory(server) for server in servers]
    faults += [check_descriptors(server, port, before) for server, before in zip(servers, descriptors)]
    return [fault for fault in faults if fault]


if __name__ == "__main__":
    main()
