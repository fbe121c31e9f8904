// Presentation times of fixtures, as ffprobe reports them.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { library, tracks } from './support.mjs';

/** Streams that ffprobe reports but Headwater leaves out, by film and index: a still picture, and one without stsd. */
const LEFT_OUT = { 'still.mp4': [0], 'no_stsd.mp4': [1] };
/** ffprobe refuses the configuration of xHE-AAC. It reports these times of the film before `patch.pl` replaced the
 *  configuration: 1024 samples of priming, and 10 s at 48 kHz. */
const XHE_AAC = [{ kind: 'audio', first: 0, lead: 0.021333, decoded: -0.021333, last: 9.984, ends: [10, 10.005334] }];

/** Films of which a part is left out, or which ffprobe cannot read. */
export const partialFilms = fs.readdirSync(tracks).filter((name) => name.endsWith('.mp4')).sort();

/** Returns the streams of a film in `tracks` that are served, as `probeTimes` does. */
export function probePartialFilm(film) {
  if (film === 'xhe_aac.mp4') return XHE_AAC;
  const file = path.join(tracks, film);
  // ffprobe reports the bytes that exist of the packet in which this film is cut. The server leaves it out.
  const streams = probeFile(file, film === 'cut.mp4' ? fs.statSync(file).size : Infinity);
  return streams.filter(({ kind, index }) => ['audio', 'video'].includes(kind) && !LEFT_OUT[film]?.includes(index));
}

/** Returns the streams of a title's files: kind, presentation times of the first and last packet, and the least and
 *  greatest end of the last one, in seconds. Hidden packets do not count, except in `lead`: the seconds that the
 *  first one is presented before the film's zero, and in `decoded`: the decode time of the first one. */
export function probeTimes(title) {
  const at = path.join(library, title);
  const files = fs.statSync(at).isDirectory() ? fs.readdirSync(at).sort().map((name) => path.join(at, name)) : [at];
  const streams = files.flatMap((file) => probeFile(file));
  // ffmpeg reads this source itself late, because its composition offsets are signed.
  if (title === 'frag_ladder') return streams.map((s) => ({ ...s, first: 0, decoded: s.decoded - s.first, last: s.last - s.first, ends: s.ends.map((end) => end - s.first) }));
  return streams;
}

/** Reads the streams of a file, without packets that end beyond `bytesEnd`. */
function probeFile(file, bytesEnd = Infinity) {
  const args = ['-v', 'error', '-show_entries', 'stream=index,codec_type:packet=stream_index,pts_time,dts_time,duration_time,flags,pos,size', '-of', 'json', file];
  const { packets, streams } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8', maxBuffer: 1 << 26 }));
  return streams.map(({ index, codec_type: kind }) => {
    const own = packets.filter((p) => p.stream_index === index && Number(p.pos) + Number(p.size) < bytesEnd)
      .map((p) => ({ at: Number(p.pts_time), decoded: Number(p.dts_time), duration: Number(p.duration_time), isShown: !p.flags.includes('D') }))
      .sort((a, b) => a.at - b.at);
    const shown = own.filter((p) => p.isShown);
    const [last, before = last] = shown.slice(-2).reverse();
    // With a varying frame rate, ffprobe reports no duration, or only the usual one.
    const durations = [last.duration || last.at - before.at, last.at - before.at].sort((a, b) => a - b);
    const ends = durations.map((duration) => last.at + duration);
    // A packet of audio may start before the film's zero and last beyond it.
    return { index, kind, first: Math.max(shown[0].at, 0), lead: Math.max(-own[0].at, 0), decoded: Math.min(...own.map((p) => p.decoded)), last: last.at, ends };
  });
}
