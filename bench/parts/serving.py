"""Ranges of files, TLS, a second core, and slow viewers."""

import socket
import ssl
import subprocess
import sys
import time

import edge_beside
import run
import slow
from backends import make_certificate

from .encrypted import SECRET
from .row import GB, MIB, MS, SECONDS, Row, interleave, missing, row

RANGE = "256KiB"
RATE = 1000
VIEWERS = 10_000
KBPS = 300
# The least share of the rate that viewers must get. The client decrypts in one thread, which limits it.
LEAST_SHARE, LEAST_SHARE_TLS = 0.8, 0.6


class Baseline:
    """A server of baselines/ on core 0."""

    def __init__(self, name, folder):
        self.name = name
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", run.ROOT / "baselines/serve.sh", name, "--listen", "127.0.0.1:0", folder],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.url = self.process.stdout.readline().split()[-1]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ranges(args, work, ended):
    subprocess.run([run.ROOT / "scripts/baselines.sh"], check=True, capture_output=True)
    films = work / "films"
    films.mkdir()
    run.ffmpeg(
        "-f", "lavfi", "-i", "testsrc2=s=640x360:r=24:d=60,noise=alls=40:allf=t", "-c:v", "libx264", "-preset",
        "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "8M", "-maxrate", "8M", "-bufsize", "8M", str(films / "film.mp4"),
    )  # fmt: skip
    servers = {"ours": run.Headwater(films, "2s"), "nginx": Baseline("nginx", films), "C threads": Baseline("c", films)}
    ended += [server.stop for server in servers.values()]
    measure = lambda name, rate, seconds: run.load(
        f"ranges:{servers[name].url}/film.mp4", f"{rate:.0f}" if rate else "max", seconds, args.connections, "1",
        "--range-size", RANGE)["summary"]  # fmt: skip

    def ask_at(name, rate):
        """Returns None if another server did not complete all requests, as happens at 80 % of its maximum."""
        try:
            # p99.9 needs ten requests beyond it.
            return measure(name, rate, max(10500 / rate, 2 * args.seconds))
        except SystemExit as why:
            if name == "ours":
                raise
            print(f"{name}: {why}", file=sys.stderr)

    most = interleave(args, {"most": list(servers)}, lambda _, name: measure(name, None, 1))["most"]
    most = {name: sorted(f["rate_per_s"] for f in figures)[len(figures) // 2] for name, figures in most.items()}
    kinds = {RATE: list(servers), "80 %": list(servers)}
    found = interleave(args, kinds, lambda kind, name: ask_at(name, RATE if kind == RATE else 0.8 * most[name]))
    rows = []
    for kind, figures in found.items():
        what = f"{RATE}/s" if kind == RATE else f"80 % of each server's maximum ({', '.join(f'{n} {r:,.0f}/s' for n, r in most.items())})"
        p999 = {name: [f["from_due_ms"]["p99.9"] for f in of] for name, of in figures.items() if all(of)}
        others = [name for name in p999 if name != "ours"]
        if not others:
            sys.exit(f"at {what} no other server completed all requests")
        # The better of the other servers is the reference.
        best = min(others, key=lambda name: sorted(p999[name])[len(p999[name]) // 2])
        reference = f"{best} (the better of two)" if len(others) == 2 else f"{best} (the other did not complete all requests)"
        rounds = [{"ours": a, "nginx": b, "C threads": c} for a, b, c in zip(*figures.values(), strict=True)]
        rows.append(Row(f"ranges of {RANGE}, open loop at {what}: p99.9 from the scheduled time", reference, 1.0,
                        p999["ours"], p999[best], MS, less=True, rounds=rounds))  # fmt: skip
    return rows


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────


def tls(args, work, ended):
    films = run.make_films(work / "films", 60)
    plain = run.Headwater(films, "2s")
    paths = run.segments(plain.url, "/large-apart/.m3u8", "video=")
    ready = run.make_ready(work / "ready", plain.url, {"": paths})
    plain.stop()
    certificate, key = make_certificate(work)
    ours = run.Headwater(films, "2s", "--tls-cert", certificate, "--tls-key", key)
    ended.append(ours.stop)
    cipher = negotiated(ours.url)
    port = run.free_port()
    nginx = run.Nginx(work, ready, f"""listen 127.0.0.1:{port} ssl; ssl_certificate {certificate};
        ssl_certificate_key {key}; ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites {cipher[0]};
        ssl_session_tickets off;""")  # fmt: skip
    ended.append(nginx.stop)
    nginx.url = f"https://127.0.0.1:{port}"
    if negotiated(nginx.url)[:2] != cipher[:2]:
        raise RuntimeError(f"Headwater negotiates {cipher}, nginx {negotiated(nginx.url)}")
    servers = {"ours": ours, "nginx": nginx}
    of = interleave(args, {"": list(servers)}, lambda _, name: run.wrk(args, servers[name], paths, work))[""]
    return [row(f"{cipher[1]} ({cipher[0]}) segments, 1 MB, wrk", "nginx, ready-made, same cipher", 1.0, GB, *of.values())]


def negotiated(url):
    """Returns cipher and version that an OpenSSL client such as wrk negotiates."""
    host, port = url.removeprefix("https://").split(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain) as secure:
        return secure.cipher()


# ── two cores ────────────────────────────────────────────────────────────────────────────────


def cores(args, work, ended):
    """Measures the gain of a second core. For cheap responses, the client would need a third core, so only
    CPU-seconds are compared. For segments that are packaged and encrypted again, the client needs little
    CPU and shares the two cores."""
    films = run.make_films(work / "films", 60)
    secret = work / "secret"
    secret.write_text(SECRET)
    uncached = ["--aes-secret", secret, "--segment-memory", "0B"]
    kinds = {"light": ("/large-apart/.m3u8", []), "heavy": ("/large-apart/.m3u8?format=ts", uncached)}
    both = {"two": {"cores": "0,1", "workers": 2}, "one": {}}
    servers, paths = {}, {}
    for kind, (master, flags) in kinds.items():
        for name, where in both.items():
            servers[kind, name] = run.Headwater(films, "2s", *flags, **where)
            ended.append(servers[kind, name].stop)
        paths[kind] = run.segments(servers[kind, "one"].url, master, "video=")
    measure = lambda kind, name: run.discard(args, servers[kind, name], paths[kind], work, cores="0,1" if name == "two" else "1")
    found = interleave(args, {kind: list(both) for kind in kinds}, measure)
    light, heavy = found["light"], found["heavy"]
    a_second = [[f["bytes"] / 1e9 / f["wall_s"] for f in heavy[name]] for name in both]
    rounds = [{"ours": a, "theirs": b} for a, b in zip(*heavy.values(), strict=True)]
    return [
        missing("throughput of two cores relative to one, 1 MB", "the client needs a third core", "Headwater, one worker", 1.9),
        row("per CPU-second, two workers that share their cores with the client, 1 MB, discard", "Headwater, one worker", 0, GB,
            *light.values()),
        Row("throughput of two cores relative to one, uncached TS with AES-128, 1 MB, client on the same cores", "Headwater, one worker", 1.9,
            *a_second, GB, rounds=rounds),
        row("uncached TS with AES-128, 1 MB, per CPU-second, two cores relative to one", "Headwater, one worker", 0, GB, *heavy.values()),
    ]  # fmt: skip


# ── slow viewers ─────────────────────────────────────────────────────────────────────────────


def slow_viewers(args, work, ended):
    return measure_slow_viewers(args, work, ended, f"{VIEWERS:,} viewers at {KBPS} kb/s on one core")


def slow_tls_viewers(args, work, ended):
    what = f"{VIEWERS:,} TLS viewers at {KBPS} kb/s on one core"
    return measure_slow_viewers(args, work, ended, what, make_certificate(work))


def measure_slow_viewers(args, work, ended, what, identity=None):
    slow.allow_descriptors(VIEWERS + 200)
    films = run.make_films(work / "films", 60)
    plain = run.Headwater(films, "2s")
    paths = run.segments(plain.url, "/small-apart/.m3u8", "video=")
    ready = run.make_ready(work / "ready", plain.url, {"": paths})
    plain.stop()
    servers = start_slow_servers(work, films, ready, identity)
    ended += [server.stop for server in servers.values()]
    of = interleave(short(args), {"": list(servers)}, lambda _, name: watched(servers[name], paths))[""]
    of_each = lambda key: [[f[key] for f in of[name]] for name in servers]
    got = min(sum(rates) / len(rates) for rates in of_each("kbps_each"))
    if got < 0.95 * KBPS:
        what += f", who got {got:.0f} kb/s because of the client"
    rounds = [{"ours": a, "nginx": b} for a, b in zip(*of.values(), strict=True)]
    return [
        Row(f"{what}: CPU", "nginx, ready-made", 1.0, *of_each("cpu_a_second"), SECONDS, less=True, rounds=rounds),
        Row(f"{what}: private dirty memory", "nginx, ready-made", 1.0, *of_each("private_mib"), MIB, less=True),
    ]


def start_slow_servers(work, films, ready, identity):
    # All clients have one address and stand for remote clients, so Headwater paces them like nginx.
    most = VIEWERS + 100
    flags = ["--connections-max", most, "--connections-per-address-max", most, "--near-rtt", "0s"]
    more, url = "", None
    if identity:
        flags += ["--tls-cert", identity[0], "--tls-key", identity[1]]
        port = run.free_port()
        url = f"https://127.0.0.1:{port}"
        more = f"listen 127.0.0.1:{port} ssl backlog=4096; ssl_certificate {identity[0]}; ssl_certificate_key {identity[1]};"
    ours = run.Headwater(films, "2s", *flags)
    # nginx closes idle connections when less than a sixteenth of its connections are free.
    nginx = run.Nginx(work, ready, more, events=VIEWERS + 2000)
    nginx.url = url or nginx.url
    return {"ours": ours, "nginx": nginx}


def short(args):
    return type(args)(**{**vars(args), "rounds": min(args.rounds, 2)})


def watched(server, paths):
    """Measures a round: all viewers start, then ten seconds are measured."""
    watching = slow.watch(server.url, paths, VIEWERS, KBPS, 10)
    next(watching)
    before, private = run.cpu(server), edge_beside.private_bytes(server)
    figures = next(watching)
    figures |= {"cpu_s": run.cpu(server) - before, "private_mib": private / 2**20}
    watching.close()
    figures["kbps_each"] = figures["bytes"] * 8 / figures["wall_s"] / VIEWERS / 1000
    least = LEAST_SHARE_TLS if server.url.startswith("https") else LEAST_SHARE
    if figures["kbps_each"] < least * KBPS:
        raise RuntimeError(f"{server.name}: viewers got {figures['kbps_each']:.0f} kb/s of {KBPS}")
    # Normalises to the same bytes, because a late viewer does not catch up.
    figures["cpu_a_second"] = figures["cpu_s"] / figures["wall_s"] * KBPS / figures["kbps_each"]
    time.sleep(1)
    return figures
