"""Builds a Python wheel that carries the binary, so that `pip install` provides the command.

    python3 scripts/packages/wheel.py BINARY VERSION OUT

The format is that of PEP 427; files in `.data/scripts` are installed as commands.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile

# PT_INTERP names the loader of a dynamic binary; a static one runs on every distribution.
STATIC_TAG = "py3-none-manylinux_2_17_x86_64"
DYNAMIC_TAG = "py3-none-linux_x86_64"


def choose_tag(content):
    """The platform tag (PEP 600) for a binary."""
    return DYNAMIC_TAG if b"ld-linux-x86-64.so.2\0" in content[:4096] else STATIC_TAG


def hash_entry(content):
    """The hash in the form that RECORD needs."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


def build_files(content, tag, version):
    """The files of the wheel, by their path."""
    info = f"headwater-{version}.dist-info"
    readme = open("README.md", encoding="utf-8").read()
    metadata = (
        f"Metadata-Version: 2.1\nName: headwater\nVersion: {version}\n"
        "Summary: Video on demand from plain files\nLicense: MIT OR Apache-2.0\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )
    wheel = f"Wheel-Version: 1.0\nGenerator: headwater\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {
        f"headwater-{version}.data/scripts/headwater": content,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": wheel.encode(),
    }
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        files[f"{info}/{name}"] = open(name, "rb").read()
    rows = [f"{name},{hash_entry(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    return files


def main():
    binary, version, out = sys.argv[1:]
    content = open(binary, "rb").read()
    tag = choose_tag(content)
    path = os.path.join(out, f"headwater-{version}-{tag}.whl")
    date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in build_files(content, tag, version).items():
            entry = zipfile.ZipInfo(name, date)
            mode = 0o755 if "/scripts/" in name else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file)


main()
