# Functions for machines of their own: a Debian root with its own processes and network. Sourced by test.sh, which sets
# `out` (the packages) and `roots` (a folder for the roots).
#
# The network has no way out, so each machine can use the documented ports, whatever listens on the host.

copies=target/bare-roots
leader=
machine=

# make_root FOLDER: a minimal Debian. It contains systemd, which a root needs to start services.
make_root() {
  local copy=$copies/debian.tar
  if [ ! -f "$copy" ]; then
    mkdir -p "$copies"
    debootstrap --variant=minbase --include=systemd,systemd-sysv bookworm "$roots/new" > "$roots/debootstrap.log" 2>&1 \
      || { tail "$roots/debootstrap.log"; return 1; }
    # A test cannot answer questions.
    echo 'APT::Get::Assume-Yes "true";' > "$roots/new/etc/apt/apt.conf.d/assume-yes"
    pack_root "$roots/new" "$copy"
  fi
  mkdir "$1"
  tar -C "$1" -xf "$copy"
}

pack_root() {
  tar -C "$1" -cf "$2.part" .
  mv "$2.part" "$2"
}

# fill_root FOLDER: adds what the page requires: the packages and a film.
fill_root() {
  mkdir -p "$1/packages" "$1/srv/films"
  cp "$out"/* "$1/packages"
  cp -r media/demo "$1/srv/films"
}

# start_machine ROOT ARGUMENT…: runs a command in the root, or boots it (--boot).
start_machine() {
  local root=$1
  shift
  systemd-nspawn --quiet --register=no --keep-unit --private-network --directory "$root" --chdir=/packages "$@" \
    < /dev/null > "$root.log" 2>&1 &
  machine=$!
  wait_until "the machine starts" find_leader
}

find_leader() {
  kill -0 "$machine" 2> /dev/null || return 2
  leader=$(pgrep --parent "$machine" | head -n 1)
  has_own pid && has_own net
}

# has_own NAMESPACE: the first process starts in those of the host.
has_own() {
  local own
  own=$(readlink "/proc/$leader/ns/$1") && [ -n "$own" ] && [ "$own" != "$(readlink "/proc/self/ns/$1")" ]
}

# wait_until WHAT COMMAND…: at most a minute, which is generous. A command that returns 2 will never succeed.
wait_until() {
  local what=$1 status
  shift
  for _ in $(seq 600); do
    status=0
    "$@" || status=$?
    [ $status -ne 0 ] || return 0
    [ $status -ne 2 ] || break
    sleep 0.1
  done
  echo "FAILED: $what"
  tail -n 20 "$roots"/*.log
  exit 1
}

# inside COMMAND…: runs a command in the machine, in the folder of the packages.
inside() {
  nsenter --target "$leader" --all --root env -i -C /packages HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# beside COMMAND…: runs a command of this host in the machine's network.
beside() {
  nsenter --target "$leader" --net "$@"
}

# play NAME PORT: waits until the server is ready, and plays the film from outside the root.
play() {
  wait_until "$1 is ready" is_ready "$2"
  local played
  played=$(beside python3 scripts/packages/play.py "http://127.0.0.1:$2" demo media/demo/video-540p.mp4)
  echo "$1: $played"
}

is_ready() {
  kill -0 "$leader" 2> /dev/null || return 2
  beside target/debug/headwater health "http://127.0.0.1:$1/readyz" > /dev/null 2>&1
}

# stop_servers: asks the servers in the machine to stop. The commands' last one returns, and its exit code is checked.
stop_servers() {
  kill -TERM "$(pgrep --ns "$leader" --nslist pid --exact headwater)"
  wait "$machine"
  machine=
}

end_machine() {
  [ -z "$machine" ] || kill -KILL "$leader" "$machine" 2> /dev/null || true
  wait 2> /dev/null || true
  machine=
}
