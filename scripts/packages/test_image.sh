# Loads and runs the image with Podman, in a network of its own. Sourced by test.sh.

python3 scripts/packages/unpack_image.py "$out"/*-image.tar "$roots/image"
command -v podman > /dev/null || { echo "SKIPPED image: podman is not installed"; return 0; }

# Nothing of the engine outlives the test. The limits are below those of this process, because raising them needs a
# capability that a virtual machine may lack; without groups of its own, the container needs no cgroup version.
mkdir -p "$roots/podman"
cat > "$roots/podman/containers.conf" <<'CONF'
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
CONF
cat > "$roots/podman/storage.conf" <<CONF
[storage]
driver = "vfs"
graphroot = "$roots/podman/storage"
runroot = "$roots/podman/run"
CONF

engine() {
  nsenter --target "$leader" --net --mount --pid --wd="$out" \
    env CONTAINERS_CONF="$roots/podman/containers.conf" CONTAINERS_STORAGE_CONF="$roots/podman/storage.conf" "$@"
}

# Containers end with the first process.
unshare --mount --net --pid --fork --mount-proc --kill-child sleep infinity &
machine=$!
wait_until "the machine starts" find_leader
engine ip link set lo up
# crun refuses a second hierarchy beside version 1.
engine umount /sys/fs/cgroup/unified 2> /dev/null || true
# Podman's names of networks.
engine sh -c 'mkdir -p /run/netns && mount -t tmpfs networks /run/netns'
engine mount -t tmpfs films /srv
engine sh -c "mkdir /srv/films && cp -r '$PWD/media/demo' /srv/films"
{ documented Install; documented Image 1; } > "$roots/commands"
engine sh -eux "$roots/commands" > "$roots/image.log" 2>&1 || { cat "$roots/image.log"; exit 1; }
play image 8080
documented Image 2 > "$roots/commands"
engine sh -eux "$roots/commands" > "$roots/health.log" 2>&1 || { cat "$roots/health.log"; exit 1; }
engine podman stop --time 60 headwater > /dev/null
status=$(engine podman inspect --format '{{.State.ExitCode}}' headwater)
[ "$status" = 0 ] || { echo "FAILED image: exit code $status"; exit 1; }
engine podman rm headwater > /dev/null
end_machine
