#!/bin/sh
# storage.sh FOLDER CERTIFICATES PORT: an HTTP storage with ranges, TLS and keep-alive connections.
set -eu
mkdir -p temp
cat >nginx.conf <<END
daemon off; master_process off; pid $PWD/nginx.pid; error_log $PWD/nginx.err;
events { worker_connections 8192; }
http {
  access_log off; sendfile on; keepalive_requests 1000000; keepalive_timeout 300s; etag on;
  client_body_temp_path $PWD/temp; proxy_temp_path $PWD/temp; fastcgi_temp_path $PWD/temp;
  uwsgi_temp_path $PWD/temp; scgi_temp_path $PWD/temp;
  server {
    listen 0.0.0.0:$3 ssl backlog=4096;
    ssl_certificate $2/certificate.pem; ssl_certificate_key $2/key.pem; ssl_session_tickets off;
    root $1;
  }
}
END
exec nginx -p "$PWD" -c "$PWD/nginx.conf"
