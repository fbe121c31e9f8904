#!/usr/bin/env bash
# Starts one of the compared servers. scripts/baselines.sh installs what they need.
#
#   baselines/serve.sh c|c-WORKERS|c-queue|c-sanitized|node|deno|rust|rust-cured|nginx|headwater --listen HOST:PORT FOLDER [OPTION…]
#
# `c-1024` is `c` with that many workers instead of 64. `c-queue` serves one request per turn and queues the
# connection again, as document 3's C server does. `rust-cured` is `rust` with one read of 1 MiB
# instead of 256 of 4 KiB, and TCP_NODELAY (docs/why-rust-was-slow.md).
# $NAIVE and $HEADWATER are the programs of `rust` and `headwater`. Defaults: `naive` of the release
# build, and `headwater` in PATH. With $TLS, a folder with certificate.pem and key.pem, `nginx` and `headwater`
# require TLS 1.3. Prints `listening on http://HOST:PORT`; SIGTERM ends the server.
set -euo pipefail
[ $# -ge 4 ] && [ "$2" = --listen ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
server=$1 listen=$3 folder=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
target=$here/../target
modules=$target/baselines/node_modules

case $server-${TLS:-} in *- | nginx-* | headwater-*) ;; *) echo "serve.sh: $server has no TLS" >&2; exit 2 ;; esac

first() { for each; do [ -x "$each" ] && { echo "$each"; return; }; done; echo "serve.sh: not found: $*; run scripts/baselines.sh" >&2; return 1; }
naive() { [ -x "$target/release/naive" ] && echo "$target/release/naive" || { echo "serve.sh: not found: $target/release/naive; run cargo build --release -p baselines" >&2; return 1; }; }

case $server in
  c-[0-9]*) set -- --workers "${server#c-}"; server=c; program=$(first "$target/baselines/c-server") ;;
  c-queue) set -- --requeue; server=c; program=$(first "$target/baselines/c-server") ;;
  c) program=$(first "$target/baselines/c-server") ;;
  c-sanitized) program=$(first "$target/baselines/c-server-sanitized") ;;
  node) program=$(first "$modules"/node-linux-*/bin/node); set -- "$here/node/server.js" --listen "$listen" "$folder" ;;
  deno) program=$(first "$modules"/@deno/linux-*/deno); set -- run --no-prompt --quiet --allow-net --allow-read "$here/deno/server.ts" --listen "$listen" "$folder" ;;
  rust-cured) set -- --read blocking --chunk 1048576 --nodelay; server=rust; program=${NAIVE:-$(naive)} ;;
  rust) program=${NAIVE:-$(naive)} ;;
  headwater)
    program=${HEADWATER:-headwater}
    [ -z "${TLS:-}" ] || set -- --tls-cert "$TLS/certificate.pem" --tls-key "$TLS/key.pem" "$@"
    set -- serve --listen "$listen" "$@" "$folder"
    ;;
  nginx) ;;
  *) echo "serve.sh: unknown server: $server" >&2; exit 2 ;;
esac
case $server in
  node | deno | headwater) exec "$program" "$@" ;;
  c | c-sanitized | rust) exec "$program" --listen "$listen" "$@" "$folder" ;;
esac

# nginx does not support port 0, does not report when it listens, and needs a folder for its files.
[ "${listen##*:}" != 0 ] || listen=${listen%:*}:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
tls=
[ -z "${TLS:-}" ] || tls="ssl_protocols TLSv1.3; ssl_certificate $TLS/certificate.pem; ssl_certificate_key $TLS/key.pem;"
sed "/^#/d; s|RUN|$run|; s|LISTEN|$listen${tls:+ ssl}|; s|TLS|$tls|; s|FOLDER|$(realpath "$folder")|" "$here/nginx/nginx.conf" > "$run/nginx.conf"
nginx -e stderr -c "$run/nginx.conf" &
child=$!
trap 'kill $child' TERM INT
until (exec 3<> "/dev/tcp/${listen%:*}/${listen##*:}") 2> /dev/null; do
  kill -0 $child 2> /dev/null || { wait $child; exit; }
  sleep 0.01
done
echo "listening on http://$listen"
wait $child || wait $child || true # The trap interrupts the first wait.
