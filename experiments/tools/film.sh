#!/bin/sh
# film.sh SECONDS [PICTURE_KBPS [SOUND_KBPS]]: document 2's film in this folder, in seconds: 24 pictures a
# second and sound, each a CMAF file of 2 s fragments, with index MP4s and the server manifest film.ism.
# Twenty seconds are encoded; the rest is the same again, without encoding.
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
