#!/bin/sh
# Makes the first corpus from tiny files. Needs ffmpeg; run it in this folder.
set -eu
out=corpus/indexer
mkdir -p "$out"
run() { ffmpeg -hide_banner -loglevel error -y -bitexact "$@"; }
video="-f lavfi -i testsrc=size=32x32:rate=10:duration=0.6"
audio="-f lavfi -i sine=frequency=440:sample_rate=8000:duration=0.4"
avc="-c:v libx264 -preset ultrafast -threads 1"
src=$(mktemp -d)
run $video $audio $avc -bf 1 -g 3 -c:a aac -b:a 8k "$src/src.mp4"
copy() { name=$1; shift; run -i "$src/src.mp4" -c copy "$@" "$out/$name"; }
copy plain.mp4
copy fast.mp4 -movflags +faststart
copy moof-base.mp4 -movflags frag_keyframe+empty_moov+default_base_moof
copy absolute.mp4 -movflags frag_keyframe+empty_moov
copy implicit.mp4 -movflags frag_keyframe+empty_moov+omit_tfhd_offset
copy hybrid.mp4 -movflags frag_keyframe
copy cmaf.mp4 -movflags cmaf+frag_keyframe
copy dash.mp4 -movflags dash+frag_keyframe+global_sidx
copy quick.mov -f mov
run -ss 0.3 -i "$src/src.mp4" -c copy "$out/trim.mp4"
run $audio -c:a ac3 -b:a 32k -ar 32000 "$out/ac3.mp4"
run $audio -c:a libopus -b:a 8k "$out/opus.mp4"
run $audio -c:a pcm_s16le -t 0.05 "$out/pcm.mov"
run $video -c:v libvpx-vp9 -b:v 10k -t 0.3 "$out/vp9.mp4"
run $video -c:v libx265 -preset ultrafast -x265-params log-level=0 -t 0.3 -tag:v hvc1 "$out/hevc.mp4"
rm -r "$src"
# Boxes are parsed from their bodies: one seed for each kind of box that the files hold.
python3 - <<'PYTHON'
import pathlib, struct
inside = {b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl", b"mvex", b"moof", b"traf"}
seeds = {}
def walk(data):
    while len(data) >= 8:
        size, name = struct.unpack(">I4s", data[:8])
        if size < 8:
            return
        body, data = data[8:size], data[size:]
        if name in inside:
            walk(body)
        if name != b"mdat" and len(body) < 4000:
            seeds.setdefault(name, body)
for file in sorted(pathlib.Path("corpus/indexer").glob("*.m[op][4v]")):
    walk(file.read_bytes())
out = pathlib.Path("corpus/boxes")
out.mkdir(exist_ok=True)
for name, body in seeds.items():
    (out / name.decode("latin-1").strip()).write_bytes(body)
PYTHON
