#!/usr/bin/env bash
# Installs the commit-message check as this clone's commit-msg hook. Does nothing when it is there,
# and leaves a hook that somebody else wrote alone.
set -euo pipefail
cd "$(dirname "$0")/.."
# An unpacked archive is not a repository, and needs no hook.
hook=$(git rev-parse --git-path hooks/commit-msg 2>/dev/null) || exit 0
# With core.hooksPath, the hooks may belong to every clone of this user.
case $hook in "$(git rev-parse --git-common-dir)"/*) ;; *)
  echo "SKIPPED commit-msg hook: core.hooksPath is set; call scripts/commit-msg from $hook" >&2
  exit 0
  ;;
esac
marker='# Calls scripts/commit-msg of the checked-out Headwater tree.'

if [ -e "$hook" ] || [ -L "$hook" ]; then
  grep -qsF "$marker" "$hook" ||
    echo "SKIPPED commit-msg hook: $hook exists; call scripts/commit-msg from it" >&2
  exit 0
fi
mkdir -p "$(dirname "$hook")"
# The hook calls the tree's own script, so that it never has to be updated. A commit from before
# the script existed has nothing to call.
cat > "$hook" << EOT
#!/bin/sh
$marker
check=\$(git rev-parse --show-toplevel)/scripts/commit-msg
[ ! -x "\$check" ] || exec "\$check" "\$@"
EOT
chmod +x "$hook"
