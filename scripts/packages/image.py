"""Builds an OCI image (image-spec 1.1) as a tar archive, without a container engine.

    python3 scripts/packages/image.py BINARY VERSION OUT

The archive is in the format of `docker load` and `podman load`; `test.sh` loads it with Podman. The image contains the
binary and the empty folders `/films`, `/cache` and `/tmp`.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

USER = 65532
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def add_entry(archive, name, content=None, mode=0o755, owner=0):
    """Adds a file, or a folder if there is no content."""
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime, entry.uid, entry.gid = mode, EPOCH, owner, owner
    if content is None:
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content or b""))


def build_layer(binary):
    """The layer, not compressed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        add_entry(archive, "headwater", open(binary, "rb").read())
        for folder in ("films", "cache"):
            add_entry(archive, folder, owner=USER)
        add_entry(archive, "tmp", mode=0o1777)
    return buffer.getvalue()


def build_config(layer, version):
    """The image's configuration."""
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    return {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"8080/tcp": {}},
            "Env": ["HEADWATER_LISTEN=0.0.0.0:8080"],
            "Entrypoint": ["/headwater"],
            "Cmd": ["serve"],
            "Volumes": {"/films": {}, "/cache": {}},
            "Healthcheck": {"Test": ["CMD", "/headwater", "health"], "Interval": 10_000_000_000},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "headwater",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "history": [{"created": created, "created_by": "scripts/packages/image.py"}],
    }


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def describe(content, media_type, **more):
    """A descriptor of the image specification."""
    return {"mediaType": media_type, "digest": digest(content), "size": len(content), **more}


def main():
    binary, version, out = sys.argv[1:]
    kind = "application/vnd.oci.image."
    layer = build_layer(binary)
    packed = gzip.compress(layer, 6, mtime=0)
    config = json.dumps(build_config(layer, version)).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": kind + "manifest.v1+json",
        "config": describe(config, kind + "config.v1+json"),
        "layers": [describe(packed, kind + "layer.v1.tar+gzip")],
    }
    manifest = json.dumps(manifest).encode()
    names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"headwater:{version}"}
    entry = describe(manifest, kind + "manifest.v1+json", annotations=names)
    index = {"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": [entry]}
    with tarfile.open(os.path.join(out, f"headwater-{version}-image.tar"), "w") as archive:
        add_entry(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}', 0o644)
        add_entry(archive, "index.json", json.dumps(index).encode(), 0o644)
        for blob in (config, manifest, packed):
            add_entry(archive, "blobs/sha256/" + digest(blob).split(":")[1], blob, 0o644)


main()
