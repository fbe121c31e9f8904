"""With which congestion control a comparison is made: the machine's, or another one, in a network of its own.

It decides as much as the servers do. BBR paces: each 64 KiB on loopback is let go by a timer's
interrupt, on the sender's core. Without pacing the client's acknowledgements let them go, on the
client's.
"""

import os
import sys

SETTING = "/proc/sys/net/ipv4/tcp_congestion_control"
MARK = "HEADWATER_BENCH_CONGESTION"


def add_argument(parser):
    parser.add_argument(
        "--congestion", metavar="NAME", help="in a network namespace of its own, with this algorithm (needs root)"
    )


def enter(name):
    """Starts this program again, in a namespace where `name` is the default; returns at once if it is there."""
    if not name or os.environ.get(MARK) == name:
        return
    script = f'ip link set lo up && echo "$0" >{SETTING} && exec "$@"'
    os.environ[MARK] = name
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, name, sys.executable, *sys.argv])


def kernel():
    """Linux, and what its connections are controlled by."""
    with open(SETTING) as setting:
        return f"Linux {os.uname().release}, {setting.read().strip()}"
