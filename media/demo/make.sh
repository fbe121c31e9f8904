#!/bin/sh
# Makes the built-in film: water from its source to the sea, drawn and played by ffmpeg alone.
#
# Three renditions of one video (AVC, 25 frames per second, a closed group of pictures every 2 s,
# key frames at the same times) and two audio tracks. The files are committed, so you need not run
# this script; it documents their content. It needs ffmpeg 5 or later with libx264 and the DejaVu
# fonts, and takes some minutes.
set -eu
cd "$(dirname "$0")"

seconds=48
fonts=${FONTS:-/usr/share/fonts/truetype/dejavu}
thin=$fonts/DejaVuSans-ExtraLight.ttf
mono=$fonts/DejaVuSansMono.ttf

# Draws a sky. Arguments: the colours at the top and at the bottom ("r g b").
sky() {
    set -- $1 $2
    echo "color=black:s=960x1080:r=25:d=0.04,format=rgba,geq=r='$1+($4-$1)*Y/H':g='$2+($5-$2)*Y/H':b='$3+($6-$3)*Y/H':a=255,scale=1920:1080,loop=-1:1:0,setpts=N/25/TB"
}

# A wave twice as wide as the screen with equal halves, so that it can roll forever.
# Height of the swell, crests per screen, colour, opacity. A thin bright line runs along the crest.
wave() {
    crest="(90+$1*sin(2*PI*X*$2/1920)+$1*0.45*sin(2*PI*X*($2+2)/1920+1.7)+$1*0.2*sin(2*PI*X*($2*3+1)/1920+0.6))"
    depth="clip((Y-$crest)/700,0,1)"
    line="70*exp(-pow((Y-$crest-3)/4,2))"
    set -- $3 $4
    echo "color=black:s=3840x1080:r=25:d=0.04,format=rgba,geq=r='clip($1*(1-0.6*$depth)+$line,0,255)':g='clip($2*(1-0.6*$depth)+$line,0,255)':b='clip($3*(1-0.45*$depth)+$line,0,255)':a='$4*clip(Y-$crest+0.5,0,1)',loop=-1:1:0,setpts=N/25/TB"
}

sun="color=black:s=600x600:r=25:d=0.04,format=rgba,geq=r=255:g='236':b='190':a='clip(255*clip(95-hypot(X-300,Y-300),0,1)+150*exp(-hypot(X-300,Y-300)/75)*clip((300-hypot(X-300,Y-300))/90,0,1),0,255)',loop=-1:1:0,setpts=N/25/TB"

# Text that appears at $2 and disappears at $3 seconds, each within 1.2 s.
text() {
    echo "drawtext=fontfile=$4:text='$1':fontsize=$5:fontcolor=white:shadowcolor=black@0.25:shadowx=2:shadowy=2:x=(w-tw)/2:y=$6:enable='between(t,$2,$3)':alpha='clip(min((t-$2)/1.2,($3-t)/1.2),0,1)'"
}

label() {
    echo "drawtext=fontfile=$mono:text='$1':fontsize=h/22:fontcolor=white@0.85:shadowcolor=black@0.4:shadowx=1:shadowy=1:x=h/20:y=h-lh-h/24"
}

