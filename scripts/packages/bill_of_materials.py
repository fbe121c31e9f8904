"""Writes a CycloneDX 1.5 document of the crates in the binary, from `cargo metadata` on standard input.

    cargo metadata --format-version 1 | python3 scripts/packages/bill_of_materials.py VERSION
"""

import json
import sys


def find_linked(metadata):
    """The ids of the packages that the binary is linked from: no tests, no build scripts."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(p["id"] for p in metadata["packages"] if p["name"] == "headwater")
    seen, waiting = set(), [root]
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return seen


def describe(package):
    name, version = package["name"], package["version"]
    entry = {"type": "library", "name": name, "version": version}
    if package["source"]:
        entry["purl"] = f"pkg:cargo/{name}@{version}"
    if package["license"]:
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return entry


def main():
    metadata = json.load(sys.stdin)
    linked = find_linked(metadata)
    packages = [p for p in metadata["packages"] if p["id"] in linked and p["name"] != "headwater"]
    packages.sort(key=lambda p: (p["name"], p["version"]))
    subject = {"type": "application", "name": "headwater", "version": sys.argv[1]}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": [describe(p) for p in packages],
    }
    json.dump(document, sys.stdout, indent=1)


main()
