"""Just-in-time encryption."""

import run

from .row import CLIENTS, GB, Row, interleave, row

# GB per CPU-second of nginx-vod-module 1.33, which encrypts every response again. Measured once on a
# similar machine; the module is AGPL and not built here.
VOD = 0.70
SECRET = "not a secret, but as long as one\n"
KIND = "TS 1 MB, encrypted"


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
    kinds = {client: list(servers) for client in CLIENTS}
    found = interleave(args, kinds, lambda kind, name: CLIENTS[kind](args, servers[name], paths, work))
    rows = []
    for name, what, target in (("ours", "repeated", 4.0), ("ours, cold", "cold", 0)):
        for client in CLIENTS:
            ours = found[client][name]
            cached = row("", "", 0, GB, ours, ours)
            known = [VOD] * len(cached.ours)
            work_done = f"JIT TS with AES-128, 1 MB, {what}, {client}"
            rows.append(Row(work_done, "nginx-vod (figure of an earlier run)", target, cached.ours, known, GB, rounds=cached.rounds))
    for name, what in (("ours", "repeated"), ("ours, paced", "repeated, with pacing like nginx")):
        of = found["wrk"]
        ready_made = "nginx, ready-made and encrypted, sendfile"
        rows.append(row(f"JIT TS with AES-128, 1 MB, {what}, wrk", ready_made, 0, GB, of[name], of["nginx"]))
    return rows + protected(args, work, ended, films, secret)


def protected(args, work, ended, films, secret):
    """Common Encryption of CMAF segments of 1 MB: from the segment cache, and read and encrypted each time."""
    rows = []
    for scheme in ("cbcs", "cenc"):
        protection = ["--drm-keys", f"secret:{secret}", "--drm-scheme", scheme]
        for what, flags, target in (("repeated", [], 4.0), ("cold", ["--segment-memory", "0B"], 0)):
            server = run.Headwater(films, "2s", *protection, *flags)
            ended.append(server.stop)
            paths = run.segments(server.url, "/large-apart/.m3u8", "video=")
            # Fills the segment cache, so that every round of "repeated" is.
            for path in paths:
                run.get(server.url + path)
            kinds = {client: [what] for client in CLIENTS}
            found = interleave(args, kinds, lambda kind, _: CLIENTS[kind](args, server, paths, work))
            for client in CLIENTS:
                ours = row("", "", 0, GB, found[client][what], found[client][what])
                known = [VOD] * len(ours.ours)
                work_done = f"CMAF with {scheme}, 1 MB, {what}, {client}"
                rows.append(Row(work_done, "nginx-vod (figure of an earlier run)", target, ours.ours, known, GB, rounds=ours.rounds))
    return rows
