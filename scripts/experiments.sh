#!/usr/bin/env bash
# Runs experiments (all, or those named) at --scale small, or $SCALE, and writes their reports into
# docs/results: ID where it is small, ID-SCALE where it is not. Runs that were made before are gone on
# from: remove target/results to begin anew.
set -uo pipefail
cd "$(dirname "$0")/.."
headwater=${HEADWATER:-target/release/headwater}
scale=${SCALE:-small}
if [ $# -eq 0 ]; then set -- experiments/*.toml; fi
short=
mkdir -p target/results
for file in "$@"; do
  id=$(basename "$file" .toml)
  if grep -q "^\[scale\.$scale\]" "$file"; then size="--scale $scale"; else size=; fi
  [ -z "$size" ] || [ "$scale" = small ] || id=$id-$scale
  out=target/results/$id
  printf '\n== %s ==\n' "$id"
  # A document that has changed since begins anew.
  if [ -e "$out/document.toml" ] && ! cmp -s "$file" "$out/document.toml"; then rm -r "$out"; fi
  rm -f "$out"/report.*
  # shellcheck disable=SC2086
  "$headwater" lab run "$file" --out "$out" $size > "$out.said" 2>&1
  status=$?
  # What was found stands at the report's head.
  [ ! -e "$out/report.md" ] || sed -n '3,/^The question/{/^The question/!p}' "$out/report.md"
  [ $status -le 1 ] || tail -n 3 "$out.said"
  # A finding that is not repeated is a result too; what was not measured is none.
  if [ -e "$out/report.json" ] && [ $status -le 1 ]; then
    mkdir -p "docs/results/$id"
    cp "$out"/report.{html,md,json} "docs/results/$id/"
  else
    short="$short $id"
  fi
done
"$headwater" lab index docs/results > target/results/index.said || short="$short the index"
[ -z "$short" ] || { echo "not measured:$short"; exit 1; }
