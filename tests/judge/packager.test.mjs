// Compares the output with Shaka Packager: segment boundaries, timeline, codec strings and bitrates.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { parse as parseMpd } from 'mpd-parser';
import { library, root, serve, skip, text } from './support.mjs';

const packager = process.env.PACKAGER ?? path.join(root, 'target/packager/packager');
let server;
let folder;
before(async () => {
  server = await serve(undefined, '--segment', '2s');
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-packager-'));
});
after(() => {
  server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Packages tracks of a file and returns the MPD. */
function reference(file, streams, seconds) {
  const out = fs.mkdtempSync(path.join(folder, 'out-'));
  const tracks = streams.map((s) => [
    `in=${file}`, `stream=${s}`, `init_segment=${out}/${s}.mp4`, `segment_template=${out}/${s}-$Time$.m4s`,
  ].join(','));
  const run = spawnSync(packager, [
    ...tracks, '--segment_duration', String(seconds), '--generate_static_live_mpd', '--mpd_output', `${out}/x.mpd`, '--quiet',
  ], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  return fs.readFileSync(`${out}/x.mpd`, 'utf8');
}

/** Returns kind → representations as {codecs, bandwidth, timescale, cuts}, with times relative to the first. */
function read(xml, uri) {
  const { playlists, mediaGroups } = parseMpd(xml, { manifestUri: uri });
  const groups = Object.values(mediaGroups.AUDIO).flatMap((g) => Object.values(g)).flatMap((g) => g.playlists);
  const shape = (p) => ({
    name: p.attributes.NAME,
    codecs: p.attributes.CODECS,
    bandwidth: p.attributes.BANDWIDTH,
    size: p.attributes.RESOLUTION,
    durations: p.segments.map((s) => s.duration),
  });
  const byName = (list) => [...new Map(list.map((p) => [p.attributes.NAME, shape(p)])).values()];
  const audioOnly = groups.map((p) => p.attributes.NAME);
  const video = byName(playlists.filter((p) => !audioOnly.includes(p.attributes.NAME) && p.attributes.RESOLUTION));
  const audio = byName([...groups, ...playlists.filter((p) => !p.attributes.RESOLUTION)]);
  return { video, audio };
}

const sum = (list) => list.reduce((a, b) => a + b, 0);
// Two spellings are in use: the sample entry of RFC 6381, and the names of browsers.
const alike = (codec) => codec.toLowerCase();

const rows = [
  ['avc.mp4', ['video', 'audio']],
  ['avc_faststart.mp4', ['video', 'audio']],
  ['avc_2997.mp4', ['video', 'audio'], 1.6],
  ['avc_5994.mp4', ['video', 'audio'], 1.6],
  ['avc_vfr.mp4', ['video']],
  ['avc_open_gop.mp4', ['video']],
  ['frag_mfra.mp4', ['video', 'audio']],
  ['frag_unequal.mp4', ['video', 'audio']],
  ['hevc.mp4', ['video']],
  ['hevc_pq.mp4', ['video']],
  ['av1.mp4', ['video']],
  ['vp9.mp4', ['video']],
  ['aac_44100.mp4', ['audio']],
  ['aac_he.mp4', ['audio']],
  ['ac3.mp4', ['audio']],
  ['eac3.mp4', ['audio']],
  ['opus.mp4', ['audio']],
  ['flac.mp4', ['audio']],
];

// If key frames do not divide two seconds, Shaka Packager cuts at the first one after the target and
// Headwater at the nearest one. The target is set so that both choose the same key frame.
for (const [title, kinds, seconds = 2] of rows) {
  test(`${title} is packaged like the reference packager`, async (t) => {
    if (!fs.existsSync(packager)) return skip(t, 'reference packager: it is not installed; run scripts/packager.sh');
    const file = path.join(library, title);
    if (!fs.existsSync(file)) return skip(t, `fixture ${title}`);
    const theirs = read(reference(file, kinds, seconds), 'http://reference/');
    const url = `${server.url}/${title}/.mpd`;
    const ours = read(await text(url), url);
    for (const kind of kinds) {
      const [a] = theirs[kind];
      const [b] = ours[kind];
      assert.ok(a && b, `${kind}: ${JSON.stringify({ theirs, ours })}`);
      // Trailing fields of VP9 codec strings are optional, and contain defaults.
      assert.ok(alike(a.codecs).startsWith(alike(b.codecs)), `${b.codecs}, theirs ${a.codecs}`);
      assert.deepEqual(b.size, a.size);
      // It omits audio priming from the timeline. Headwater serves it before presentationTimeOffset.
      const priming = kind === 'audio' ? 0.05 : 0.001;
      assert.ok(Math.abs(sum(a.durations) - sum(b.durations)) < priming, `lengths: ${sum(a.durations)} and ${sum(b.durations)}`);
      if (kind === 'video') {
        const apart = a.durations.map((d, n) => Math.abs(d - b.durations[n]));
        assert.equal(b.durations.length, a.durations.length, `cuts: theirs ${a.durations}, ours ${b.durations}`);
        // It adds decode durations. With a varying frame rate, its cuts are up to a frame from the key frames.
        const slack = title === 'avc_vfr.mp4' ? 0.034 : 1e-6;
        assert.ok(Math.max(...apart) < slack, `cuts: theirs ${a.durations}, ours ${b.durations}`);
      }
      const ratio = b.bandwidth / a.bandwidth;
      assert.ok(ratio > 0.95 && ratio < 1.1, `${kind} bandwidth: theirs ${a.bandwidth}, ours ${b.bandwidth}`);
    }
  });
}
