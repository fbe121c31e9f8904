// hls.js with the interface of the page.
import { titleUrl, language } from '../format.js';
import { kilobits } from '../cmcd.js';
import { describeStatus } from '../errors.js';
import { loadVendored } from './common.js';

export const name = 'hls.js';
export const variants = [{ id: 'cmaf', label: 'HLS, CMAF segments' }, { id: 'ts', label: 'HLS, TS segments' }];
export const encrypted = ['cmaf', 'ts'];
export const protectedVariants = ['cmaf'];

export async function start({ video, path, title, report, variant, session }) {
  await loadVendored('hls.min.js', 'hls.js');
  const { Hls } = globalThis;
  if (!Hls.isSupported()) throw new Error('hls.js needs Media Source Extensions, which this browser lacks.');
  const hls = new Hls({
    maxBufferLength: 15, maxMaxBufferLength: 15, backBufferLength: 30,
    cmcd: { sessionId: session.sid, contentId: session.cid, useHeaders: true },
    ...protection(path, title),
    loader: loaderWithTopBitrate(Hls, () => Math.max(...hls.levels.map((l) => l.bitrate))),
  });
  let recoveries = 0;
  hls.on(Hls.Events.ERROR, (_, data) => {
    onError(hls, report, data);
    if (data.fatal && data.type === 'mediaError' && recoveries < RECOVERIES_MAX) {
      recoveries += 1;
      hls.recoverMediaError();
    }
  });
  hls.on(Hls.Events.FRAG_LOADED, (_, { frag }) => {
    const { loaded, loading } = frag.stats;
    report.fetched(loaded, loading.end - loading.start, `${frag.type} ${frag.sn} of level ${frag.level}`);
  });
  hls.on(Hls.Events.LEVEL_SWITCHED, (_, { level }) => report.step('switch', `level ${level}`));
  hls.on(Hls.Events.BUFFER_APPENDED, (_, { type }) => report.step('append', `${type}, ${report.buffered().toFixed(1)} s buffered`));
  const parsed = new Promise((done, failed) => {
    hls.once(Hls.Events.MANIFEST_PARSED, done);
    hls.on(Hls.Events.ERROR, (_, data) => data.fatal && failed(new Error(describeForViewer(data)[0])));
  });
  const captions = controlCaptions(hls, video);
  hls.loadSource(titleUrl(path, variant === 'ts' ? '.m3u8?format=ts' : '.m3u8'));
  hls.attachMedia(video);
  const close = () => { captions.close(); hls.destroy(); };
  await parsed.catch((error) => { close(); throw error; });
  return {
    levels: () => hls.levels.map((l) => ({ label: l.height ? `${l.height}p` : l.name, width: l.width, height: l.height, bitrate: l.bitrate, codecs: l.codecs })),
    level: () => hls.currentLevel,
    quality: (index) => { hls.nextLevel = index === 'auto' ? -1 : index; },
    audios: () => hls.audioTracks.map((t) => ({ label: t.name || language(t.lang), language: t.lang })),
    audio: () => hls.audioTrack,
    chooseAudio: (index) => { report.expect('audio'); hls.audioTrack = index; },
    texts: () => [...hls.subtitleTracks, ...captions.announced()].map((t) => ({ label: t.name || language(t.lang), language: t.lang })),
    text: () => (captions.chosen() < 0 ? hls.subtitleTrack : hls.subtitleTracks.length + captions.chosen()),
    chooseText: (index) => {
      const own = index - hls.subtitleTracks.length;
      hls.subtitleTrack = own < 0 ? index : -1;
      captions.choose(Math.max(own, -1));
    },
    throughput: () => hls.bandwidthEstimate,
    close,
  };
}

/** Controls captions inside of the video. hls.js does not list them, and adds a track to the element when their
 *  first cue arrives. It parses CEA-608 only. */
function controlCaptions(hls, video) {
  let announced = [];
  let chosen = -1;
  hls.on(globalThis.Hls.Events.MANIFEST_LOADED, (_, { captions }) => {
    announced = (captions ?? []).filter(({ instreamId }) => /^CC[1-4]$/.test(instreamId));
  });
  const show = () => {
    const subtitles = hls.subtitleTracks.map(({ trackNode }) => trackNode?.track);
    for (const track of video.textTracks) {
      const index = subtitles.includes(track) ? -1 : announced.findIndex(({ name }) => name === track.label);
      if (index >= 0) track.mode = index === chosen ? 'showing' : 'hidden';
    }
  };
  video.textTracks.addEventListener('addtrack', show);
  return {
    announced: () => announced,
    chosen: () => chosen,
    choose: (index) => { chosen = index; show(); },
    close: () => video.textTracks.removeEventListener('addtrack', show),
  };
}

/** Returns the settings for a title whose keys this server provides. */
const protection = (path, { license }) => (license
  ? { emeEnabled: true, drmSystems: { 'org.w3.clearkey': { licenseUrl: titleUrl(path, license) } } } : {});

/** hls.js 1.7 sends the top bitrate (CMCD `tb`) only with muxed segments. This loader adds it to video. */
const loaderWithTopBitrate = (Hls, topBitrate) => class extends Hls.DefaultConfig.loader {
  load(context, config, callbacks) {
    const { headers } = context;
    const object = headers?.['CMCD-Object'] ?? '';
    if (object.includes('ot=v') && !object.includes('tb=')) headers['CMCD-Object'] = `${object},tb=${kilobits(topBitrate())}`;
    super.load(context, config, callbacks);
  }
};

/** Returns [what, advice] for a fatal error. */
function describeForViewer({ type, response }) {
  if (type === 'networkError') return describeStatus(response?.code);
  return ['hls.js could not play this film.', 'Choose another player, or try again.'];
}

const describeError = (data) => `hls.js: ${data.details}${data.response ? ` (${data.response.code})` : ''}${data.reason ? `: ${data.reason}` : ''}`;

/** Maximum number of fatal media errors after which hls.js tries to continue, per start. */
const RECOVERIES_MAX = 3;

/** Within this many seconds of the end, a stall means that the end event was lost. */
const END_SECONDS = 0.2;

function onError(hls, report, data) {
  // After quick seeks, hls.js 1.7 may cancel its queued end-of-stream event and never repeat it. Playback
  // then waits at the end of the track that is a few milliseconds shorter.
  if (data.details === 'bufferStalledError' && hls.media?.duration - hls.media?.currentTime < END_SECONDS) hls.trigger(globalThis.Hls.Events.BUFFER_EOS, {});
  if (!data.fatal) {
    report.warn(describeError(data));
    return;
  }
  report.fail(...describeForViewer(data), describeError(data));
}
