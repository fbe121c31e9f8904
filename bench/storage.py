#!/usr/bin/env python3
"""Films in remote storage: connections kept and not, cold titles, and document 2's set-ups.

nginx serves the films as plain HTTP storage; a relay of ours adds half a round trip each way; for
B, D and E an nginx that caches stands before the storage. Its cache keeps media, too, so that over
a short film asked for again and again the efficiency of B and D is not document 2's; that takes its
long film in files of their own with index MP4s, as experiments/configurations says. Prints a table, or JSON with --json. One
round is a look; figures to quote come from several on a quiet machine.

  python3 bench/storage.py --rtt-ms 15 --seconds 5 --film-seconds 120
"""
import argparse, asyncio, json, os, re, subprocess, tempfile, threading, time, urllib.request
from urllib.parse import urljoin
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Relay:
    """Passes TCP on, every byte later by half a round trip."""

    def __init__(self, port, rtt_ms):
        self.to, self.delay = port, rtt_ms / 2000
        self.bytes_in = 0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self.run, args=(ready,), daemon=True).start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.accept, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    async def accept(self, reader, writer):
        # The handshake costs a round trip, too.
        await asyncio.sleep(2 * self.delay)
        there_r, there_w = await asyncio.open_connection("127.0.0.1", self.to, limit=1 << 20)
        await asyncio.gather(self.pump(reader, there_w, False), self.pump(there_r, writer, True))

    async def pump(self, reader, writer, counts):
        queue = asyncio.Queue(256)

        async def send():
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0, due - self.loop.time()))
                if not data:
                    break
                writer.write(data)
                await writer.drain()
            writer.close()

        sender = asyncio.ensure_future(send())
        try:
            while True:
                data = await reader.read(256 << 10)
                if counts:
                    self.bytes_in += len(data)
                await queue.put((self.loop.time() + self.delay, data))
                if not data:
                    break
            await sender
        except (ConnectionError, asyncio.CancelledError):
            sender.cancel()
            writer.close()


def nginx(folder, name, server, http=""):
    """An nginx of one server block; the port is the one that the kernel gave it."""
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    at = folder / name
    at.mkdir()
    temp = " ".join(f"{kind}_temp_path {at}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (at / "conf").write_text(
        f"daemon off; master_process off; pid {at}/pid; error_log {at}/err; events {{ worker_connections 4096; }}"
        f" http {{ access_log off; keepalive_requests 1000000; {temp} {http}"
        f" server {{ listen 127.0.0.1:{port}; {server} }} }}")
    process = subprocess.Popen(["nginx", "-p", at, "-c", at / "conf"], stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nginx does not start")


class Origin:
    def __init__(self, binary, url, *args):
        command = [binary, "serve", url, "--listen", "127.0.0.1:0", "--segment", "2s", *args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
            return answer.read()

    def metrics(self):
        return dict(re.findall(r"^(headwater_\S+) (\d+)$", self.get("/metrics").decode(), re.M))

    def segments(self, title):
        """Per media playlist, the paths of its segments."""
        text = self.get(f"{title}/.m3u8").decode()
        lists = [u for u in re.findall(r'URI="([^"]+)"', text) if "keyframes" not in u]
        lists += [line for line in text.splitlines() if line and line[0] != "#"]
        return [[urljoin(f"{title}/{u}", line) for line in
                 self.get(f"{title}/{u}").decode().splitlines() if line and line[0] != "#"] for u in lists]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def load(origin, tracks, seconds, clients=8):
    """Clients that each ask for sound, then picture, of one time after another. Bytes, latencies."""
    until, totals, times, lock = time.time() + seconds, [0], [], threading.Lock()

    def client(number):
        conn, n = HTTPConnection("127.0.0.1", origin.port), number * 7
        while time.time() < until:
            for track in tracks:
                start = time.time()
                conn.request("GET", track[n % len(track)])
                size = len(conn.getresponse().read())
                with lock:
                    totals[0] += size
                    times.append(time.time() - start)
            n += 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    times.sort()
    return totals[0], times


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--rtt-ms", type=float, default=15)
    parse.add_argument("--seconds", type=float, default=5)
    parse.add_argument("--film-seconds", type=int, default=120)
    parse.add_argument("--binary", default=ROOT / "target/release/headwater")
    parse.add_argument("--json", action="store_true")
    ask = parse.parse_args()
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        os.chmod(folder, 0o755)
        films = folder / "films"
        films.mkdir()
        subprocess.run(
            ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=640x360:r=24", "-f", "lavfi", "-i", "sine=r=48000",
             "-t", str(ask.film_seconds), "-c:v", "libx264", "-preset", "ultrafast", "-b:v", "3894k", "-minrate", "3894k",
             "-maxrate", "3894k", "-bufsize", "4M", "-x264-params", "nal-hrd=cbr", "-g", "48", "-c:a", "aac", "-b:a", "132k",
             films / "film.mp4"], check=True)
        store, port = nginx(folder, "storage", f"root {films}; sendfile on;")
        relay = Relay(port, ask.rtt_ms)
        through = f"http://127.0.0.1:{relay.port}/"
        rows, processes = [], [store]
        try:
            measure(ask, folder, relay, through, rows, processes)
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    if ask.json:
        print(json.dumps(rows))
        return
    print("  ".join(f"{key:>10.10}" for key in rows[0]))
    for row in rows:
        print("  ".join(f"{value!s:>10}" for value in row.values()))


def measure(ask, folder, relay, through, rows, processes):
    """All configurations, one after the other."""
    for name in "abcdef":
        args = ["--config", ROOT / f"experiments/configurations/{name}.toml"]
        if name in "bde":
            cache, cache_port = nginx(
                folder, f"cache-{name}",
                f"location / {{ proxy_pass {through}; proxy_cache c; proxy_cache_valid 200 206 1h; slice 1m;"
                " proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range; proxy_http_version 1.1; }",
                f"proxy_cache_path {folder}/kept-{name} keys_zone=c:10m;")
            processes.append(cache)
            match = "(?i)\\.ism$|-index\\.mp4$" if name == "e" else "."
            args += ["--storage-via", f"{match} http://127.0.0.1:{cache_port}"]
        origin = Origin(ask.binary, through, *args)
        processes.append(origin.process)
        start = time.time()
        tracks = origin.segments("/film.mp4")
        origin.get(tracks[-1][0])
        first = time.time() - start
        relay.bytes_in, before = 0, origin.metrics()
        sent, times = load(origin, tracks, ask.seconds)
        after = origin.metrics()
        grown = lambda key: int(after.get(key, 0)) - int(before.get(key, 0))
        asked = sum(grown(key) for key in after if key.startswith("headwater_storage_requests_total"))
        rows.append({
            "configuration": name.upper(), "cold_ms": round(first * 1000, 1), "mbit_s": round(sent * 8e-6 / ask.seconds, 1),
            "p50_ms": round(times[len(times) // 2] * 1000, 2), "p99_ms": round(times[int(len(times) * .99)] * 1000, 2),
            "segments": len(times), "requests_per_segment": round(asked / len(times), 3),
            "in_bytes": relay.bytes_in, "out_bytes": sent, "efficiency": round(sent / max(1, relay.bytes_in), 3),
            "connections_opened": grown("headwater_storage_connections_opened_total")})
        origin.stop()


if __name__ == "__main__":
    main()
