#!/bin/sh
# share.sh PERCENT COMMAND…: runs a command with at most PERCENT of one processor (a control group with a quota, as a
# small cloud instance has). 100 means no limit.
set -eu
percent=$1
shift
[ "$percent" -lt 100 ] || exec "$@"
if [ -w /sys/fs/cgroup/cgroup.subtree_control ]; then
  top=/sys/fs/cgroup
  echo +cpu >$top/cgroup.subtree_control
else
  top=/sys/fs/cgroup/cpu
fi
# Groups of earlier runs; those with processes cannot be removed.
rmdir $top/headwater-share-* 2>/dev/null || true
group=$top/headwater-share-$$
mkdir "$group"
# A period of 10 ms: with the default of 100 ms, responses would wait for up to 90 ms.
if [ -e "$group/cpu.max" ]; then
  echo "$((percent * 100)) 10000" >"$group/cpu.max"
else
  echo 10000 >"$group/cpu.cfs_period_us"
  echo $((percent * 100)) >"$group/cpu.cfs_quota_us"
fi
echo $$ >"$group/cgroup.procs"
exec "$@"
