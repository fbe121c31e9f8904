#!/bin/sh
# certificate.sh ADDRESS…: creates a key and a certificate for these IP addresses in this folder.
set -eu
names=$(printf ',IP:%s' "$@")
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=storage \
  -addext "subjectAltName=${names#,}" -addext "basicConstraints=critical,CA:FALSE" \
  -keyout key.pem -out certificate.pem 2>/dev/null
