// What the engines share.
import { codecName, language } from '../format.js';

/** A rendition of the picture as the quality menu shows it. */
export const levelOf = (rendition) => ({
  label: rendition.height ? `${rendition.height}p` : rendition.name,
  width: rendition.width,
  height: rendition.height,
  bitrate: rendition.bandwidth,
  codecs: rendition.codecs,
});

/** A rendition of the sound as the menu shows it. */
export const soundOf = (rendition) => ({
  label: [rendition.label || language(rendition.language) || 'Sound', codecName(rendition.codecs),
    channels(rendition.channels)].filter(Boolean).join(' · '),
  language: rendition.language,
});

/** "2" → stereo; what is not common stays as it is. */
export function channels(count) {
  return { 1: 'mono', 2: 'stereo', 6: '5.1', 8: '7.1' }[count] ?? (count ? `${count} ch` : '');
}

const loading = new Map();

/** Loads a vendored player once; a missing one is said in words. */
export function vendored(file, what) {
  if (!loading.has(file)) {
    loading.set(file, new Promise((done, failed) => {
      const script = document.createElement('script');
      script.src = new URL(`../vendor/${file}`, import.meta.url).href;
      script.onload = done;
      script.onerror = () => {
        loading.delete(file);
        failed(new Error(`${what} is not part of this build. Run player/vendor.sh (needs npm) and build again, or choose another player.`));
      };
      document.head.append(script);
    }));
  }
  return loading.get(file);
}

/** The text tracks of a video element, for engines that leave them to it. */
export const nativeTexts = (video) => ({
  texts: () => [...video.textTracks].map((track) => ({ label: track.label || language(track.language) || 'Subtitles', language: track.language })),
  text: () => [...video.textTracks].findIndex((track) => track.mode === 'showing'),
  chooseText: (index) => [...video.textTracks].forEach((track, i) => { track.mode = i === index ? 'showing' : 'disabled'; }),
});
