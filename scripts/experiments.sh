#!/usr/bin/env bash
# Runs experiments and writes their reports to docs/results/ID, and docs/findings.md. Continues earlier runs; delete
# target/results to start from scratch.
#
#   scripts/experiments.sh [FILE…]              all or some documents at --scale small, or $SCALE
#   scripts/experiments.sh --run ID…            runs of experiments/claims/claims.toml, such as connections-source
#   scripts/experiments.sh --for 40min …        the same, but starts no run that would end later
#
# A slice (--for) that is over exits with 4. Repeat the same command for the next slice, and commit docs/ between them.
set -uo pipefail
cd "$(dirname "$0")/.."
headwater=${HEADWATER:-target/release/headwater}
claims=experiments/claims/claims.toml
began=$SECONDS seconds=
if [ "${1:-}" = --for ]; then
  case ${2:-} in
    *min) seconds=$((${2%min} * 60)) ;;
    *s) seconds=${2%s} ;;
    *) echo "experiments.sh: --for needs a time such as 40min or 90s" >&2; exit 2 ;;
  esac
  shift 2
fi

# Most experiments start the servers of baselines/. Without them, their runs would only be discarded.
scripts/baselines.sh && cargo build --quiet --release --locked -p baselines || exit 1

failed='' missing=''
mkdir -p target/results

# run ID FILE [SCALE]
run() {
  local id=$1 file=$2 out=target/results/$1 limit='' size='' status
  [ -z "${3:-}" ] || size="--scale $3"
  if [ -n "$seconds" ]; then
    [ $((seconds - SECONDS + began)) -gt 0 ] || { missing="$missing $id"; return; }
    limit="--for $((seconds - SECONDS + began))s"
  fi
  printf '\n== %s ==\n' "$id"
  # Runs of a changed document do not continue. They took long, so they are kept.
  if [ -e "$out/document.toml" ] && ! cmp -s "$file" "$out/document.toml"; then mv "$out" "$out.$(date +%s)"; fi
  rm -f "$out"/report.*
  # shellcheck disable=SC2086
  "$headwater" lab run "$file" --out "$out" $size $limit > "$out.log" 2>&1
  status=$?
  [ $status -ne 4 ] || missing="$missing $id"
  # The findings are at the start of the report.
  [ ! -e "$out/report.md" ] || sed -n '3,/^Question/{/^Question/!p}' "$out/report.md"
  case $status in 0 | 1 | 4) ;; *) tail -n 3 "$out.log" ;; esac
  # A finding that was not reproduced is a result too; a failed measurement is not.
  if [ -e "$out/report.json" ] && [ -e "$out/runs.jsonl.zst" ]; then publish "$id" "$out"; else failed="$failed $id"; fi
}

# publish ID FOLDER: the records reproduce the report; the list of reports reads report.json.gz.
publish() {
  mkdir -p "docs/results/$1"
  cp "$2/document.toml" "$2/machine.jsonl" "$2/runs.jsonl.zst" "docs/results/$1"
  gzip -9 -n -c "$2/report.json" > "docs/results/$1/report.json.gz"
  "$headwater" lab report "docs/results/$1" > "$2.said"
  rm -f "docs/results/$1/report.html" "docs/results/$1/report.json"
  # The book lists every page.
  grep -q "(results/$1/report.md)" docs/SUMMARY.md ||
    sed -i "/(results\/README.md)/a\\  - [$(sed -n '1s/^# //p' "docs/results/$1/report.md") ($1)](results/$1/report.md)" docs/SUMMARY.md
}

# planned ID: prints the document and the scale of a run of the catalogue.
planned() {
  python3 - "$claims" "$1" <<'END'
import pathlib, sys, tomllib
file, name = sys.argv[1:]
runs = tomllib.loads(pathlib.Path(file).read_text())["run"]
run = next((run for run in runs if run["id"] == name), None)
if run is None:
    sys.exit(f"experiments.sh: {file} has no run {name}; it has {', '.join(run['id'] for run in runs)}")
print((pathlib.Path(file).parent / run["experiment"]).resolve().relative_to(pathlib.Path.cwd()), run.get("scale", ""))
END
}

if [ "${1:-}" = --run ]; then
  shift
  for id in "$@"; do
    plan=$(planned "$id") || exit 2
    # shellcheck disable=SC2086
    run "$id" $plan
  done
else
  scale=${SCALE:-small}
  if [ $# -eq 0 ]; then set -- experiments/*.toml; fi
  for file in "$@"; do
    id=$(basename "$file" .toml)
    if ! grep -q "^\[scale\.$scale\]" "$file"; then run "$id" "$file"
    elif [ "$scale" = small ]; then run "$id" "$file" small
    else run "$id-$scale" "$file" "$scale"; fi
  done
fi
"$headwater" lab index docs/results > target/results/index.log || failed="$failed index"
"$headwater" lab findings docs/results/* --out docs/findings.md || failed="$failed findings"
[ -z "$failed" ] || { echo "not measured:$failed"; exit 1; }
[ -z "$missing" ] || { echo "runs are missing; repeat the command:$missing"; exit 4; }
