// Presentation times of fixtures, as ffprobe reports them.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { library } from './support.mjs';

/** Returns the streams of a title's files: kind, presentation times of the first and last packet, and the least and
 *  greatest end of the last one, in seconds. Hidden packets do not count, except in `lead`: the seconds that the
 *  first one is presented before the film's zero. */
export function probeTimes(title) {
  const at = path.join(library, title);
  const files = fs.statSync(at).isDirectory() ? fs.readdirSync(at).sort().map((name) => path.join(at, name)) : [at];
  const streams = files.flatMap(probeFile);
  // ffmpeg reads this source itself late, because its composition offsets are signed.
  if (title === 'frag_ladder') return streams.map((s) => ({ ...s, first: 0, last: s.last - s.first, ends: s.ends.map((end) => end - s.first) }));
  return streams;
}

function probeFile(file) {
  const args = ['-v', 'error', '-show_entries', 'stream=index,codec_type:packet=stream_index,pts_time,duration_time,flags', '-of', 'json', file];
  const { packets, streams } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8', maxBuffer: 1 << 26 }));
  return streams.map(({ index, codec_type: kind }) => {
    const own = packets.filter((p) => p.stream_index === index)
      .map((p) => ({ at: Number(p.pts_time), duration: Number(p.duration_time), isShown: !p.flags.includes('D') }))
      .sort((a, b) => a.at - b.at);
    const shown = own.filter((p) => p.isShown);
    const [before, last] = shown.slice(-2);
    // With a varying frame rate, ffprobe knows no duration, or only the usual one.
    const durations = [last.duration || last.at - before.at, last.at - before.at].sort((a, b) => a - b);
    const ends = durations.map((duration) => last.at + duration);
    // A packet of audio may start before the film's zero and last beyond it.
    return { kind, first: Math.max(shown[0].at, 0), lead: Math.max(-own[0].at, 0), last: last.at, ends };
  });
}
