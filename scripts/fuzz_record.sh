#!/usr/bin/env bash
# Adds a run to fuzz/record.tsv: seconds and inputs are summed, and the largest coverage is retained.
#
#   scripts/fuzz_record.sh TARGET SECONDS INPUTS EDGES
set -euo pipefail
cd "$(dirname "$0")/.."
record=fuzz/record.tsv
[ -s "$record" ] || printf 'target\tseconds\tinputs\tedges\n' > "$record"
{
  head -n 1 "$record"
  {
    tail -n +2 "$record"
    printf '%s\t%s\t%s\t%s\n' "$@"
  } | awk -F '\t' -v OFS='\t' '
    { seconds[$1] += $2; inputs[$1] += $3; if ($4 + 0 > edges[$1] + 0) edges[$1] = $4 }
    END { for (target in seconds) print target, seconds[target], inputs[target], edges[target] }' | sort
} > "$record.new"
# Written in place: the caller holds a lock on the file.
cat "$record.new" > "$record"
rm "$record.new"
