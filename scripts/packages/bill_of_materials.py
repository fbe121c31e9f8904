"""Writes a CycloneDX 1.5 document of the crates and scripts in the binary, from `cargo metadata` on standard input.

    cargo metadata --format-version 1 --filter-platform TARGET | python3 scripts/packages/bill_of_materials.py VERSION
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
# A file that builds embed if it was fetched, and the lock file of its packages. The bundle of dash.js contains all
# packages that it depends on.
SCRIPTS = (
    ("player/vendor/dash.all.min.js", "player/package-lock.json"),
    ("vendor/uPlot/uPlot.iife.min.js", "vendor/package-lock.json"),
)


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


def describe_scripts():
    """The packages of the embedded players and of the plotting library."""
    for file, lock in SCRIPTS:
        if not (ROOT / file).exists():
            continue
        packages = json.loads((ROOT / lock).read_text())["packages"]
        for path, package in packages.items():
            if not path:
                continue
            name, version = path.removeprefix("node_modules/"), package["version"]
            yield {"type": "library", "name": name, "version": version,
                   "purl": f"pkg:npm/{name.replace('@', '%40')}@{version}",
                   "licenses": [{"expression": package["license"]}]}  # fmt: skip


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
        "components": [*map(describe, packages), *describe_scripts()],
    }
    json.dump(document, sys.stdout, indent=1)


main()
