// The library: a card per title.

import { bytes, codecName, duration, el, getJson, language, playHash } from './format.js';
import { poster } from './poster.js';

/** Cards that are shown before the viewer asks for more. */
const PAGE = 120;

/** Shows the library in `main`. */
export async function showLibrary(main) {
  document.title = 'Headwater';
  const { titles, truncated } = await getJson(new URL('-/library.json', new URL('.', location.href)).href);
  if (titles.length === 0) {
    main.replaceChildren(el('h1', {}, 'Library'), el('p', { class: 'note' }, 'There is nothing to play here yet. '
      + 'Put MP4 files into the folder that headwater serves, then reload this page.'));
    return;
  }
  const cards = el('ul', { class: 'cards' });
  const seen = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((e) => {
    seen.unobserve(e.target);
    e.target.draw();
  }), { rootMargin: '200px' });
  const show = (wanted) => {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const found = titles.filter((t) => words.every((word) => t.path.toLowerCase().includes(word)));
    cards.replaceChildren();
    const more = () => {
      button?.remove();
      const from = cards.childElementCount;
      cards.append(...found.slice(from, from + PAGE).map((title) => card(title, seen)));
      if (from + PAGE >= found.length) return;
      button = el('li', {}, el('button', { type: 'button', onclick: more }, `Show more of ${found.length}`));
      cards.append(button);
    };
    let button = null;
    more();
    count.textContent = `${found.length === 1 ? '1 title' : `${found.length} titles`}${truncated ? ', and more that are not listed' : ''}`;
  };
  const count = el('span', { class: 'quiet', role: 'status' });
  const search = el('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search the library', oninput: () => show(search.value) });
  main.replaceChildren(el('div', { class: 'row' }, el('h1', {}, 'Library'), count, titles.length > 6 && search), cards);
  show('');
}

function card(title, seen) {
  const picture = el('canvas', { class: 'poster', 'aria-hidden': 'true' });
  const bars = el('canvas', { class: 'bars', 'aria-hidden': 'true' });
  const art = el('div', { class: 'art' }, el('span', { class: 'initial', 'aria-hidden': 'true' }, initial(title)), picture, bars,
    title.duration_ms != null && el('span', { class: 'badge' }, duration(title.duration_ms)));
  const folder = title.path.split('/').slice(0, -1).join(' / ');
  const words = el('div', { class: 'words' },
    el('h2', { title: title.path }, title.name || title.path || 'All files'),
    folder && el('p', { class: 'quiet' }, folder),
    title.error ? el('p', { class: 'bad' }, title.error) : el('p', { class: 'quiet' }, facts(title)));
  if (title.error) return el('li', { class: 'card broken' }, art, words);
  const link = el('a', { class: 'card', href: playHash(title.path) }, art, words);
  link.draw = () => poster(title.path, picture, bars);
  seen.observe(link);
  return el('li', {}, link);
}

const initial = (title) => [...(title.name || title.path || '♪')][0].toUpperCase();

/** "540p · 3 qualities · AVC · English, French · 2.8 MiB". */
function facts({ video = [], audio = [], bytes: size, duration_ms: known }) {
  const tallest = Math.max(0, ...video.map((v) => v.height ?? 0));
  const tongues = [...new Set(audio.map((a) => language(a.language)).filter(Boolean))];
  const codecs = [...new Set([...video, ...audio].map((r) => codecName(r.codecs)))];
  return [
    tallest > 0 ? `${tallest}p` : known != null && video.length === 0 && 'sound only',
    video.length > 1 && `${video.length} qualities`,
    codecs.join(', '),
    tongues.join(', '),
    bytes(size),
  ].filter(Boolean).join(' · ');
}
