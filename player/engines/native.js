// The player of the browser: HLS where it is supported, or the plain file.
import { encodeQuery } from '../cmcd.js';
import { titleUrl, language } from '../format.js';
import { addTexts, nativeTexts, levelOf } from './common.js';

export const name = 'Browser';
export const variants = [{ id: 'cmaf', label: 'HLS, CMAF segments' }, { id: 'ts', label: 'HLS, TS segments' }, { id: 'file', label: 'The plain file' }];
// Chromium cannot parse encrypted CMAF (DEMUXER_ERROR_COULD_NOT_PARSE).
export const encrypted = ['ts'];

export async function start({ video, path, title, report, variant, kind, session }) {
  if (variant === 'file' && kind === 'folder') {
    throw new Error('This title is a folder of renditions, which has no single file. Choose HLS, or another player.');
  }
  if (variant !== 'file' && !video.canPlayType('application/vnd.apple.mpegurl')) {
    throw new Error('This browser does not play HLS. Choose the plain file, or another player.');
  }
  // Only this request can carry client data (CMCD): the browser itself requests what the playlist lists.
  const data = encodeQuery({ ...session, st: 'v', ...(variant === 'file' ? { ot: 'av', sf: 'o' } : { ot: 'm', sf: 'h' }) });
  const url = { file: `${titleUrl(path)}?${data}`, ts: titleUrl(path, `.m3u8?format=ts&${data}`) }[variant] ?? titleUrl(path, `.m3u8?${data}`);
  report.step('open', new URL(url).pathname);
  video.src = url;
  // Chromium ignores the subtitles of HLS playlists.
  const laterS = variant === 'file' ? 0 : delayOfPicture(title);
  video.addEventListener('loadedmetadata', () => video.textTracks.length === 0 && addTexts(video, path, title, laterS), { once: true });
  const { videoTracks, audioTracks } = video;
  const audios = () => [...(audioTracks ?? [])];
  return {
    // The browser chooses, and reports only the size of the video.
    levels: () => (videoTracks ? title.renditions.filter((r) => r.kind === 'video').map(levelOf).filter((l) => l.height === video.videoHeight) : []),
    level: () => 0,
    quality: () => report.step('quality', 'the browser chooses the quality'),
    audios: () => audios().map((t) => ({ label: t.label || language(t.language), language: t.language })),
    audio: () => audios().findIndex((t) => t.enabled),
    chooseAudio: (index) => { report.expect('audio'); audios().forEach((t, i) => { t.enabled = i === index; }); },
    ...nativeTexts(video),
    close: () => { video.removeAttribute('src'); video.load(); },
  };
}

/** Returns how many seconds the first picture is later than the start of the film, as in fragmented films without edit
 *  lists. Chromium starts the timeline of HLS with that picture. */
function delayOfPicture({ renditions, zero_ms: zeroMs }) {
  const video = renditions.find(({ kind, segments }) => kind === 'video' && segments.length > 0);
  return video ? video.segments[0].t / video.timescale - zeroMs / 1000 : 0;
}
