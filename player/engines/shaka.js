// Shaka Player with the interface of the page.
import { titleUrl, language } from '../format.js';
import { loadVendored } from './common.js';

export const name = 'Shaka';
export const variants = [{ id: 'dash', label: 'DASH' }, { id: 'cmaf', label: 'HLS, CMAF segments' }, { id: 'ts', label: 'HLS, TS segments' }];
export const encrypted = ['cmaf', 'ts'];

const MANIFEST = { dash: '.mpd', cmaf: '.m3u8', ts: '.m3u8?format=ts' };

export async function start({ video, path, report, variant }) {
  await loadVendored('shaka-player.compiled.js', 'Shaka Player');
  const { shaka } = globalThis;
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  player.addEventListener('error', ({ detail }) => {
    if (detail.severity === shaka.util.Error.Severity.CRITICAL) report.fail(describeError(shaka, detail), 'Try the Headwater player, or reload the title.');
    else report.warn(describeError(shaka, detail));
  });
  player.addEventListener('adaptation', () => report.step('switch', `${active(videos())?.height ?? ''}p`));
  player.getNetworkingEngine().registerResponseFilter((type, response) => {
    if (type !== shaka.net.NetworkingEngine.RequestType.SEGMENT || !response.timeMs) return;
    report.fetched(response.data.byteLength, response.timeMs, new URL(response.uri).pathname.split('/').slice(-2).join('/'));
  });
  player.configure({ streaming: { bufferingGoal: 15, bufferBehind: 30 } });
  const videos = () => player.getVideoTracks().sort((a, b) => a.bandwidth - b.bandwidth);
  const audios = () => player.getAudioTracks();
  const active = (tracks) => tracks.find((t) => t.active);
  await player.attach(video);
  await player.load(titleUrl(path, MANIFEST[variant] ?? '.mpd')).catch((error) => { throw new Error(describeError(shaka, error)); });
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
    texts: () => player.getTextTracks().map((t) => ({ label: t.label || language(t.language), language: t.language })),
    text: () => player.getTextTracks().findIndex((t) => t.active),
    chooseText: (index) => player.selectTextTrack(index < 0 ? null : player.getTextTracks()[index]),
    throughput: () => player.getStats().estimatedBandwidth,
    close: () => player.destroy(),
  };
}

/** Adds the name of an error to its number. */
function describeError(shaka, error) {
  const named = Object.entries(shaka.util.Error.Code).find(([, code]) => code === error.code)?.[0];
  return `Shaka Player: ${named ?? 'error'} (${error.code ?? error.message})${error.data?.length ? `, ${error.data.slice(0, 2).join(', ')}` : ''}.`;
}
