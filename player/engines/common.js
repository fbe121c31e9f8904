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

/** Renditions of the sound as the menu shows them; codec and channels only where words are alike. */
export function soundsOf(renditions) {
  const words = renditions.map((r) => r.label || language(r.language) || 'Sound');
  return renditions.map((r, i) => {
    const alike = words.filter((word) => word === words[i]).length > 1;
    const more = [codecName(r.codecs), channels(r.channels)].filter(Boolean);
    return { label: [words[i], ...(alike ? more : [])].join(' · '), language: r.language };
  });
}

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
