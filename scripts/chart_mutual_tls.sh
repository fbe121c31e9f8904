#!/usr/bin/env bash
# Starts an origin and an edge with the settings that the chart renders for mutual TLS, and requests the built-in film.
#
#   scripts/chart_mutual_tls.sh BINARY FOLDER     FOLDER has serve.toml and edge.toml
#
# Addresses and the folder of the secrets are replaced, and the name of the Service by that of this machine. Names
# and keys of the secrets are the chart's.
set -euo pipefail
binary=$(realpath "$1")
cd "$2"
servers=()
trap 'kill "${servers[@]}" 2> /dev/null || true' EXIT

# openssl with the arguments of a new key without a password.
new_key() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "$@" 2> /dev/null
}

# certificate NAME EXTENSION: NAME.pem and NAME.key, and NAME-ca.pem, the authority that signed it.
certificate() {
  new_key -x509 -keyout "$1-ca.key" -out "$1-ca.pem" -days 1 -subj "/CN=authority of $1"
  new_key -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
  openssl x509 -req -in "$1.csr" -CA "$1-ca.pem" -CAkey "$1-ca.key" -CAcreateserial -days 1 -out "$1.pem" \
    -extfile <(echo "$2") 2> /dev/null
}

# mount FOLDER NAME OTHER: the secrets of a pod, with the keys that the chart expects.
mount() {
  mkdir -p "$1/mutual-tls" "$1/admin" "$1/edge-secret" "$1/aes" "$1/nats"
  cp "$2.pem" "$1/mutual-tls/tls.crt"
  cp "$2.key" "$1/mutual-tls/tls.key"
  cp "$3-ca.pem" "$1/mutual-tls/ca.crt"
  echo token-of-the-admin-port > "$1/admin/token"
  echo secret-of-all-edges > "$1/edge-secret/secret"
  echo secret-of-the-aes-keys-0123456789 > "$1/aes/secret"
  echo token-of-nats > "$1/nats/token"
}

# start PROGRAM: sets `url` and `admin` when the server listens.
start() {
  sed -i -e "s#/secrets/#$PWD/$1-secrets/#" -e "s#/cache#$PWD/$1-cache#" -e 's#0\.0\.0\.0:[0-9]*#127.0.0.1:0#' \
    -e "s#dns+https://[^\"]*#${origin:-}#" -e 's#^disk = .*#disk = "64MiB"#' \
    -e '/^announce/d' -e '/^source/d' -e '/^nats/d' "$1.toml"
  "$binary" "$1" --config "$1.toml" > "$1.out" 2> "$1.err" &
  servers+=($!)
  for _ in $(seq 600); do
    url=$(sed -n 's/^listening on //p' "$1.out")
    admin=$(sed -n 's/^admin on //p' "$1.out")
    [ -z "$url" ] || return 0
    kill -0 "$!" || break
    sleep 0.1
  done
  cat "$1.err"
  return 1
}

certificate origin 'subjectAltName=DNS:localhost'
certificate edge 'extendedKeyUsage=clientAuth'
mount serve-secrets origin edge
mount edge-secrets edge origin
start serve
origin=https://localhost:${url##*:}
health=$admin
if curl --silent --fail --cacert origin-ca.pem "$origin/healthz"; then
  echo "the origin accepts clients without a certificate"
  exit 1
fi
curl --silent --fail "$health/readyz"
start edge
curl --silent --fail --retry 60 --retry-all-errors --retry-delay 1 "$url/Headwater/.m3u8" | grep EXT-X-STREAM-INF
curl --silent --fail -H 'Authorization: Bearer token-of-the-admin-port' "$admin/metrics" | grep -c headwater_
# Without origins, edges serve from their caches: Kubernetes must not restart them.
kill "${servers[0]}"
wait "${servers[0]}"
curl --silent --fail "$admin/healthz"
curl --silent --fail "$admin/readyz"
