#!/bin/sh
# Creates the first corpus from tiny files. Needs ffmpeg. Run it in this folder.
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
# Boxes are parsed from their bodies: one seed for each kind of box in the files.
python3 - <<'PYTHON'
import pathlib, struct, subprocess, tempfile
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

# Index MP4s of other tools: the moov with a name in dref, and the length of the media.
def named(data, name):
    made = b""
    while len(data) >= 8:
        size, kind = struct.unpack(">I4s", data[:8])
        body, data = data[8:size], data[size:]
        if kind in inside:
            body = named(body, name)
        if kind == b"dref":
            body = body[:8] + struct.pack(">I4sI", 12 + len(name), b"url ", 0) + name
        made += struct.pack(">I4s", 8 + len(body), kind) + body
    return made

out = pathlib.Path("corpus/references")
out.mkdir(exist_ok=True)
for file in sorted(pathlib.Path("corpus/indexer").glob("*.m[op][4v]")):
    data, at, kept = file.read_bytes(), 0, b""
    while at + 8 <= len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        size = size or len(data) - at
        if kind in (b"ftyp", b"moov"):
            kept += data[at : at + size]
        at += size
    seed = named(kept, b"../media/" + file.name.encode() + b"\0")
    (out / file.stem).write_bytes(seed + struct.pack("<Q", len(data)))

# Our own index MP4s, with a source record: a hash of the media's bytes, or of its entity tag.
binary = pathlib.Path("../target/release/headwater")
if binary.exists():
    with tempfile.TemporaryDirectory() as made:
        for name in ("opus.mp4", "trim.mp4"):
            film = pathlib.Path("corpus/indexer", name)
            subprocess.run([binary, "index", film, "-o", made, "--base", "http://h/"], check=True, stdout=subprocess.DEVNULL)
            seed = pathlib.Path(made, film.stem + "-index.mp4").read_bytes()
            length = struct.pack("<Q", film.stat().st_size)
            # After size, kind, name, version and three words of the last box.
            at = seed.rindex(b"uuid") + 4 + 16 + 1 + 24
            (out / f"{film.stem}-marked").write_bytes(seed + length)
            (out / f"{film.stem}-tagged").write_bytes(seed[:at] + b"\2" + seed[at + 1 :] + length)

def smil(*tracks):
    return "<smil><body><switch>" + "".join(tracks) + "</switch></body></smil>"

def track(kind, src, number):
    return f'<{kind} src="{src}" systemLanguage="eng"><param name="trackID" value="{number}"/></{kind}>'

out = pathlib.Path("corpus/ism")
out.mkdir(exist_ok=True)
texts = [
    smil(track("video", "a.mp4", 1), track("audio", "b%20c.mp4", 2), track("textstream", "t.cmft", 1)),
    smil(track("video", "https://media.example.com/films/a.mp4", 1)),
    smil(track("video", "http://127.0.0.1:8080/%2e%2e/a.mp4", 1)),
    smil("<seq>" + track("video", "a.mp4", 1) * 2 + "</seq>"),
    "<?xml version='1.0'?><!-- x --><s:smil xmlns:s='y'><s:body><s:video src='&amp;.mp4'/></s:body></s:smil>",
    "../a.mp4\n%2e%2e/a.mp4\nfile:///etc/passwd\n//host/a.mp4\n/a.mp4\nHTTPS://Media.Example.com:443/films/x/../a.mp4",
    "https://media.example.com@evil.example/films/a.mp4\nhttp://127.0.0.1:8080\nhttps://media.example.com/films/..%2fa",
]
for n, text in enumerate(texts):
    (out / f"text{n}").write_text(text)
    (out / f"wide{n}").write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))

# Samples of NAL units, cut into batches; and lengths past the end of a sample or of the file.
out = pathlib.Path("corpus/ts")
out.mkdir(exist_ok=True)
def stream(field, most, nals, offset=0, hevc=0, cut=0):
    rows, film = b"", bytes(offset)
    for n, sample in enumerate(nals):
        body = b"".join(len(nal).to_bytes(field, "big") + nal for nal in sample)
        flags = (n % 3 == 0) * 4 | (n % 2) * 3 | (n % 4) << 3
        film += bytes((n % 2) * 3) + body
        rows += struct.pack("<HBB", len(body), 7 + 200 * (n == 2), flags)
    head = struct.pack("<BHBB", field - 1 | hevc * 4, most, len(nals), offset)
    return head + rows + film[: len(film) - cut]
