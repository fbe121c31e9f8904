"""Shared by the storage benchmarks: an object store, a relay that adds latency, and films."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from http.client import HTTPConnection

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEED = ROOT / "target/storage/bin/weed"
LOOP_SECONDS = 20
ACCESS, SECRET = "HEADWATERBENCH", "not-a-secret-but-one-of-a-bench"


@contextlib.contextmanager
def workspace(name):
    """Yields a folder that servers of other users can read, and a list of functions that stop processes.
    At the end, calls the functions in reverse order and removes the folder."""
    work = pathlib.Path(tempfile.mkdtemp(prefix=f"headwater-{name}-"))
    os.chmod(work, 0o755)
    ended = []
    try:
        yield work, ended
    finally:
        for end in reversed(ended):
            end()
        shutil.rmtree(work, ignore_errors=True)


def make_certificate(work):
    config = work / "openssl.conf"
    config.write_text(
        "[req]\ndistinguished_name = name\nprompt = no\nx509_extensions = leaf\n[name]\nCN = localhost\n"
        "[leaf]\nsubjectAltName = DNS:localhost,IP:127.0.0.1\nbasicConstraints = critical,CA:FALSE\n"
    )
    certificate, key = work / "certificate.pem", work / "key.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*argv, "-days", "2", "-config", config, "-out", certificate, "-keyout", key],
                   check=True, stderr=subprocess.DEVNULL)  # fmt: skip
    return certificate, key


def ffmpeg(*argv):
    base = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y"]
    subprocess.run([*base, *map(str, argv)], check=True)


def make_films(work, args):
    """Encodes a short film and repeats its packets, so that long films need no long encode."""
    films = work / "films"
    films.mkdir()
    picture = f"testsrc2=size=640x360:rate=24:duration={LOOP_SECONDS}"
    sound = f"aevalsrc=random(0)/3:sample_rate=48000:duration={LOOP_SECONDS}"
    cbr = ["-minrate", "3894k", "-maxrate", "3894k", "-bufsize", "3894k", "-x264-params", "nal-hrd=cbr"]
    x264 = ["-c:v", "libx264", "-preset", "ultrafast", "-g", 48]
    ffmpeg("-f", "lavfi", "-i", picture, *x264, "-b:v", "3894k", *cbr, work / "picture.mp4")
    ffmpeg("-f", "lavfi", "-i", sound, "-c:a", "aac", "-b:a", "132k", work / "sound.mp4")
    ffmpeg("-f", "lavfi", "-i", picture, "-i", work / "sound.mp4", *x264, "-b:v", "400k", "-c:a", "copy", work / "small.mp4")
    cmaf = ["-movflags", "+cmaf+frag_keyframe+empty_moov+default_base_moof", "-f", "mp4"]
    repeat(work / "picture.mp4", args.film_seconds, *cmaf, films / "video.cmfv")
    repeat(work / "sound.mp4", args.film_seconds, *cmaf, "-frag_duration", 2_000_000, films / "audio.cmfa")
    repeat(work / "small.mp4", args.cold_seconds, "-movflags", "+faststart", films / "first.mp4")
    repeat(work / "small.mp4", args.cold_seconds, films / "last.mp4")
    for sources, name in [((films / "audio.cmfa", films / "video.cmfv"), "film"), ((films / "last.mp4",), "last")]:
        argv = [args.binary, "index", *sources, "-o", films, "--name", name]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return films


def repeat(source, seconds, *argv):
    times = -(-seconds // LOOP_SECONDS) - 1
    ffmpeg("-stream_loop", times, "-i", source, "-t", seconds, "-c", "copy", *argv)


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def wait_for(port, process, seconds=30):
    until = time.time() + seconds
    while time.time() < until and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{process.args[0]} did not start")


class S3:
    """seaweedfs with one user. Its filer accepts uploads without authentication."""

    def __init__(self, work, certificate, key):
        if not WEED.exists():
            raise SystemExit("the S3 server is not installed; run scripts/storage.sh")
        folder = work / "s3"
        folder.mkdir()
        user = {"name": "bench", "actions": ["Admin", "Read", "List", "Write"],
                "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}]}  # fmt: skip
        (folder / "s3.json").write_text(json.dumps({"identities": [user]}))
        names = ["s3.port", "s3.port.https", "master.port", "volume.port", "filer.port",
                 "s3.port.grpc", "master.port.grpc", "volume.port.grpc", "filer.port.grpc"]  # fmt: skip
        ports = dict(zip(names, free_ports(len(names))))
        argv = ["server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", f"-s3.config={folder}/s3.json",
                 f"-s3.cert.file={certificate}", f"-s3.key.file={key}", "-volume.max=20", "-master.volumeSizeLimitMB=8000",
                 "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]  # fmt: skip
        argv += [f"-{name}={port}" for name, port in ports.items()]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([WEED, "-logtostderr=false", *argv], **quiet)
        self.tls_port, self.filer = ports["s3.port.https"], ports["filer.port"]
        for name in ("s3.port.https", "filer.port"):
            wait_for(ports[name], self.process)

    def put(self, path):
        for _ in range(100):
            try:
                client = HTTPConnection("127.0.0.1", self.filer)
                with open(path, "rb") as body:
                    client.request("PUT", f"/buckets/films/{path.name}", body, {"Content-Type": "video/mp4"})
                    if client.getresponse().status in (200, 201):
                        return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit(f"the S3 server does not accept {path.name}")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Relay:
    """A process that relays TCP and delays every byte by half a round trip."""

    def __init__(self, port, rtt_ms):
        self.counted = multiprocessing.Value("Q", 0, lock=False)
        ports, theirs = multiprocessing.Pipe(False)
        work = (port, rtt_ms / 2000, theirs, self.counted)
        self.process = multiprocessing.Process(target=lambda: asyncio.run(relay(*work)), daemon=True)
        self.process.start()
        self.port = ports.recv()

    def bytes(self):
        """Returns the bytes received from the storage so far."""
        return self.counted.value

    def stop(self):
        self.process.terminate()
        self.process.join()


async def relay(port, delay, tell, counted):
    async def accept(reader, writer):
        # The TCP handshake takes a round trip too.
        await asyncio.sleep(2 * delay)
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        await asyncio.gather(pump(reader, there_writer, False), pump(there_reader, writer, True))

    async def pump(reader, writer, counts):
        loop, queue = asyncio.get_running_loop(), asyncio.Queue(512)

        async def send():
            while True:
                due, data = await queue.get()
                if (left := due - loop.time()) > 0:
                    await asyncio.sleep(left)
                if not data:
                    return
                writer.write(data)
                await writer.drain()

        sender = asyncio.ensure_future(send())
        try:
            while data := await reader.read(256 << 10):
                if counts:
                    counted.value += len(data)
                await queue.put((loop.time() + delay, data))
            await queue.put((loop.time() + delay, b""))
            await sender
        except (ConnectionError, asyncio.CancelledError):
            sender.cancel()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 20)
    tell.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()
