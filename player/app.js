// Routes by the hash of the address, and exports `window.headwater` for tests and scripts.
//
//   #/                                   the library
//   #/play/<title>?player=hls&variant=ts the player; also muted=1, autoplay=0, t=12, quality=0

import { el } from './format.js';
import { showLibrary } from './library.js';
import { PlayView } from './play.js';

const main = document.querySelector('#main');
let view = null;
let routeNumber = 0;

function parseHash(hash) {
  const [, path, query = ''] = /^#?([^?]*)(?:\?(.*))?$/.exec(hash);
  const options = Object.fromEntries(new URLSearchParams(query));
  const play = /^\/play\/(.*)$/.exec(path);
  if (!play) return { title: null, options };
  try {
    return { title: play[1].split('/').map(decodeURIComponent).join('/'), options };
  } catch {
    throw new Error('The address of this title is invalid: a % must be followed by two hexadecimal digits.');
  }
}

async function showRoute() {
  const thisRoute = ++routeNumber;
  // The link that led here, which has the focus, will be removed.
  if (thisRoute > 1) main.focus({ preventScroll: true });
  view?.close();
  view = null;
  try {
    const { title, options } = parseHash(location.hash);
    if (title === null) await showLibrary(main, () => thisRoute === routeNumber);
    else {
      view = new PlayView(main, title, options);
      await view.open();
    }
  } catch (error) {
    if (thisRoute === routeNumber) showError(error);
  }
  if (thisRoute === routeNumber) window.scrollTo(0, 0);
}

function showError(error) {
  if (view) view.openError = error.message;
  main.replaceChildren(el('h1', {}, 'Something went wrong'), el('p', { class: 'bad', role: 'alert' }, error.message, error.advice && ` ${error.advice}`),
    el('p', {}, el('a', { class: 'button', href: '#/' }, 'Back to the library')));
}

window.addEventListener('hashchange', showRoute);
// Following the link would replace the route in the address.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});

const idleState = {
  title: null, engine: null, playing: false, ended: false, currentTime: 0, duration: 0, buffered: 0, stalls: 0,
  waiting: null, errors: [], warnings: 0, bitrate: null, throughput: null, levels: [], level: -1, audios: [], audio: -1, texts: [],
  droppedFrames: 0, startup_ms: null,
};

/** A stable interface: browser tests and experiments depend on it. */
window.headwater = {
  /** Returns the state of the player: see `idleState` above and PlayView.state. */
  state: () => view?.state() ?? { ...idleState },
  /** Opens a title with an engine (mse, hls, dash, shaka, native, consumer); resolves when the engine is attached. */
  load: (title, engine = 'mse', options = {}) => {
    const query = new URLSearchParams({ player: engine, ...options });
    history.pushState(null, '', `#/play/${title.split('/').map(encodeURIComponent).join('/')}?${query}`);
    return showRoute();
  },
  play: () => view?.video.play(),
  pause: () => view?.video.pause(),
  seek: (t) => { if (view) view.video.currentTime = t; },
  quality: (index) => view?.choose('quality', index),
  audio: (index) => view?.choose('audio', index),
  text: (index) => view?.choose('text', index),
  /** Returns the log so far: [{ ms, kind, text }]. */
  log: () => view?.report?.log ?? [],
};

showRoute();
