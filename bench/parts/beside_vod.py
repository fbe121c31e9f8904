"""nginx-vod-module beside our servers: measured in the same rounds with --nginx-vod, or its figure of an earlier run.

The figures of nginx-vod-module 1.33 were measured once on a similar machine. The speed of machines differs, so a ratio
to them means less than one from the same rounds.
"""

from vod import NginxVod

from .row import GB, Row, row


def start_vod(args, work, ended, films, servers, methods):
    """Adds nginx-vod to the servers, if there is one. Returns the paths of its segments by server name."""
    if not args.nginx_vod:
        return {}
    vod = NginxVod(work, args.nginx_vod, films)
    ended.append(vod.stop)
    servers |= {vod_name(method): vod for method in methods}
    return {vod_name(method): vod.segments(method) for method in methods}


def vod_name(method):
    return f"nginx-vod, {method}"


def compare_with_vod(work_done, target, found, name, method, known):
    """Makes a row from `{server: [figures]}` of all rounds; `known` is in GB per CPU-second."""
    if measured := found.get(vod_name(method)):
        return row(work_done, vod_name(method), target, GB, found[name], measured)
    ours = row("", "", 0, GB, found[name], found[name])
    return Row(work_done, "nginx-vod (figure of an earlier run)", target, ours.ours, [known] * len(ours.ours), GB,
               rounds=ours.rounds)  # fmt: skip
