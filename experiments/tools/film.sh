#!/bin/sh
# film.sh SECONDS [VIDEO_KBPS [AUDIO_KBPS]]: creates document 2's film in this folder. Video (24 frames per
# second) and audio are CMAF files with fragments of 2 s, with index MP4s and the server manifest film.ism.
# It encodes twenty seconds and repeats their packets, so a long film takes only seconds.
set -eu
seconds=$1 picture=${2:-3894} sound=${3:-132} loop=20
ask() { ffmpeg -nostdin -hide_banner -loglevel error -y "$@"; }
ask -f lavfi -i "testsrc2=size=640x360:rate=24:duration=$loop" -c:v libx264 -preset ultrafast -g 48 \
  -b:v "${picture}k" -minrate "${picture}k" -maxrate "${picture}k" -bufsize "${picture}k" \
  -x264-params nal-hrd=cbr picture.mp4
ask -f lavfi -i "aevalsrc=random(0)/3:sample_rate=48000:duration=$loop" -c:a aac -b:a "${sound}k" sound.mp4
repeat() {
  from=$1 to=$2
  shift 2
  ask -stream_loop $(((seconds + loop - 1) / loop - 1)) -i "$from" -t "$seconds" -c copy \
    -movflags +cmaf+frag_keyframe+empty_moov+default_base_moof "$@" -f mp4 "$to"
}
repeat picture.mp4 video.cmfv
repeat sound.mp4 audio.cmfa -frag_duration 2000000
rm picture.mp4 sound.mp4
headwater index audio.cmfa video.cmfv -o . --name film >/dev/null
