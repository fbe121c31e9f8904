#!/usr/bin/env bash
# Fetches NBMP documents into target/nbmp: samples of nagare media's engine and models (Apache-2.0), pinned
# by commit and checked by hash. They are never committed. Without them, their test reports SKIPPED.
set -uo pipefail
cd "$(dirname "$0")/.."
[ -d target/nbmp ] && exit 0
partial=target/nbmp.partial
rm -rf "$partial"
mkdir -p "$partial"
engine=https://raw.githubusercontent.com/nagare-media/engine/f32f69cd361b4919498fb092dccbfde0bcd9844f
models=https://raw.githubusercontent.com/nagare-media/models.go/aa5c57709a7337581c1f71a81157b2003744a96b

while read -r sum name from; do
  curl -fsSL --max-time 30 -o "$partial/$name" "$from" 2>/dev/null &&
    sha256sum --check --status <<< "$sum  $partial/$name" && continue
  rm -rf "$partial"
  echo "SKIPPED external NBMP documents could not be fetched" >&2
  exit 0
done << EOT
d18789a58b4906af4d7b5ac6c1e1e90c377ea9cdd99bc5d3c6a5af45d28b2ff9 data-copy.tdd $engine/config/samples/nbmp/tasks/v2_nbmp_data-copy.tdd
a563ddd2da4bef116d64451453f3cc696cb380393afc8f0ff35772cde8d50617 general-sleep.tdd $engine/config/samples/nbmp/tasks/v2_nbmp_general-sleep.tdd
0aefecc3d45a4f99300c71166fd6a8dfe67490f088b4ee466f66a1f9eb1b27e0 media-generate-testpattern.tdd $engine/config/samples/nbmp/tasks/v2_nbmp_media-generate-testpattern.tdd
53286e1ff9369985715c35a33dd2e1af92d87afd1ef2c092a4b317e38205c3ca live.wdd $engine/config/samples/nbmp/workflows/v2_nbmp_live.wdd
3de112255a0e012c7b2fe5dfdfaf49e274544205d230c83b90742615fb28725e sleep.wdd $engine/config/samples/nbmp/workflows/v2_nbmp_sleep.wdd
1b7376575b4507b094eb3e57cab2f63a839f1d8bc497ee952e6af54af53d5221 01-minimal-ladder.wdd $engine/docs/mmsys-2025-example-self-adaptation/01-minimal-ladder.wdd
3b64817b33efb144d4bee1123f9a5d455c1397aa2c9f3b85e6cc35697b40cd89 02-maximal-ladder.wdd $engine/docs/mmsys-2025-example-self-adaptation/02-maximal-ladder.wdd
6d6e6b063e1262c7c57fdc8b7d21637d08009dba9f277078fd45ecc69c6ed02d 03-adaptation.wdd $engine/docs/mmsys-2025-example-self-adaptation/03-adaptation.wdd
13f953d9d7f6b6d1e815c8933f46f6300b50aaf65aada63c9e365f52fb5ccede models-live.wdd $models/iso/nbmp/v2/testdata/nagare/v2_nbmp_live.wdd
012557c6a67a5aa4d9454b0cca36203cde2119e0409ceb267a3f582edb5e4d25 models-vod.wdd $models/iso/nbmp/v2/testdata/nagare/v2_nbmp_vod.wdd
EOT
mv "$partial" target/nbmp
