#!/bin/sh
# balance.sh PORT ORIGIN…: HAProxy, which chooses an origin by a consistent hash of the path, and another
# one if that origin has more than its share of the current requests.
set -eu
port=$1
shift
cat >haproxy.cfg <<END
global
  maxconn 4000
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend clients
  bind 0.0.0.0:$port
  default_backend origins
backend origins
  balance uri
  hash-type consistent
  hash-balance-factor 110
  http-reuse always
END
for origin in "$@"; do echo "  server o$(echo "$origin" | tr -c 'a-z0-9\n' -) $origin" >>haproxy.cfg; done
exec haproxy -db -f haproxy.cfg
