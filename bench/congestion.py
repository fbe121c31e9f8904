"""Chooses the congestion control of a benchmark: that of the machine, or another in a network namespace.

It affects the result as much as the servers do. BBR paces: a timer interrupt on the sender's core
releases each 64 KiB on loopback. Without pacing, acknowledgements release them on the client's core.
"""

import os
import sys

SETTING = "/proc/sys/net/ipv4/tcp_congestion_control"
MARK = "HEADWATER_BENCH_CONGESTION"


def add_argument(parser):
    parser.add_argument(
        "--congestion", metavar="NAME", help="congestion control to use, in a separate network namespace (needs root)"
    )


def enter(name):
    """Restarts this program in a network namespace where `name` is the default. Returns if it is already."""
    if not name or os.environ.get(MARK) == name:
        return
    script = f'ip link set lo up && echo "$0" >{SETTING} && exec "$@"'
    os.environ[MARK] = name
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, name, sys.executable, *sys.argv])


def kernel():
    """Returns the kernel version and the congestion control."""
    with open(SETTING) as setting:
        return f"Linux {os.uname().release}, {setting.read().strip()}"
