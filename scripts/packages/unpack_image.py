"""Unpacks an OCI image into a folder and checks every digest and size on the way.

    python3 scripts/packages/unpack_image.py IMAGE.tar FOLDER
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile


def read_blob(archive, descriptor):
    """The bytes that a descriptor refers to."""
    algorithm, value = descriptor["digest"].split(":")
    content = archive.extractfile(f"blobs/{algorithm}/{value}").read()
    assert hashlib.new(algorithm, content).hexdigest() == value, descriptor
    assert len(content) == descriptor["size"], descriptor
    return content


def main():
    image, folder = sys.argv[1:]
    with tarfile.open(image) as archive:
        assert json.load(archive.extractfile("oci-layout"))["imageLayoutVersion"] == "1.0.0"
        index = json.load(archive.extractfile("index.json"))
        manifest = json.loads(read_blob(archive, index["manifests"][0]))
        config = json.loads(read_blob(archive, manifest["config"]))
        for descriptor, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            layer = gzip.decompress(read_blob(archive, descriptor))
            assert "sha256:" + hashlib.sha256(layer).hexdigest() == diff_id, descriptor
            tarfile.open(fileobj=io.BytesIO(layer)).extractall(folder)
    assert config["config"]["Entrypoint"] == ["/headwater"], config
    assert config["config"]["User"] == "65532:65532", config


main()
