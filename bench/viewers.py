#!/usr/bin/env python3
"""Measures `headwater load players`: thousands of viewers of a 4 Mb/s ladder in one process.

nginx serves playlists, and segments of the right length with arbitrary bytes, over loopback. No process
is pinned. Exits with 1 if the generator fell behind its clock (50 ms at the 99th percentile), a viewer
stalled, or a request failed.
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import ROOT, cpu_model, free_port, nginx_version, wait_for  # noqa: E402

LADDER_KBPS = (500, 1000, 2000, 4000)
SEGMENT_S = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_args()
    # More than one connection per viewer, at both ends.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    work = pathlib.Path(tempfile.mkdtemp(prefix="headwater-bench-viewers-"))
    nginx = None
    try:
        os.chmod(work, 0o755)
        nginx, url = serve(work, args)
        argv = ["load", "players", f"{url}/all.m3u8", "--viewers", str(args.viewers), "--spread", f"{args.seconds // 3}s",
                 "--duration", f"{args.seconds}s", "--buffer", "12s", "--expect", "late.p99 < 50ms",
                 "--expect", "stalls = 0", "--expect", "errors = 0"]  # fmt: skip
        done = subprocess.run([ROOT / "target/release/headwater", *argv], capture_output=True, text=True)
    finally:
        if nginx:
            nginx.terminate()
            nginx.wait()
        shutil.rmtree(work, ignore_errors=True)
    verdicts = [line for line in done.stderr.splitlines() if line.startswith(("holds", "FAILS"))]
    text = "\n".join([
        f"machine: {cpu_model()}, {os.cpu_count()} cores, Linux {os.uname().release}",
        f"command: bench/viewers.py --viewers {args.viewers} --seconds {args.seconds}",
        f"server: {nginx_version()}, one worker, the same machine", "", "```", done.stdout.rstrip(), "```", "",
        *(f"- {line}" for line in verdicts),
    ]) + "\n"  # fmt: skip
    print(text)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    elif not args.no_save:
        name = f"{time.strftime('%Y-%m-%d')}-{os.cpu_count()}-cores-viewers.md"
        (ROOT / "bench/runs" / name).write_text(text)
    sys.exit(done.returncode)


def serve(work, args):
    variants = "".join(f"#EXT-X-STREAM-INF:BANDWIDTH={kbps}000\nv{kbps}.m3u8\n" for kbps in LADDER_KBPS)
    (work / "all.m3u8").write_text(f"#EXTM3U\n{variants}")
    for kbps in LADDER_KBPS:
        parts = "".join(f"#EXTINF:{SEGMENT_S},\ns{kbps}-{n}.ts\n" for n in range(args.seconds))
        (work / f"v{kbps}.m3u8").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:{SEGMENT_S}\n{parts}#EXT-X-ENDLIST\n")
        (work / f"{kbps}.bin").write_bytes(bytes(kbps * 1000 * SEGMENT_S // 8))
    port = free_port()
    config = work / "nginx.conf"
    config.write_text(
        f"""worker_processes 1; daemon off; pid {work}/pid; error_log {work}/error.log;
        worker_rlimit_nofile {4 * args.viewers + 1000};
        events {{ worker_connections {2 * args.viewers + 500}; }}
        http {{ access_log off; sendfile on; tcp_nopush on;
          client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3;
          uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
          server {{ listen 127.0.0.1:{port} backlog=4096; root {work};
            location ~ "^/s([0-9]+)-" {{ alias {work}/$1.bin; }} }} }}"""
    )
    process = subprocess.Popen(["nginx", "-c", str(config)])
    url = f"http://127.0.0.1:{port}"
    wait_for(f"{url}/all.m3u8")
    return process, url


if __name__ == "__main__":
    main()