slices = [[b"\x65" + b"i" * 400], [b"\x41" + b"p" * 90], [b"\x01b"], [], [b"\x41" + b"p" * 183]]
inband = [[b"\x09\xf0", b"\x67\x64", b"\x68\xeb", b"\x65" + b"i" * 30], [b"\x09\x10", b"\x65i"], [b"", b"\x41p", b""]]
small = [[b"\x41"] * 200, [b"\x41\x01"] * 99]
for name, seed in {
    "none": stream(4, 0, []), "nothing": stream(4, 9, [[], [], []]),
    **{f"slices{most}": stream(4, most, slices) for most in (0, 1, 100, 500, 65535)},
    **{f"field{field}": stream(field, 64, small, 5) for field in (1, 2, 3, 4)},
    **{f"inband{field}": stream(field, 20, inband) for field in (2, 4)},
    "hevc": stream(4, 50, [[b"\x46\x01\x50", b"\x26\x01i"], [b"\x42\x01s", b"\x26\x01i"]], hevc=1),
    "short": stream(4, 100, slices, cut=5), "past": stream(4, 100, slices)[:-184] + b"\xff" * 184,
}.items():
    (out / name).write_bytes(seed)

out = pathlib.Path("corpus/kept")
out.mkdir(exist_ok=True)
harms = [b"", b"\0\0\0", b"\x05\0\x08", b"\x18\0\x03", b"\xff\xff\x08", b"\x30\0\x09", b"\0\0\0" * 2]
for n, harm in enumerate(harms):
    head = bytes([4, 3, 20, len(harm)])
    (out / f"harm{n}").write_bytes(head + b"film" + b"\x01\x02\x03" + b"v" * 20 + harm)
    (out / f"plain{n}").write_bytes(b"HWkept\0\x01" + harm * 9)