# The waves rise from a spring at the bottom of the picture to a sea.
rise="(1-0.5*pow(t/$seconds,0.8))"
graph="
$(sky '22 30 66' '244 158 120') [dawn];
$(sky '20 104 168' '170 224 226'),fade=in:st=10:d=10:alpha=1 [noon];
$(sky '24 18 58' '226 104 122'),fade=in:st=28:d=12:alpha=1 [dusk];
$sun [sun];
$(wave 26 2 '96 150 176' 150) [w1];
$(wave 34 3 '52 122 160' 175) [w2];
$(wave 42 2 '28 92 138' 195) [w3];
$(wave 52 3 '14 62 108' 215) [w4];
$(wave 60 2 '8 36 76' 235) [w5];
[dawn][noon] overlay=format=rgb [s1]; [s1][dusk] overlay=format=rgb [s2];
[s2][sun] overlay=x='160+t*25':y='600-sin(PI*clip(t-1,0,99)/50)*500':format=rgb [o0];
[o0][w1] overlay=x='-mod(t*25,1920)':y='$rise*760-60+10*sin(t*0.7)':format=rgb [o1];
[o1][w2] overlay=x='-1920+mod(t*50,1920)':y='$rise*840-30+12*sin(t*0.8+1)':format=rgb [o2];
[o2][w3] overlay=x='-mod(t*75,1920)':y='$rise*900+14*sin(t*0.9+2)':format=rgb [o3];
[o3][w4] overlay=x='-1920+mod(t*100,1920)':y='$rise*940+60+16*sin(t*1.0+3)':format=rgb [o4];
[o4][w5] overlay=x='-mod(t*150,1920)':y='$rise*960+150+18*sin(t*1.1+4)':format=rgb [o5];
[o5] trim=duration=$seconds,
$(text 'Headwater' 0.4 9 "$thin" 190 h*0.27),
$(text 'from the source to every screen' 1.6 9 "$thin" 52 h*0.50),
$(text 'the spring' 12 19 "$thin" 110 h*0.16),
$(text 'the river' 24 31 "$thin" 110 h*0.16),
$(text 'the sea' 36 45 "$thin" 110 h*0.16),
fade=in:st=0:d=0.6,fade=out:st=46.5:d=1.5,
drawtext=fontfile=$mono:text='%{pts\:hms}':fontsize=h/22:fontcolor=white@0.85:shadowcolor=black@0.4:shadowx=1:shadowy=1:x=w-tw-h/20:y=h-lh-h/24,
format=yuv420p,setsar=1,split=3 [a][b][c];
[a] scale=320:180:flags=lanczos,$(label 180p) [v180];
[b] scale=640:360:flags=lanczos,$(label 360p) [v360];
[c] scale=960:540:flags=lanczos,$(label 540p) [v540]"

picture() { # height, kbit/s, profile
    echo "-map [v$1] -c:v libx264 -preset slower -refs 4 -profile:v $3 -b:v ${2}k -maxrate $(($2 * 3 / 2))k -bufsize $(($2 * 3))k -g 50 -keyint_min 50 -sc_threshold 0 -flags +cgop -color_primaries bt709 -color_trc bt709 -colorspace bt709 -video_track_timescale 12800 -movflags +faststart -map_metadata -1 -fflags +bitexact -flags:v +bitexact+cgop video-$1p.mp4"
}

# A chord every 4 s and a slow melody over it, from sines that swell and fade.
# Chord roots and melody notes in Hz, one every 4 s and every 1 s.
pick() { # variable, list → a nested if()
    expr=0
    count=0
    for value in $2; do count=$((count + 1)); done
    index=$count
    for value in $(echo "$2" | tr ' ' '\n' | tac); do
        index=$((index - 1))
        expr="if(eq($1,$index),$value,$expr)"
    done
    echo "$expr"
}
tone() { # chord roots, melody, language, title
    bar="mod(floor(t/4),4)"
    beat="mod(floor(t),16)"
    ring="(1-exp(-30*mod(t,1)))*exp(-2.2*mod(t,1))"
    swell="pow(sin(PI*mod(t,4)/4),0.6)"
    root="st(0,$(pick "$bar" "$1"))"
    note="st(1,$(pick "$beat" "$2"))"
    voice() { # detuning for width between left and right
        echo "$root*0+$note*0+0.09*$swell*(sin(2*PI*ld(0)*$1*t)+0.7*sin(2*PI*ld(0)*1.5*t)+0.4*sin(2*PI*ld(0)*2*$1*t))+0.13*$ring*(sin(2*PI*ld(1)*$1*t)+0.3*sin(4*PI*ld(1)*t))"
    }
    ffmpeg -v error -y -f lavfi -i "aevalsrc='$(voice 1)|$(voice 1.002)':s=48000:d=$seconds" \
        -af "aecho=0.8:0.6:220|370:0.3|0.2,lowpass=f=5000,afade=in:d=1,afade=out:st=45:d=3,atrim=end=$seconds" \
        -c:a aac -b:a 48k -metadata:s:a:0 language="$3" -metadata:s:a:0 handler_name="$4" \
        -movflags +faststart -fflags +bitexact -flags:a +bitexact "audio-$3.m4a"
}
tone "130.81 110.00 174.61 98.00" \
    "523.25 659.25 783.99 659.25 440 523.25 659.25 523.25 698.46 587.33 523.25 440 587.33 493.88 392 493.88" eng English
tone "110.00 87.31 130.81 82.41" \
    "440 523.25 659.25 880 698.46 523.25 440 523.25 783.99 659.25 523.25 392 659.25 493.88 415.3 493.88" fra Français

# shellcheck disable=SC2046  # the options are words on purpose
ffmpeg -v error -stats -y -filter_complex "$graph" \
    $(picture 180 52 main) $(picture 360 110 main) $(picture 540 210 high)
du -cb -- *.mp4 *.m4a
