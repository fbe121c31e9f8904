# Checks the units with a running systemd. Sourced by test.sh, in the machine of the Debian package.

show() {
  inside systemctl show --value --property "$2" "$1"
}

expect() {
  [ "$2" = "$3" ] || { echo "FAILED units, $1: $2 instead of $3"; inside journalctl -n 20 --no-pager; exit 1; }
}

# The service runs as a user of its own, and systemd waited for its notification.
# These are the ids of users that systemd creates for a service.
user=$(inside stat -c %u "/proc/$(show headwater MainPID)")
expect "user $user" "$((user >= 61184 && user <= 65519))" 1
expect "type" "$(show headwater Type)" notify

# A reload keeps the process.
before=$(show headwater-edge MainPID)
inside systemctl reload headwater-edge
expect "process after a reload" "$(show headwater-edge MainPID)" "$before"

# A restart ends the old process in order.
inside systemctl restart headwater
play "Debian package, restarted" 8080
inside systemctl stop headwater headwater-edge
expect "result of the stop" "$(show headwater Result)" success
expect "exit code" "$(show headwater ExecMainStatus)" 0

# With the socket unit, systemd opens the port.
inside systemctl start headwater.socket
play "Debian package, socket activation" 8080
inside systemctl stop headwater.socket headwater
inside systemctl start headwater
# The secrets of the page: systemd passes files that the service's user cannot read.
secrets() {
  python3 scripts/packages/documented_commands.py docs/how-to/service.md Secrets --language "$1"
}
for secret in admin-token edge-secret; do
  echo "0123456789abcdef-$secret" > "$root/etc/headwater/$secret"
done
chmod 600 "$root/etc/headwater/"*-token "$root/etc/headwater/"*-secret
mkdir "$root/etc/systemd/system/headwater.service.d"
secrets ini > "$root/etc/systemd/system/headwater.service.d/override.conf"
secrets toml >> "$root/etc/headwater/serve.toml"
inside systemctl daemon-reload
inside systemctl restart headwater
wait_until "the service with secrets is ready" is_ready 8080
status() {
  beside curl --silent --output /dev/null --write-out '%{http_code}' "$@"
}
expect "metrics without the token" "$(status http://127.0.0.1:9100/metrics)" 401
expect "metrics with the token" \
  "$(status --header 'Authorization: Bearer 0123456789abcdef-admin-token' http://127.0.0.1:9100/metrics)" 200
expect "film without the edge's secret" "$(status http://127.0.0.1:8080/demo/.m3u8)" 403
echo "checked the units with $(inside systemctl --version | head -n 1)"
