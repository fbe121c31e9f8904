#!/usr/bin/env bash
# Runs all or some experiments at --scale small, or $SCALE, and writes their reports to docs/results/ID, or
# ID-SCALE for other scales. Continues earlier runs; delete target/results to start from scratch.
set -uo pipefail
cd "$(dirname "$0")/.."
headwater=${HEADWATER:-target/release/headwater}
scale=${SCALE:-small}
if [ $# -eq 0 ]; then set -- experiments/*.toml; fi
failed=
mkdir -p target/results
for file in "$@"; do
  id=$(basename "$file" .toml)
  if grep -q "^\[scale\.$scale\]" "$file"; then size="--scale $scale"; else size=; fi
  [ -z "$size" ] || [ "$scale" = small ] || id=$id-$scale
  out=target/results/$id
  printf '\n== %s ==\n' "$id"
  # A changed document invalidates its earlier runs.
  if [ -e "$out/document.toml" ] && ! cmp -s "$file" "$out/document.toml"; then rm -r "$out"; fi
  rm -f "$out"/report.*
  # shellcheck disable=SC2086
  "$headwater" lab run "$file" --out "$out" $size > "$out.log" 2>&1
  status=$?
  # The findings are at the start of the report.
  [ ! -e "$out/report.md" ] || sed -n '3,/^Question/{/^Question/!p}' "$out/report.md"
  [ $status -le 1 ] || tail -n 3 "$out.log"
  # A finding that was not reproduced is a result too; a failed measurement is not.
  if [ -e "$out/report.json" ] && [ $status -le 1 ]; then
    mkdir -p "docs/results/$id"
    # The records reproduce the report; the list of reports reads report.json.gz.
    cp "$out/document.toml" "$out/machine.jsonl" "$out/runs.jsonl.zst" "docs/results/$id"
    gzip -9 -n -c "$out/report.json" > "docs/results/$id/report.json.gz"
    "$headwater" lab report "docs/results/$id" > "$out.said" || short="$short $id"
    rm -f "docs/results/$id/report.html" "docs/results/$id/report.json"
  else
    failed="$failed $id"
  fi
done
"$headwater" lab index docs/results > target/results/index.log || failed="$failed index"
[ -z "$failed" ] || { echo "not measured:$failed"; exit 1; }
