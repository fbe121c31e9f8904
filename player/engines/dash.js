// dash.js with the interface of the page.
import { el, titleUrl, language } from '../format.js';
import { describeStatus } from '../errors.js';
import { defaultText, loadVendored } from './common.js';

export const name = 'dash.js';
export const variants = [{ id: 'time', label: 'DASH, $Time$' }, { id: 'number', label: 'DASH, $Number$' }];

/** dash.js retries once per second. */
const SEGMENT_RETRIES = 8;

/** A film that dash.js paused this near to its end has ended. dash.js may seek to half a second before it. */
const END_S = 1;

export const protectedVariants = ['time', 'number'];

export async function start({ video, path, title, report, variant, session }) {
  await loadVendored('dash.all.min.js', 'dash.js');
  const { dashjs } = globalThis;
  const player = dashjs.MediaPlayer().create();
  const { events } = dashjs.MediaPlayer;
  const ready = new Promise((done, failed) => {
    player.on(events.STREAM_INITIALIZED, done);
    player.on(events.ERROR, ({ error }) => failed(new Error(describeForViewer(error)[0])));
  });
  player.on(events.ERROR, ({ error }) => report.fail(...describeForViewer(error), describeError(error)));
  player.on(events.FRAGMENT_LOADING_COMPLETED, ({ request }) => {
    const where = Number.isFinite(request.startTime) ? `at ${request.startTime.toFixed(2)} s` : 'init';
    const what = `${request.representation?.id ?? request.mediaType} ${where}`;
    report.fetched(request.bytesLoaded, request.endDate - request.startDate, what);
  });
  player.on(events.PLAYBACK_ENDED, () => setTimeout(() => finishPlayback(video)));
  const tracks = (kind) => player.getTracksFor(kind);
  const label = (t) => ({ label: t.labels?.[0]?.text || language(t.lang) || `Track ${t.index}`, language: t.lang });
  player.on(events.TEXT_TRACKS_ADDED, () => {
    const first = defaultText(title, tracks('text').map(label));
    if (first >= 0) player.setTextTrack(first);
  });
  player.on(events.QUALITY_CHANGE_RENDERED, ({ mediaType, newRepresentation }) => report.step('switch', `${mediaType}: ${newRepresentation?.id ?? ''}`));
  player.initialize();
  player.updateSettings({ streaming: { text: { defaultEnabled: false }, buffer: { bufferTimeAtTopQuality: 15, bufferTimeAtTopQualityLongForm: 15, bufferTimeDefault: 15 }, retryAttempts: { MediaSegment: SEGMENT_RETRIES, InitializationSegment: SEGMENT_RETRIES }, cmcd: { enabled: true, mode: 'headers', sid: session.sid, cid: session.cid } } });
  player.attachView(video);
  // dash.js draws IMSC into an element above the video.
  const imsc = el('div', { class: 'imsc' });
  video.after(imsc);
  player.attachTTMLRenderingDiv(imsc);
  player.setAutoPlay(false);
  if (title.license) player.setProtectionData({ 'org.w3.clearkey': { serverURL: titleUrl(path, title.license) } });
  player.attachSource(titleUrl(path, variant === 'number' ? '.mpd?template=number' : '.mpd'));
  const close = () => { player.destroy(); imsc.remove(); };
  await ready.catch((error) => { close(); throw error; });
  const auto = (on) => player.updateSettings({ streaming: { abr: { autoSwitchBitrate: { video: on } } } });
  const current = (kind) => tracks(kind).findIndex((t) => t.index === player.getCurrentTrackFor(kind)?.index);
  const representations = () => player.getRepresentationsByType('video') ?? [];
  return {
    levels: () => representations().map((r) => ({ label: `${r.height}p`, width: r.width, height: r.height, bitrate: r.bandwidth, codecs: r.codecs })),
    level: () => representations().findIndex((r) => r.id === player.getCurrentRepresentationForType('video')?.id),
    quality: (index) => {
      auto(index === 'auto');
      if (index !== 'auto') player.setRepresentationForTypeByIndex('video', index, false);
    },
    audios: () => tracks('audio').map(label),
    audio: () => current('audio'),
    chooseAudio: (index) => { report.expect('audio'); player.setCurrentTrack(tracks('audio')[index]); },
    texts: () => tracks('text').map(label),
    text: () => player.getCurrentTextTrackIndex(),
    chooseText: (index) => player.setTextTrack(index),
    throughput: () => player.getAverageThroughput('video') * 1000,
    close,
  };
}

/** dash.js ends a film by its own clock, too. If that precedes the element's end, it pauses the element, which then never ends. */
function finishPlayback(video) {
  if (video.ended || !video.paused || video.duration - video.currentTime > END_S) return;
  video.play().catch(() => {});
}

const describeError = ({ code, message, data }) => `dash.js: error ${code}: ${message}${data?.response ? ` (${data.response.status || 'no response'})` : ''}`;

/** Returns [what, advice] for an error. Failed downloads contain their response. */
function describeForViewer({ data }) {
  if (data?.response) return describeStatus(data.response.status);
  return ['dash.js could not play this film.', 'Choose another player, or try again.'];
}
