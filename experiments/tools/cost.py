#!/usr/bin/env python3
"""Runs a load and says, beside its result, what it cost the server.

    cost.py PID_FILE headwater load … --json -

Prints the load's JSON with one more member, `server`: processor time (us a request, ms a GiB),
context switches, system calls (null where perf cannot count them), threads, and memory at its peak;
of the process in PID_FILE and all its descendants.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time


def main():
    pid_file, *command = sys.argv[1:]
    pids = family(int(pathlib.Path(pid_file).read_text()))
    before = spent(pids)
    with tempfile.NamedTemporaryFile() as counted:
        result = subprocess.run([*counting(pids, counted.name), *command], stdout=subprocess.PIPE, check=False)
        after = spent(pids)
        calls = re.search(r"^(\d+),.*raw_syscalls", pathlib.Path(counted.name).read_text(), re.M)
    if result.returncode != 0:
        sys.exit(result.returncode)
    said = json.loads(result.stdout)
    requests = max(said["summary"]["requests"], 1)
    gib = sum(cell["bytes"] for step in said["steps"] for cell in step["kinds"].values()) / 2**30
    cpu_s = after["cpu_s"] - before["cpu_s"]
    said["server"] = {
        "cpu_s": cpu_s,
        "cpu_us_per_request": cpu_s * 1e6 / requests,
        "cpu_ms_per_gib": cpu_s * 1e3 / max(gib, 1e-9),
        "switches_per_request": (after["switches"] - before["switches"]) / requests,
        "calls_per_request": int(calls[1]) / requests if calls else None,
        "threads": after["threads"],
        "memory_mib": after["memory_kib"] / 1024,
    }
    print(json.dumps(said))


def counting(pids, file):
    """What to put before a command so that the system calls of others are counted meanwhile."""
    if not shutil.which("perf"):
        return []
    words = ["perf", "stat", "-x,", "-o", file, "-e", "raw_syscalls:sys_enter", "-p", ",".join(map(str, pids)), "--"]
    able = subprocess.run([*words, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return words if able.returncode == 0 else []


def family(pid):
    """A process and its descendants."""
    children = "".join(read(f"/proc/{pid}/task/{task}/children") for task in tasks(pid)).split()
    return [pid, *(each for child in children for each in family(int(child)))]


def tasks(pid):
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def read(path):
    """Empty where it has gone."""
    try:
        return pathlib.Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cpu_s(pid):
    """Processor time of a process, with that of threads that have ended."""
    try:
        # The process's CPU clock (clock_getcpuclockid(3)): the kernel's CPUCLOCK_SCHED of all its threads.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def spent(pids):
    """What processes have used since they began; switches are of threads that are still there."""
    threads = [f"/proc/{pid}/task/{task}" for pid in pids for task in tasks(pid)]
    switches = sum(sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", read(thread + "/status")))) for thread in threads)
    peaks = [re.search(r"VmHWM:\s+(\d+)", read(f"/proc/{pid}/status")) for pid in pids]
    return {
        "cpu_s": sum(cpu_s(int(pid)) for pid in pids),
        "switches": switches,
        "threads": len(threads),
        "memory_kib": sum(int(peak[1]) for peak in peaks if peak),
    }


if __name__ == "__main__":
    main()
