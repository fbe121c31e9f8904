"""Measures what floods of HTTP/2 control frames cost other clients: `headwater serve` beside nginx.

    python3 bench/floods.py [--rounds N] [--seconds N] [BINARY…]

Several connections send equal frames as fast as the server reads them, and read its answers. Meanwhile, a client
requests a small file on new HTTP/1.1 connections, ten times per second. Each round measures every server without
and with each flood, in a new order. The table has the median and the maximum of all latencies of an arm.
"""

import argparse
import multiprocessing
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parent.parent
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, WINDOW_UPDATE = 4, 6, 8
CONNECTIONS = 4
FRAMES_PER_WRITE = 4096
PROBE_INTERVAL = 0.1


def frame(kind, flags=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + bytes(4) + payload


FLOODS = {
    "no flood": None,
    "PING": frame(PING, 0, bytes(8)),
    "PING answers": frame(PING, 1, bytes(8)),
    "SETTINGS": frame(SETTINGS),
    "WINDOW_UPDATE": frame(WINDOW_UPDATE, 0, b"\0\0\0\1"),
}


def flood_once(port, frames):
    """Writes frames on one connection until the server closes it."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(PREFACE + frame(SETTINGS))
        stream.setblocking(False)
        view, at = memoryview(frames), 0
        while True:
            try:
                at = (at + stream.send(view[at:])) % len(frames)
            except BlockingIOError:
                time.sleep(0.0005)
            try:
                while answers := stream.recv(1 << 16):
                    pass
                if answers == b"":
                    return
            except BlockingIOError:
                pass


def keep_flooding(port, one):
    while True:
        try:
            flood_once(port, one * FRAMES_PER_WRITE)
        except OSError:
            time.sleep(0.01)


def request_once(port):
    """Returns the seconds until the response to a request on a new connection."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stream:
        stream.sendall(b"GET /small.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head = stream.recv(4096)
    assert head.startswith(b"HTTP/1.1 200"), head
    return time.monotonic() - started


def measure(ports, one, seconds):
    """Returns the latencies of a probe beside a flood of this frame."""
    floods = []
    if one:
        floods = [multiprocessing.Process(target=keep_flooding, args=(ports[1], one)) for _ in range(CONNECTIONS)]
    for flood in floods:
        flood.start()
    time.sleep(0.3)
    latencies, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        latencies.append(request_once(ports[0]))
        time.sleep(PROBE_INTERVAL)
    for flood in floods:
        flood.kill()
        flood.join()
    return latencies


def start_headwater(binary, library):
    command = [binary, "serve", str(library), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = next(int(line.rsplit(":", 1)[1]) for line in process.stdout if line.startswith("listening on"))
    return process, (port, port)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start_nginx(folder, library):
    """nginx 1.22 detects no HTTP/2 without TLS, so it has a port for each version."""
    ports = free_port(), free_port()
    (folder / "nginx.conf").write_text(
        f"""daemon off; worker_processes {os.cpu_count()}; pid {folder}/pid; error_log {folder}/error.log;
        events {{ worker_connections 1024; }}
        http {{ access_log off; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;
          fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
          server {{ listen 127.0.0.1:{ports[0]}; listen 127.0.0.1:{ports[1]} http2; root {library}; }} }}"""
    )
    process = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-e", folder / "start.log"])
    for _ in range(500):
        try:
            request_once(ports[0])
            return process, ports
        except ConnectionRefusedError:
            time.sleep(0.01)
    sys.exit("nginx does not start")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", nargs="*", default=[str(ROOT / "target/release/headwater")])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        library = folder / "films"
        library.mkdir()
        (library / "small.txt").write_text("small")
        servers = {binary: start_headwater(binary, library) for binary in options.binaries}
        servers["nginx"] = start_nginx(folder, library)
        arms = {(server, flood): [] for server in servers for flood in FLOODS}
        try:
            for _ in range(options.rounds):
                for server, flood in random.sample(list(arms), len(arms)):
                    arms[server, flood] += measure(servers[server][1], FLOODS[flood], options.seconds)
        finally:
            for process, _ in servers.values():
                process.terminate()
                process.wait()
    print(f"{'flood':20} {'server':40} requests   median ms      max ms")
    for (server, flood), latencies in sorted(arms.items(), key=lambda arm: arm[0][1]):
        median, most = statistics.median(latencies) * 1000, max(latencies) * 1000
        print(f"{flood:20} {server[-40:]:40} {len(latencies):8} {median:11.2f} {most:11.2f}")


if __name__ == "__main__":
    main()
