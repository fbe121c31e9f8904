"""nginx with nginx-vod-module, as `--nginx-vod PATH`. The module is AGPL and not built by this project."""

import os
import re
import subprocess

import run

SECRET = "not a secret, but as long as one"
# Settings of the segments. Encryption happens again for every response.
METHODS = {
    "fMP4": "vod_hls_container_format fmp4;",
    "TS with AES-128": "vod_hls_encryption_method aes-128;",
    "fMP4 with cbcs": "vod_hls_container_format fmp4; vod_hls_encryption_method sample-aes;",
}

PLAYLIST = "/{}/large-apart/video.mp4/index.m3u8"


class NginxVod:
    """Local files, with a cache of the films' metadata and of small responses."""

    name = "nginx-vod"

    def __init__(self, work, binary, films):
        folder = work / "vod"
        folder.mkdir(parents=True)
        os.chmod(work, 0o755)
        port = run.free_port()
        methods = enumerate(METHODS.values())
        locations = " ".join(f"location /{number}/ {{ alias {films}/; vod hls; {settings} }}" for number, settings in methods)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temp = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        (folder / "conf").write_text(
            f"""daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{ worker_connections 1024; }}
            http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; open_file_cache max=10000; {temp}
              vod_mode local; vod_metadata_cache metadata 64m; vod_response_cache responses 64m; vod_segment_duration 2000;
              vod_align_segments_to_key_frames on; vod_base_url ""; vod_secret_key "{SECRET}";
              server {{ listen 127.0.0.1:{port}; {locations} }} }}"""
        )
        self.process = subprocess.Popen(["taskset", "-c", "0", binary, "-c", folder / "conf"], stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        run.wait_for(self.url + PLAYLIST.format(0), self.stop)

    # The processes and how they end are those of every nginx.
    pids, stop = run.Nginx.pids, run.Nginx.stop

    def segments(self, method):
        playlist = PLAYLIST.format(list(METHODS).index(method))
        text = run.get(self.url + playlist).decode()
        return [run.resolve(playlist, uri) for uri in re.findall(r"^(?!#)(\S+)$", text, re.M)]
