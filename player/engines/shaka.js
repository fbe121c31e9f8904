// Shaka Player with the interface of the page.
import { get, titleUrl, language } from '../format.js';
import { describeStatus } from '../errors.js';
import { defaultText, loadVendored } from './common.js';

export const name = 'Shaka';
export const variants = [{ id: 'dash', label: 'DASH' }, { id: 'cmaf', label: 'HLS, CMAF segments' }, { id: 'ts', label: 'HLS, TS segments' }];
export const encrypted = ['cmaf', 'ts'];
export const protectedVariants = ['dash', 'cmaf'];

const MANIFEST = { dash: '.mpd', cmaf: '.m3u8', ts: '.m3u8?format=ts' };

/** Failures without any response in between, after which the viewer sees an error. */
const FAILURES_MAX = 4;
const RETRY_DELAY_S = 2;

export async function start({ video, path, title, report, variant, session }) {
  await loadVendored('shaka-player.compiled.js', 'Shaka Player');
  const { shaka } = globalThis;
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  let failures = 0;
  player.addEventListener('error', ({ detail }) => {
    // Shaka Player itself gives up after some attempts of each segment.
    if (isRetried(shaka, detail) && failures < FAILURES_MAX) report.warn(describeError(shaka, detail));
    else if (detail.severity === shaka.util.Error.Severity.CRITICAL) report.fail(...describeForViewer(shaka, detail), describeError(shaka, detail));
    else report.warn(describeError(shaka, detail));
  });
  player.addEventListener('adaptation', () => report.step('switch', `${active(videos())?.height ?? ''}p`));
  player.getNetworkingEngine().registerResponseFilter((type, response) => {
    failures = 0;
    if (type !== shaka.net.NetworkingEngine.RequestType.SEGMENT || !response.timeMs) return;
    report.fetched(response.data.byteLength, response.timeMs, new URL(response.uri).pathname.split('/').slice(-2).join('/'));
  });
  const retry = (error) => {
    failures += 1;
    if (isRetried(shaka, error) && failures <= FAILURES_MAX) player.retryStreaming(RETRY_DELAY_S);
  };
  player.configure({ streaming: { bufferingGoal: 15, bufferBehind: 30, failureCallback: retry }, cmcd: { enabled: true, useHeaders: true, sessionId: session.sid, contentId: session.cid } });
  const videos = () => player.getVideoTracks().sort((a, b) => a.bandwidth - b.bandwidth);
  const audios = () => player.getAudioTracks();
  const active = (tracks) => tracks.find((t) => t.active);
  // The page does not wait until a player is destroyed, so a rejection would be unhandled.
  const close = () => player.destroy().catch((error) => report.step('detail', describeError(shaka, error)));
  try {
    if (title.license) player.configure(await protection(titleUrl(path, title.license), variant));
    await player.attach(video);
    await player.load(titleUrl(path, MANIFEST[variant] ?? '.mpd')).catch((error) => { report.step('detail', describeError(shaka, error)); throw new Error(describeForViewer(shaka, error).join(' ')); });
  } catch (error) {
    await close();
    throw error;
  }
  const texts = () => player.getTextTracks().map((t) => ({ label: t.label || language(t.language), language: t.language }));
  const chooseText = (index) => player.selectTextTrack(index < 0 ? null : player.getTextTracks()[index]);
  if (variant !== 'dash') createTextEngine(player);
  const first = defaultText(title, texts());
  if (first >= 0) chooseText(first);
  return {
    levels: () => videos().map((t) => ({ label: `${t.height}p`, width: t.width, height: t.height, bitrate: t.bandwidth, codecs: t.codecs })),
    level: () => videos().findIndex((t) => t.active),
    quality: (index) => {
      player.configure({ abr: { enabled: index === 'auto' } });
      if (index !== 'auto') player.selectVideoTrack(videos()[index], true, 2);
    },
    audios: () => audios().map((t) => ({ label: t.label || language(t.language), language: t.language })),
    audio: () => audios().findIndex((t) => t.active),
    chooseAudio: (index) => { report.expect('audio'); player.selectAudioTrack(audios()[index]); },
    texts,
    text: () => player.getTextTracks().findIndex((t) => t.active),
    chooseText,
    throughput: () => player.getStats().estimatedBandwidth,
    close,
  };
}

/** Makes Shaka Player note the start of its timeline for text. Over HLS, it reads it only from segments of video that
 *  arrive after the first choice of a text: if the film is in the buffer by then, no cue appears. A choice that is
 *  dropped at once fetches no text. */
function createTextEngine(player) {
  const [text] = player.getTextTracks();
  if (!text) return;
  player.selectTextTrack(text);
  player.selectTextTrack(null);
}

/** Returns the settings for a title whose keys this server provides. */
async function protection(license, variant) {
  if (variant === 'dash') return { drm: { servers: { 'org.w3.clearkey': license } } };
  // Shaka Player supports no HLS key format of ClearKey, and would refuse the playlists. It takes the keys instead.
  const { keys } = await (await get(license, { method: 'POST' })).json();
  const hex = (text) => [...atob(text.replaceAll('-', '+').replaceAll('_', '/'))].map((c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  return { drm: { clearKeys: Object.fromEntries(keys.map(({ kid, k }) => [hex(kid), hex(k)])) }, manifest: { ignoreDrmInfo: true } };
}

/** Returns whether a segment could not be fetched, for a reason that may pass. */
function isRetried(shaka, { code, data }) {
  const { BAD_HTTP_STATUS, HTTP_ERROR, TIMEOUT } = shaka.util.Error.Code;
  return [HTTP_ERROR, TIMEOUT].includes(code) || (code === BAD_HTTP_STATUS && data?.[1] >= 500);
}

/** Returns [what, advice] for an error. */
function describeForViewer(shaka, { code, category, data }) {
  const { BAD_HTTP_STATUS } = shaka.util.Error.Code;
  if (category === shaka.util.Error.Category.NETWORK) return describeStatus(code === BAD_HTTP_STATUS ? data?.[1] : 0);
  return ['Shaka Player could not play this film.', 'Choose another player, or try again.'];
}

/** Adds the name of an error to its number. */
function describeError(shaka, error) {
  const named = Object.entries(shaka.util.Error.Code).find(([, code]) => code === error.code)?.[0];
  return `Shaka Player: ${named ?? 'error'} (${error.code ?? error.message})${error.data?.length ? `, ${error.data.slice(0, 2).join(', ')}` : ''}.`;
}
