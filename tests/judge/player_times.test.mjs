// Real players in headless Chromium buffer and present every fixture from the first to the last presentation time
// that ffprobe reports of it, and keep audio and video in sync.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open } from './browser.mjs';
import { partialFilms, probePartialFilm, probeTimes } from './probe.mjs';
import { serve, skip, text, titles, tracks } from './support.mjs';

// Shaka Player starts each rendition of HLS at zero by its first decode time, so that audio begins up to the reordering
// delay of the video too early, and late audio at zero. Dates in the playlists (EXT-X-PROGRAM-DATE-TIME) prevent that,
// but then it does not end films whose audio is shorter than their video. In DASH it is exact.
const ENGINES = ['player=hls&variant=cmaf', 'player=shaka&variant=dash', 'player=dash&variant=time'];
/** Shorter than the shortest frame of a fixture that lacks none of its frames. */
const SLACK_S = 0.015;

let library;
let partial;
let browser;
/** A page that plays nothing. */
let probe;
/** The page of each server, which opens one film after the other. */
const pages = new Map();
before(async () => {
  library = await serve(undefined, '--segment', '2s');
  partial = await serve(tracks, '--segment', '2s');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  library?.stop();
  partial?.stop();
});

/** Returns whether Chromium decodes all renditions of a title. */
async function isPlayable(page, server, title) {
  const mpd = await text(`${server.url}/${title}/.mpd`);
  const sets = mpd.split('<AdaptationSet').slice(1);
  const types = sets.flatMap((set) => [...set.matchAll(/codecs="([^"]+)"/g)].map((m) => `${set.match(/mimeType="([^"]+)"/)[1]}; codecs="${m[1]}"`));
  return page.evaluate((all) => all.every((type) => MediaSource.isTypeSupported(type)), types);
}

/** Opens a film in the page of its server. */
async function openFilm(server, title, engine) {
  const opened = pages.get(server);
  if (!opened) {
    pages.set(server, await open(browser, server, title, engine, recordSourceBuffers));
  } else {
    await opened.page.evaluate(() => { window.sourceBuffers = []; });
    await opened.replaceTitle(title, engine);
  }
  return pages.get(server);
}

/** Lists the source buffers that a page creates. */
const recordSourceBuffers = (page) => page.addInitScript(() => {
  const add = MediaSource.prototype.addSourceBuffer;
  window.sourceBuffers = [];
  MediaSource.prototype.addSourceBuffer = function (type) {
    const sourceBuffer = add.call(this, type);
    window.sourceBuffers.push({ kind: type.split('/')[0], sourceBuffer });
    return sourceBuffer;
  };
});

/** Reads where audio and video start, in seconds of the player's timeline; null for one that is not buffered. */
const readStarts = () => ['audio', 'video'].map((kind) => {
  const buffered = window.sourceBuffers.filter((b) => b.kind === kind).at(-1)?.sourceBuffer.buffered;
  return buffered?.length ? buffered.start(0) : null;
});

/** Returns the first stream of a kind. */
const firstOf = (sources, kind) => sources.filter((s) => s.kind === kind).sort((a, b) => a.first - b.first)[0];

/** Asserts that audio starts as much after video as in the film. */
function assertInSync([audioStart, videoStart], sources) {
  if (audioStart === null || videoStart === null) return;
  const [audio, video] = ['audio', 'video'].map((kind) => firstOf(sources, kind));
  const expected = audio.first - video.first;
  const delay = audioStart - videoStart;
  const message = `audio starts ${delay} s after video, ffprobe ${expected} s, priming ${audio.lead} s`;
  assert.ok(delay > expected - audio.lead - SLACK_S, message);
  // Browsers drop what is before zero.
  assert.ok(audioStart < SLACK_S || delay < expected + SLACK_S, message);
}

/** Reads what the player buffered, in seconds of its timeline. */
const readBuffered = (page) => page.evaluate(() => {
  const { buffered, ended, duration, currentTime } = document.querySelector('video');
  const ranges = Array.from({ length: buffered.length }, (_, n) => [buffered.start(n), buffered.end(n)]);
  return { first: ranges[0]?.[0], last: ranges.at(-1)?.[1], ended, duration, currentTime, errors: window.headwater.state().errors };
});

const hasStarted = () => { const s = window.headwater.state(); return s.errors.length > 0 || (s.currentTime > 0.05 && document.querySelector('video').buffered.length > 0); };
/** dash.js does not report the end of every film without video. */
const hasEnded = () => {
  const { errors, ended, currentTime, duration } = window.headwater.state();
  return errors.length > 0 || ended || currentTime > duration - 0.01;
};
/** Chromium cannot decode after a seek into an open GOP, dash.js loses seeks while it starts, and Shaka Player those in
 *  a film that is over at once, so these play faster. */
const goToEnd = (isPlayed) => {
  const video = document.querySelector('video');
  if (isPlayed) video.playbackRate = 8;
  else window.headwater.seek(video.duration - 0.5);
};

const films = [...titles.map((title) => ({ title, isPartial: false })), ...partialFilms.map((title) => ({ title, isPartial: true }))];
for (const { title, isPartial } of films) {
  for (const engine of ENGINES) {
    test(`${title} with ${engine}: first and last presentation time`, async (t) => {
      if (!browser) return skip(t, 'browsers: Chromium is not installed');
      const sources = isPartial ? probePartialFilm(title) : probeTimes(title);
      const server = isPartial ? partial : library;
      const late = Math.min(...sources.map((s) => s.first));
      probe ??= await browser.newPage();
      if (!await isPlayable(probe, server, title)) {
        t.skip('Chromium cannot decode it');
        return;
      }
      const { page, until } = await openFilm(server, title, engine);
      await until('the start', hasStarted);
      const started = await readBuffered(page);
      assert.deepEqual(started.errors, []);
      assertInSync(await page.evaluate(readStarts), sources);
      // Buffered is what audio and video have in common, and at the end, what any of them has.
      const first = Math.max(...sources.map((s) => s.first)) - late;
      await page.evaluate(goToEnd, /open_gop|short/.test(title) || engine.includes('player=dash'));
      await until('the end', hasEnded);
      const done = await readBuffered(page);
      assert.deepEqual(done.errors, []);
      const [from, to] = [started.first, done.last];
      const ends = [0, 1].map((n) => Math.max(...sources.map((s) => s.ends[n])) - late);
      const report = `${JSON.stringify(started)} to ${JSON.stringify(done)}, ffprobe ${first} to ${ends}`;
      // In HLS, players count from the first decode time, and in audio without video from its priming.
      const isAudio = sources.every((s) => s.kind === 'audio');
      const lead = isAudio ? Math.max(...sources.map((s) => s.lead)) : 0;
      const isHls = !engine.endsWith('dash') && !engine.endsWith('time');
      const shift = isHls ? from - first + lead : 0;
      const delay = Math.max(...sources.map((s) => s.first - s.decoded));
      // hls.js starts a film whose video begins after its audio with the first picture.
      const skipped = Math.max(0, ...sources.filter((s) => s.kind === 'video').map((s) => s.decoded - late));
      assert.ok(shift > -skipped - SLACK_S && shift < delay + SLACK_S, `starts ${shift} s late, decoded at most ${delay} s early: ${report}`);
      assert.ok(isHls || Math.abs(from - first) < SLACK_S, `the first presentation time: ${report}`);
      assert.ok(to - shift > ends[0] - SLACK_S && to - shift < ends[1] + SLACK_S, `the last presentation time: ${report}`);
      assert.ok(Math.abs(done.duration - to) < SLACK_S, `the duration: ${report}`);
    });
  }
}
