#!/usr/bin/env bash
# Checks Dockerfile, deploy/haproxy, compose.yaml and deploy/helm with the tools of scripts/chart_tools.sh, and the settings in
# them with the debug binary, or $HEADWATER. Nothing is deployed.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/charts/bin:$PWD/target/charts/python/bin:$PATH
binary=${HEADWATER:-target/debug/headwater}
chart=deploy/helm/headwater
kubernetes=1.34
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

# check NAME COMMAND…
check() {
  local name=$1
  shift
  if "$@" > "$work/output" 2>&1; then
    passed=$((passed + 1))
    echo "ok: $name"
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    cat "$work/output"
  fi
}

# check_with TOOL NAME COMMAND…: skips if the tool is missing.
check_with() {
  local tool=$1
  shift
  if command -v "$tool" > /dev/null; then
    check "$@"
  else
    echo "SKIPPED deployment, $1: $tool is not installed"
  fi
}

render() {
  helm template films "$chart" --namespace films --kube-version "$kubernetes" --values "$1"
}

# Fails unless the tool refuses the chart's own mistake: a probe without a port.
refuses_a_mistake() {
  sed 's/port: http}/prot: http}/' "$work/full.yaml" > "$work/mistake.yaml"
  ! kubernetes-validate --kubernetes-version "$kubernetes" --strict "$work/mistake.yaml" > "$work/refused" 2>&1 &&
    grep -q "'port' is a required property" "$work/refused"
}

# Topology spread constraints take the place of anti-affinity, which would leave replicas without a node.
score() {
  kube-score score --kubernetes-version "v$kubernetes" --output-format ci --exit-one-on-warning \
    --ignore-test deployment-has-host-podantiaffinity --ignore-test statefulset-has-host-podantiaffinity "$1"
}

# Fails unless the chart refuses mutual TLS and a shared secret without the port that probes and Prometheus use.
refuses_without_admin_port() {
  for value in mutualTls.enabled=true,mutualTls.originSecret=a,mutualTls.edgeSecret=b edgeSecret.secret=a; do
    ! helm template films "$chart" --kube-version "$kubernetes" --set "$value" > "$work/refused" 2>&1 && grep -q 'needs admin.tokenSecret' "$work/refused" ||
      return 1
  done
}

# Prints the probes' ports of a rendered workload: kind, file.
probe_ports() {
  sed -n "/^kind: $1/,/^---/s/.*httpGet: .*port: \([a-z]*\)}.*/\1/p" "$2" | sort -u
}

# With an admin port, probes use it: with mutual TLS, the main port of an origin refuses the kubelet, which has no
# certificate, and that of an edge always forwards the paths of the probes to the origins.
probes_reach_the_pod_itself() {
  local kind
  for kind in Deployment StatefulSet; do
    [ "$(probe_ports $kind "$work/mutual-tls.yaml")" = admin ] && [ "$(probe_ports $kind "$work/full.yaml")" = http ] ||
      return 1
  done
}

# Kubernetes evicts an origin whose index cache exceeds its volume. A value of `settings` takes precedence.
index_cache_fits() {
  grep -q '^    index-disk = "1536MiB"$' "$work/full.yaml" && grep -q 'emptyDir: {sizeLimit: 2Gi}' "$work/full.yaml" &&
    helm template films "$chart" --kube-version "$kubernetes" --set origin.settings.index-disk=1GiB > "$work/set.yaml" &&
    [ "$(grep 'index-disk' "$work/set.yaml")" = '    index-disk = "1GiB"' ]
}

# The rules of the rendered PrometheusRule are those that promtool tests.
renders_alerts() {
  sed -n '/^kind: PrometheusRule/,/^---/p' "$work/full.yaml" | sed -e '1,/^spec:/d' -e '/^---/d' -e 's/^  //' > "$work/rules.yaml"
  promtool check rules "$work/rules.yaml" && diff -B <(grep -c 'alert:' "$work/rules.yaml") <(grep -c 'alert:' deploy/prometheus/alerts.yaml)
}

# Each dashboard of deploy/grafana is in a ConfigMap.
renders_dashboards() {
  [ "$(grep -c 'grafana_dashboard: "1"' "$work/full.yaml")" = "$(ls deploy/grafana/*.json | wc -l)" ]
}

# Renders the settings of a ConfigMap, and prints them as the server understands them.
reads_settings() {
  local program=$1 manifest=$2
  helm template films "$chart" --namespace films --kube-version "$kubernetes" --values "$manifest" \
    --show-only templates/config.yaml \
    | sed -n "/^  $program.toml: |/,/^---/p" | sed -e 1d -e '/^---/d' -e 's/^    //' > "$work/$program.toml"
  [ -s "$work/$program.toml" ] && "$binary" "$program" --config "$work/$program.toml" --print-config
}

# Prints the variables of a service of compose.yaml as NAME=VALUE.
compose_variables() {
  sed -n "/^  $1:\$/,/^  [a-z]*:\$/s/^      \(HEADWATER_[A-Z_]*\): \"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1=\2/p" compose.yaml
}

reads_compose_settings() {
  local -a origin edge
  mapfile -t origin < <(compose_variables origin)
  mapfile -t edge < <(compose_variables edge)
  [ ${#origin[@]} -gt 0 ] && [ ${#edge[@]} -gt 0 ] &&
    env "${origin[@]}" "$binary" serve /films --print-config && env "${edge[@]}" "$binary" edge --print-config
}

# Starts both servers with the settings of ci/mutual-tls.yaml.
plays_over_mutual_tls() {
  reads_settings serve "$chart/ci/mutual-tls.yaml" && reads_settings edge "$chart/ci/mutual-tls.yaml" &&
    scripts/chart_mutual_tls.sh "$binary" "$work"
}

check_with hadolint "Dockerfile" hadolint Dockerfile
check_with haproxy "haproxy.cfg" haproxy -c -f deploy/haproxy/haproxy.cfg
check_with check-jsonschema "compose.yaml, compose schema" check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
check_with promtool "prometheus.yml" promtool check config --syntax-only deploy/compose/prometheus.yml
check "compose.yaml, settings" reads_compose_settings
check_with helm "helm lint" helm lint --strict "$chart"
for values in "$chart"/ci/*.yaml; do
  name=$(basename "$values" .yaml)
  command -v helm > /dev/null || { echo "SKIPPED deployment, $name: helm is not installed"; continue; }
  check "helm lint, $name" helm lint --strict "$chart" --values "$values"
  render "$values" > "$work/$name.yaml" || { failed=$((failed + 1)); continue; }
  check_with kubernetes-validate "Kubernetes schemas, $name" \
    kubernetes-validate --kubernetes-version "$kubernetes" --strict --no-warn "$work/$name.yaml"
  check "settings of serve, $name" reads_settings serve "$values"
  check "settings of edge, $name" reads_settings edge "$values"
done
[ ! -f "$work/full.yaml" ] || {
  check_with kube-score "kube-score" score "$work/full.yaml"
  check_with kube-score "kube-score, mutual TLS" score "$work/mutual-tls.yaml"
  check "mutual TLS and secrets need the admin port" refuses_without_admin_port
  check "probes reach the pod itself" probes_reach_the_pod_itself
  check "the index cache fits into its volume" index_cache_fits
  check_with promtool "alerts of the chart" renders_alerts
  check "dashboards of the chart" renders_dashboards
  check "mutual TLS of the chart plays" plays_over_mutual_tls
  check_with kubernetes-validate "a mistake is refused" refuses_a_mistake
}
echo "deployment: $passed passed, $failed failed; linted, not deployed"
[ $failed -eq 0 ]
