// Keyboard shortcuts of the player. They work wherever the focus is, unless the focused element uses the key.

import { el } from './format.js';

const SEEK_S = 5;
const VOLUME_STEP = 0.1;
const TYPING = 'select, textarea, [contenteditable], input:not([type=radio], [type=checkbox])';
/** Elements that use a key themselves. The browser's own controls handle space and arrows on the video. */
const OWN_KEYS = [
  [[' '], 'button, summary, input, video, .lines'],
  [['ArrowLeft', 'ArrowRight'], 'input[type=radio], video, .scroll'],
  [['ArrowUp', 'ArrowDown'], 'input[type=radio], video, .lines'],
];

const HELP = [['K or Space', 'play, pause'], ['← →', `${SEEK_S} seconds`], ['↑ ↓', 'volume'], ['M', 'mute'], ['F', 'full screen']];

/** Lists the shortcuts. */
export const describeShortcuts = () => el('p', { class: 'keys' }, ...HELP.map(([keys, what]) => el('span', {}, el('kbd', {}, keys), ` ${what}`)));

/** Handles the shortcuts of a PlayView until `signal` aborts. */
export function listenForShortcuts(view, signal) {
  document.addEventListener('keydown', (event) => {
    const { key, target } = event;
    const action = ACTIONS[key.length === 1 ? key.toLowerCase() : key];
    if (!action || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || usesKey(target, key)) return;
    event.preventDefault();
    if (!event.repeat || key.startsWith('Arrow')) action(view);
  }, { signal });
}

function usesKey(target, key) {
  return target.matches(TYPING) || OWN_KEYS.some(([keys, elements]) => keys.includes(key) && target.matches(elements));
}

const ACTIONS = {
  k: togglePlay,
  ' ': togglePlay,
  f: toggleFullscreen,
  m: ({ video }) => { video.muted = !video.muted; },
  ArrowLeft: ({ video }) => seekBy(video, -SEEK_S),
  ArrowRight: ({ video }) => seekBy(video, SEEK_S),
  ArrowUp: ({ video }) => changeVolume(video, VOLUME_STEP),
  ArrowDown: ({ video }) => changeVolume(video, -VOLUME_STEP),
};

function togglePlay(view) {
  if (view.video.paused || view.video.ended) view.play();
  else view.video.pause();
}

/** Shows the stage, with its messages, on the full screen. Safari on phones can show only the video. */
function toggleFullscreen({ stage, video }) {
  if (document.fullscreenElement) document.exitFullscreen();
  else if (stage.requestFullscreen) stage.requestFullscreen().catch(() => {});
  else video.webkitEnterFullscreen?.();
}

function seekBy(video, seconds) {
  if (!Number.isFinite(video.duration)) return;
  video.currentTime = Math.min(Math.max(video.currentTime + seconds, 0), video.duration);
}

function changeVolume(video, step) {
  video.volume = Math.min(Math.max(video.volume + step, 0), 1);
  if (step > 0) video.muted = false;
}