PYTHON
# Manifests: those of ffmpeg, and one for each feature that the parsers support.
out=$(pwd)/corpus
mkdir -p "$out/hls" "$out/mpd"
src=$(mktemp -d)
both="$video $audio $avc -g 5 -c:a aac -b:a 8k -t 0.6"
(
  cd "$src"
  run $both -f hls -hls_time 0.2 -hls_playlist_type vod ts.m3u8
  run $both -f hls -hls_time 0.2 -hls_playlist_type vod -hls_segment_type fmp4 fmp4.m3u8
  run $both -f hls -hls_time 0.2 -hls_playlist_type vod -hls_flags single_file single.m3u8
  run $both -f hls -hls_time 0.2 -hls_segment_type fmp4 -var_stream_map "a:0,agroup:a v:0,agroup:a" -master_pl_name master.m3u8 v%v.m3u8
  run $both -f dash -seg_duration 0.2 timeline.mpd
  run $both -f dash -seg_duration 0.2 -use_timeline 0 number.mpd
  run $both -f dash -seg_duration 0.2 -use_template 0 list.mpd
  run $both -f dash -seg_duration 0.2 -single_file 1 single.mpd
  cp ./*.m3u8 "$out/hls"
  cp ./*.mpd "$out/mpd"
)
rm -r "$src"
python3 - <<'PYTHON'
import pathlib, struct
hls = {
    "range": "#EXTM3U\n#EXT-X-MAP:URI=\"f\",BYTERANGE=\"9@0\"\n#EXTINF:2\n#EXT-X-BYTERANGE:5@9\nf\n#EXTINF:2\n#EXT-X-BYTERANGE:5\nf\n#EXT-X-ENDLIST\n",
    "define": "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"\n#EXT-X-DEFINE:QUERYPARAM=\"x\"\n#EXTINF:2\n{$a}{$x}\n",
    "groups": "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"a\",LANGUAGE=\"en\"\n#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO=\"a\",RESOLUTION=1x2,FRAME-RATE=25.0,CODECS=\"avc1,mp4a\"\nv\n",
    "live": "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY\n#EXTINF:2.002,\n../x/a.ts?b#c\n",
    "gap": "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-GAP\n#EXTINF:2.5,t\na\n#EXT-X-I-FRAMES-ONLY\n",
}
for name, text in hls.items():
    pathlib.Path("corpus/hls", name).write_text(text)
def mpd(inside, period="", sets=""):
    return f"<MPD mediaPresentationDuration='PT9S'><BaseURL>b/</BaseURL><Period{period}><AdaptationSet contentType='video' lang='en'{sets}>{inside}<Representation id='v' bandwidth='9' width='2' height='2' frameRate='25/1'/></AdaptationSet></Period></MPD>"
sidx = struct.pack(">I4s10I", 48, b"sidx", 0, 1, 1000, 0, 0, 1, 400, 2000, 1 << 31, 0)
docs = {
    "timeline": mpd("<SegmentTemplate timescale='9' media='$Time$' initialization='$RepresentationID$'><SegmentTimeline><S t='0' d='9' r='2'/><S d='9' r='-1'/></SegmentTimeline></SegmentTemplate>").encode(),
    "number": mpd("<SegmentTemplate duration='2' startNumber='3' endNumber='5' media='$Number%03d$-$Bandwidth$'/>").encode(),
    "list": mpd("<SegmentList duration='3'><Initialization range='0-9'/><SegmentURL media='a' mediaRange='10-19'/></SegmentList>").encode(),
    "base": mpd("<SegmentBase timescale='1000' presentationTimeOffset='5' indexRange='9-56'><Initialization range='0-8'/></SegmentBase>").encode() + b"<!--" + sidx,
    "periods": mpd("", " duration='PT1S'").replace("</MPD>", "<Period start='PT1S'><AdaptationSet mimeType='video/mp4'><Representation id='w'/></AdaptationSet></Period></MPD>").encode(),
    "trick": mpd("<EssentialProperty schemeIdUri='http://dashif.org/guidelines/trickmode'/>").encode(),
    "entities": b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><x:MPD xmlns:x='y'><!-- z --><![CDATA[d]]>&amp;&#65;&b;</x:MPD>",
}
for name, data in docs.items():
    pathlib.Path("corpus/mpd", name).write_bytes(data)
fresh = {
    "plain": b"\x00\x64\x00\x01Cache-Control: max-age=60\nETag: \"a\"\nDate: Tue, 14 Nov 2023 22:13:20 GMT\n\nCache-Control: max-stale=5, min-fresh=3",
    "stale": b"\x00\x64\x00\x05Cache-Control: max-age=60, stale-while-revalidate=99999, stale-if-error=9\nAge: 7\n\nCache-Control: max-stale",
    "targeted": b"\x00\x64\x01\x00CDN-Cache-Control: max-age=9;a=b, must-revalidate=?0\nCache-Control: no-store\n\nPragma: no-cache",
    "guessed": b"\x00\x64\x00\x00Last-Modified: Mon, 13 Nov 2023 22:13:20 GMT\nExpires: 0",
    "lost": b"\x01\x30\x00\x00Expires: Tue, 14 Nov 2023 23:13:20 GMT\nVary: a, b\n\nCache-Control: only-if-cached",
    "secret": b"\x00\x64\x01\x00Cache-Control: s-maxage=9, private=\"a, b\"\nSet-Cookie: a=b",
}
cmcd = {
    "query": b"CMCD=bl%3D21300%2Csid%3D%226e2f%22%2Cbr%3D3200%2Csu%2Cnor%3D%22..%252F2%22",
    "header": b"\nbl=21300,mtp=48100,su,ot=v,tb=(3200;v 1200;a)",
    "event": b"br=(3000;v 128;a),cid=\"a, b\",e=ps,ec=(\"E)1\" \"E 2\"),msd=421,nr,sid=\"s\\\"1\",sta=p,ts=1790000000123,v=2\ne=e,v=2,nor=(\"../2\";r=\"0-9\"),bg=?0",
    "broken": b"CMCD=%3D%2C%22%5C%22%zz&CMCD=x\n=,a=\"b,c=1e999,d=-0,e=(",
}
shelved = {
    "written": bytes([2, 5, 4]) + b"/aall afHEAD",
    "flipped": bytes([2, 0, 1]) + b"/ax" + bytes([9, 0, 3, 40, 0, 7]),
    "magic": b"HWobj\0\0\x01" + bytes(32) + bytes(64),
    "long": b"HWobj\0\0\x01" + b"\xff" * 12 + bytes(4) + bytes(16),
}
request = {
    "plain": b"\0GET /film/1.m4s?CMCD=bl%3D100&a=b HTTP/1.1\r\nHost: edge\r\nRange: bytes=0-99, -5\r\nIf-None-Match: \"v1\"\r\n\r\n",
    "whole": b"\1GET http://Other:81/a HTTP/1.1\r\nHost: edge\r\nCookie: a=b\r\nX-Tenant: t\r\nConnection: close, X-Tenant\r\n\r\n",
    "body": b"\0POST /a HTTP/1.1\r\nHost: edge\r\nTransfer-Encoding: chunked\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n3\r\nabc\r\n0\r\n\r\nHEAD /b HTTP/1.0\r\n\r\n",
    "loop": b"\1GET * HTTP/1.1\r\nHost: a\r\nHost: b\r\nCDN-Loop: headwater-1\r\nTransfer_Encoding: x\r\nExpect: 100-continue\r\n\r\n",
    "dates": b"\0GET / HTTP/1.1\r\nHost: a\r\nIf-Range: Tue, 14 Nov 2023 22:13:20 GMT\r\nRange: bytes=1-1,2-2\r\nIf-Modified-Since: x\r\nAccept-Language: \xff\r\n\r\n",
}
answer = {
    "plain": b"\0HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nVary: Accept, Origin\r\n\r\nhello",
    "chunks": b"\1HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\nConnection: X-Named\r\nX-Named: a\r\nCache-Control: max-age=60\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: z\r\n\r\n",
    "cut": b"\0HTTP/1.1 200 OK\r\nContent-Length: 9\r\nCache-Control: s-maxage=60\r\nSurrogate-Key: a b\r\nKeep-Alive: 5\r\n\r\nabc",
    "part": b"\2HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/9\r\nContent-Length: 3\r\nETag: W/\"a\"\r\n\r\nabc",
    "close": b"\1HTTP/1.0 404 X\r\nAge: 9\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nExpires: 0\r\nAccess-Control-Allow-Origin: https://player.example\r\n\r\nno",
    "early": b"\0HTTP/1.1 103 X\r\nLink: <a>\r\n\r\nHTTP/1.1 204 X\r\nCDN-Cache-Control: max-age=9\r\nContent-Encoding: gzip\r\n\r\n",
}
rules = {
    "mobile": b"[networks]\nmobile = [\"10.0.0.0/8\"]\n[[rule]]\nname = \"m\"\nwhen = 'path.endsWith(\".m4s\") && client.net == \"mobile\"'\ncongestion = \"bbr\"\npace = \"ramp(cmcd.bl, 0.0, 3.0, 30000.0, 1.5) * cmcd.tb\"\nnotsent-lowat = \"128KiB\"\ninitial-window = 32\n---\n/a.m4s?CMCD=bl%3D9000%2Ctb%3D6000\n10.1.2.3\n",
    "early": b"[pool.p]\norigin = [\"http://a\"]\n[[rule]]\nwhen = 'header[\"x\"].matches(\"^a+$\")'\ndeny = 403\n[[rule]]\nwhen = 'has(cmcd.tb) || method in [\"GET\"]'\npool = \"p\"\nttl = \"5s\"\ndelay = \"1ms\"\n---\n/\n::1\nx: aaa\n",
    "head": b"[[rule]]\nwhen = 'cache == \"hit\" && response.bytes > 1.0 && size(path) < 99'\nset = { X = \"y\" }\nremove = [\"server\"]\npace = 3000\n---\n/b\n",
    "list": b"[[rule]]\nwhen = '[1, 2].all(x, x > 0) && {\"a\": 1}.a == 1 && (path + query).contains(\"c\") ? true : false'\npace = \"cmcd.br / 0.0\"\n",
}
more = {"request": request, "answer": answer, "rules": rules}
for folder, seeds in {**more, "fresh": fresh, "cmcd": cmcd, "shelved": shelved}.items():
    pathlib.Path("corpus", folder).mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        pathlib.Path("corpus", folder, name).write_bytes(data)
PYTHON
# Workflow descriptions and experiments: intact ones, and each damaged in a few ways.
mkdir -p corpus/wdd
cp ../crates/lab/tests/nbmp/*.json ../experiments/congestion.toml corpus/wdd
python3 - <<'PYTHON'
import pathlib
texts = {
    "rest": "name = 'x'\n[nbmp.general]\npriority = 1\n[nbmp.processing.function-restrictions]\n'$by' = 'instance'\n'$order' = ['a']\n[nbmp.processing.function-restrictions.a]\ninstance = 'a'\n",
    "json": '{"a":null,"$json":1,"b":[{"name":"x"},{"name":"y","$by":[]}],"c":18446744073709551615}',
    "twice": '{"a":[0,{"b":1,"b":2}]}',
    "link": '{"processing":{"connection-map":[{"connection-id":"l","from":{"id":"place","instance":"place.a"},"to":{"id":"place","instance":"place.b"},"flowcontrol":{"min-delay":5,"max-throughput":1500000}}]}}',
    "values": "a = [1, 'b', 2026-11-21]\nb.c.d = inf\nsweep.x = [1, 1]\nsource.y.make = '%'\nsink.z.measure.q = '/q'\nfunction.f.use = 'nginx'\n",
}
for name, text in texts.items():
    pathlib.Path("corpus/wdd", name).write_text(text)
PYTHON
