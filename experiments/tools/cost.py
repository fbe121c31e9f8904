#!/usr/bin/env python3
"""cost.py: runs a load generator and adds the server's cost to its result.

    cost.py PID_FILE headwater load … --json -

Prints the generator's JSON with one more member, `server`: processor time (us per request, ms per GiB),
context switches, system calls (null if perf cannot count them), threads, and peak memory. The figures are
those of the process in PID_FILE and all its descendants.
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
    pids = process_tree(int(pathlib.Path(pid_file).read_text()))
    before = resource_usage(pids)
    with tempfile.NamedTemporaryFile() as counted:
        result = subprocess.run([*perf_command(pids, counted.name), *command], stdout=subprocess.PIPE, check=False)
        after = resource_usage(pids)
        calls = re.search(r"^(\d+),.*raw_syscalls", pathlib.Path(counted.name).read_text(), re.M)
    if result.returncode != 0:
        sys.exit(result.returncode)
    summary = json.loads(result.stdout)
    requests = max(summary["summary"]["requests"], 1)
    gib = sum(cell["bytes"] for step in summary["steps"] for cell in step["kinds"].values()) / 2**30
    cpu_s = after["cpu_s"] - before["cpu_s"]
    summary["server"] = {
        "cpu_s": cpu_s,
        "cpu_us_per_request": cpu_s * 1e6 / requests,
        "cpu_ms_per_gib": cpu_s * 1e3 / max(gib, 1e-9),
        "switches_per_request": (after["switches"] - before["switches"]) / requests,
        "calls_per_request": int(calls[1]) / requests if calls else None,
        "threads": after["threads"],
        "memory_mib": after["memory_kib"] / 1024,
    }
    print(json.dumps(summary))


def perf_command(pids, file):
    """Returns the start of a command line that counts system calls of `pids` while a command runs."""
    if not shutil.which("perf"):
        return []
    command = ["perf", "stat", "-x,", "-o", file, "-e", "raw_syscalls:sys_enter", "-p", ",".join(map(str, pids)), "--"]
    able = subprocess.run([*command, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return command if able.returncode == 0 else []


def process_tree(pid):
    """Returns a process and its descendants."""
    children = "".join(read(f"/proc/{pid}/task/{task}/children") for task in tasks(pid)).split()
    return [pid, *(each for child in children for each in process_tree(int(child)))]


def tasks(pid):
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def read(path):
    """Returns the content of a file, empty if the process has exited."""
    try:
        return pathlib.Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cpu_s(pid):
    """Returns the processor time of a process, including finished threads."""
    try:
        # The process's CPU clock (clock_getcpuclockid(3)): the kernel's CPUCLOCK_SCHED of all its threads.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def resource_usage(pids):
    """Returns the resource usage of processes since they started; switches are those of live threads."""
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
