#!/bin/sh
# storage.sh FOLDER CERTIFICATES PORT [LOW-HIGH]: an HTTP storage with ranges and keep-alive connections, and with
# TLS unless CERTIFICATES is "none". With LOW-HIGH, the first byte takes that many milliseconds (S3: 15-30).
set -eu
mkdir -p temp
tls= check= delay=
if [ "$2" != none ]; then
  tls=ssl
  check="ssl_certificate $2/certificate.pem; ssl_certificate_key $2/key.pem; ssl_session_tickets off;"
fi
if [ -n "${4:-}" ]; then
  python3 "$(dirname "$0")/first_byte.py" 8099 "${4%-*}" "${4#*-}" &
  delay="auth_request /first-byte;
    location = /first-byte {
      internal; proxy_pass http://delay; proxy_http_version 1.1; proxy_set_header Connection '';
      proxy_pass_request_body off; proxy_set_header Content-Length ''; proxy_set_header Range '';
    }"
fi
cat >nginx.conf <<END
daemon off; master_process off; pid $PWD/nginx.pid; error_log $PWD/nginx.err;
events { worker_connections 8192; }
http {
  access_log off; sendfile on; keepalive_requests 1000000; keepalive_timeout 300s; etag on;
  client_body_temp_path $PWD/temp; proxy_temp_path $PWD/temp; fastcgi_temp_path $PWD/temp;
  uwsgi_temp_path $PWD/temp; scgi_temp_path $PWD/temp;
  upstream delay { server 127.0.0.1:8099; keepalive 1024; keepalive_requests 1000000; }
  server {
    listen 0.0.0.0:$3 $tls backlog=4096;
    $check
    $delay
    root $1;
  }
}
END
exec nginx -p "$PWD" -c "$PWD/nginx.conf"
