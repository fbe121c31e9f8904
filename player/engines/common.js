// Functions that several engines use.
import { codecName, language, titleUrl } from '../format.js';

/** Describes a video rendition for the quality menu. */
export const levelOf = (rendition) => ({
  label: rendition.height ? `${rendition.height}p` : rendition.name,
  width: rendition.width,
  height: rendition.height,
  bitrate: rendition.bandwidth,
  codecs: rendition.codecs,
});

/** Labels audio renditions for the menu, with codec and channels only where labels are equal. */
export function audioLabels(renditions) {
  const labels = renditions.map((r) => r.label || language(r.language) || 'Audio');
  return renditions.map((r, i) => {
    const isAmbiguous = labels.filter((label) => label === labels[i]).length > 1;
    const more = [codecName(r.codecs), channels(r.channels)].filter(Boolean);
    return { label: [labels[i], ...(isAmbiguous ? more : [])].join(' · '), language: r.language };
  });
}

/** Names a channel count: 2 is "stereo". Unusual counts stay numbers. */
export function channels(count) {
  return { 1: 'mono', 2: 'stereo', 6: '5.1', 8: '7.1' }[count] ?? (count ? `${count} ch` : '');
}

const loading = new Map();

/** Loads a vendored player once. The error for a missing one contains the remedy. */
export function loadVendored(file, name) {
  if (!loading.has(file)) {
    loading.set(file, new Promise((done, failed) => {
      const script = document.createElement('script');
      script.src = new URL(`../vendor/${file}`, import.meta.url).href;
      script.onload = done;
      script.onerror = () => {
        loading.delete(file);
        failed(new Error(`${name} is not part of this build. Run player/vendor.sh and build again, or choose another player.`));
      };
      document.head.append(script);
    }));
  }
  return loading.get(file);
}

/** Controls the text tracks of a video element, for engines that leave subtitles to it. */
export const nativeTexts = (video) => ({
  texts: () => [...video.textTracks].map((track) => ({ label: track.label || language(track.language) || 'Subtitles', language: track.language })),
  text: () => [...video.textTracks].findIndex((track) => track.mode === 'showing'),
  chooseText: (index) => [...video.textTracks].forEach((track, i) => { track.mode = i === index ? 'showing' : 'disabled'; }),
});

/** Returns the index of the text that is shown without a choice of the viewer, or -1. */
export const defaultText = (title, texts) => texts.findIndex(({ label }) => title.texts?.some((text) => text.default && text.label === label));

/** Adds the texts of a title as elements, for engines that leave subtitles to the video element. Their times
 *  count from the start of the film; the timeline of the element starts `laterS` seconds later. */
export function addTexts(video, path, title, laterS = 0) {
  for (const text of title.texts ?? []) {
    const track = document.createElement('track');
    track.kind = text.kind === 'captions' ? 'captions' : 'subtitles';
    track.src = titleUrl(path, text.url);
    track.label = text.label;
    if (text.language) track.srclang = text.language;
    track.default = text.default;
    if (laterS > 0) track.addEventListener('load', () => moveCues(track.track, -laterS), { once: true });
    video.append(track);
  }
}

function moveCues({ cues }, seconds) {
  for (const cue of cues ?? []) {
    cue.startTime += seconds;
    cue.endTime += seconds;
  }
}
