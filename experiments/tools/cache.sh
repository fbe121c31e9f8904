#!/bin/sh
# cache.sh STORAGE PORT [SCHEME]: document 2's caching layer in front of SCHEME://STORAGE [https]. It caches server manifests and index MP4s, one response per range, and forwards all other requests.
set -eu
mkdir -p temp kept
pass="proxy_pass ${3:-https}://storage; proxy_http_version 1.1; proxy_set_header Connection '';
  proxy_set_header Host $1; proxy_set_header Range \$http_range; proxy_max_temp_file_size 0; proxy_buffers 16 64k;"
cat >cache.conf <<END
daemon off; master_process off; pid $PWD/cache.pid; error_log $PWD/cache.err;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 1000000;
  client_body_temp_path $PWD/temp; proxy_temp_path $PWD/temp; fastcgi_temp_path $PWD/temp;
  uwsgi_temp_path $PWD/temp; scgi_temp_path $PWD/temp;
  proxy_cache_path $PWD/kept keys_zone=kept:10m max_size=1g use_temp_path=off;
  upstream storage { server $1; keepalive 64; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:$2 backlog=4096;
    location / { $pass }
    location ~* \\.(ism|mp4)\$ {
      $pass proxy_cache kept; proxy_cache_key \$uri\$http_range; proxy_cache_valid 200 206 1h; proxy_cache_lock on;
    }
  }
}
END
exec nginx -p "$PWD" -c "$PWD/cache.conf"
