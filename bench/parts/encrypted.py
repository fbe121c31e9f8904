"""Just-in-time encryption."""

import run

from .beside_vod import compare_with_vod, start_vod, vod_name
from .row import CLIENTS, GB, interleave, row

# GB per CPU-second of nginx-vod-module 1.33, which encrypts every response again; see beside_vod.py.
VOD = 0.70
SECRET = "not a secret, but as long as one\n"
KIND = "TS 1 MB, encrypted"
# Least ratios to nginx-vod for segments of Common Encryption that are read and encrypted each time.
COLD_TARGETS = {"cbcs": 4.0, "cenc": 2.0}


def encrypted(args, work, ended):
    films = run.make_films(work / "films", 120)
    secret = work / "secret"
    secret.write_text(SECRET)
    encryption = ["--aes-secret", secret]
    servers = {
        "ours": run.Headwater(films, "2s", *encryption),
        "ours, paced": run.Headwater(films, "2s", *encryption, "--near-rtt", "0s"),
        "ours, cold": run.Headwater(films, "2s", *encryption, "--segment-memory", "0B"),
    }
    ended += [server.stop for server in servers.values()]
    paths = run.segments(servers["ours"].url, "/large-apart/.m3u8?format=ts", "video=")
    ready = run.make_ready(work / "ready", servers["ours"].url, {KIND: paths})
    servers["nginx"] = run.Nginx(work, ready)
    ended.append(servers["nginx"].stop)
    paths = dict.fromkeys(servers, paths) | start_vod(args, work, ended, films, servers, ["TS with AES-128"])
    kinds = {client: list(servers) for client in CLIENTS}
    found = interleave(args, kinds, lambda kind, name: CLIENTS[kind](args, servers[name], paths[name], work))
    rows = []
    for name, what, target in (("ours", "repeated", 4.0), ("ours, cold", "cold", 0)):
        for client in CLIENTS:
            work_done = f"JIT TS with AES-128, 1 MB, {what}, {client}"
            rows.append(compare_with_vod(work_done, target, found[client], name, "TS with AES-128", VOD))
    for name, what in (("ours", "repeated"), ("ours, paced", "repeated, with pacing like nginx")):
        of = found["wrk"]
        ready_made = "nginx, ready-made and encrypted, sendfile"
        rows.append(row(f"JIT TS with AES-128, 1 MB, {what}, wrk", ready_made, 0, GB, of[name], of["nginx"]))
    return rows + protected(args, work, ended, films, secret)


def protected(args, work, ended, films, secret):
    """Common Encryption of CMAF segments of 1 MB: from the segment cache, and read and encrypted each time."""
    servers, paths = {}, {}

    def start(name, *flags):
        servers[name] = run.Headwater(films, "2s", *flags)
        ended.append(servers[name].stop)
        paths[name] = run.segments(servers[name].url, "/large-apart/.m3u8", "video=")
        # Fills the segment cache, so that every round of "repeated" is.
        for path in paths[name]:
            run.get(servers[name].url + path)

    start("unencrypted")
    for scheme in COLD_TARGETS:
        protection = ["--drm-keys", f"secret:{secret}", "--drm-scheme", scheme]
        start(f"{scheme}, repeated", *protection)
        start(f"{scheme}, cold", *protection, "--segment-memory", "0B")
    paths |= start_vod(args, work / "protected", ended, films, servers, ["TS with AES-128", "fMP4 with cbcs"])
    kinds = {client: list(servers) for client in CLIENTS}
    found = interleave(args, kinds, lambda kind, name: CLIENTS[kind](args, servers[name], paths[name], work))
    rows = []
    for scheme, cold_target in COLD_TARGETS.items():
        for client in CLIENTS:
            work_done = f"CMAF with {scheme}, 1 MB, cold, {client}"
            rows.append(compare_with_vod(work_done, cold_target, found[client], f"{scheme}, cold", "TS with AES-128", VOD))
            # nginx-vod makes the same segments in HLS with cbcs only.
            if same := found[client].get(vod_name(f"fMP4 with {scheme}")):
                rows.append(row(work_done, vod_name("fMP4 with cbcs"), 0, GB, found[client][f"{scheme}, cold"], same))
        for client in CLIENTS:
            rows.append(row(f"CMAF with {scheme}, 1 MB, repeated, {client}", "Headwater, unencrypted CMAF, repeated", 0.97, GB,
                            found[client][f"{scheme}, repeated"], found[client]["unencrypted"]))  # fmt: skip
    return rows
