#!/usr/bin/env python3
"""profile.py: runs a load generator and splits the server's processor time by purpose, in us per request.

    profile.py PID_FILE headwater load … --json -

Prints the generator's JSON with one more member, `parts`. perf samples the stacks of the process in PID_FILE and all its
descendants 1999 times per second of processor time. The innermost kernel function of SYSTEM_CALLS in a stack
decides the part; a stack outside the kernel belongs to JavaScript, memory copies or the program itself.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from cost import cpu_s, process_tree

HERTZ = 1999
# Parts of a request and the kernel functions that begin them. Sockets also pass through the functions of files, so
# they precede them.
SYSTEM_CALLS = {
    "send": r"tcp_sendmsg|sock_sendmsg|sock_write_iter|splice_to_socket|__sys_sendto|do_sendfile",
    "receive": r"tcp_recvmsg|sock_recvmsg|sock_read_iter|__sys_recvfrom",
    "accept": r"__sys_accept4|do_accept",
    "read": r"vfs_read|ksys_pread64|io_read|filemap_read",
    "open": r"do_sys_openat2|vfs_statx|vfs_fstat|do_statx|ksys_lseek|__x64_sys_close|filp_close",
    "schedule": r"do_futex|do_epoll_wait|do_epoll_ctl|ep_poll|__schedule|do_poll|sched_yield|eventfd_write|clock_nanosleep",
    "memory": r"asm_exc_page_fault|exc_page_fault|vm_mmap_pgoff|__vm_munmap|do_madvise|ksys_mmap_pgoff",
}
USER = {
    "javascript": r"perf-\d+\.map|\[JIT\]|//anon|\[anon",
    "copy": r"mem(cpy|move|set)",
}
PARTS = [*SYSTEM_CALLS, "kernel", *USER, "program"]


def main():
    pid_file, *command = sys.argv[1:]
    pids = process_tree(int(pathlib.Path(pid_file).read_text()))
    with tempfile.TemporaryDirectory() as folder:
        recorded = f"{folder}/perf.data"
        before = sum(map(cpu_s, pids))
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "-g", "-o", recorded, "-p"]
        result = subprocess.run([*record, ",".join(map(str, pids)), "--", *command], stdout=subprocess.PIPE, check=False)
        spent_us = 1e6 * (sum(map(cpu_s, pids)) - before)
        if result.returncode != 0:
            sys.exit(result.returncode)
        shares = part_shares(recorded)
    summary = json.loads(result.stdout)
    per_request = spent_us / max(summary["summary"]["requests"], 1)
    summary["parts"] = {part: shares[part] * per_request for part in PARTS} | {"total": per_request}
    print(json.dumps(summary))


def part_shares(recorded):
    """Returns the share of each part in the samples of a recording."""
    script = ["perf", "script", "-i", recorded, "-F", "ip,sym,dso"]
    stacks = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    found = collections.Counter(classify(stack.strip().splitlines()) for stack in stacks.split("\n\n") if stack.strip())
    count = found.total()
    if count == 0:
        sys.exit("profile.py: perf recorded no sample of the server")
    return collections.Counter({part: n / count for part, n in found.items()})


def classify(frames):
    """Returns the part of one stack, whose innermost frame is first."""
    if "[kernel.kallsyms]" in frames[0]:
        kernel = [frame for frame in frames if "[kernel.kallsyms]" in frame]
        # Interrupts deliver packets in the context of any process; over loopback they are those of the sender.
        for frame in kernel:
            for part, functions in SYSTEM_CALLS.items():
                if re.search(rf"\b({functions})\b", frame):
                    return part
        return "kernel"
    for part, names in USER.items():
        if re.search(names, frames[0]):
            return part
    return "program"


if __name__ == "__main__":
    main()
