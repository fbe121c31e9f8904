// The library view: a card per title.

import { capitalize } from './errors.js';
import { bytes, codecName, duration, el, getJson, language, playHash } from './format.js';
import { queuePoster } from './poster.js';

/** Cards that are added at a time. */
const CARDS_PER_PAGE = 120;

/** Shows the library in the element `main`, unless the viewer has left it (`isShown`) when the list arrives. */
export async function showLibrary(main, isShown) {
  document.title = 'Headwater';
  const url = new URL('-/library.json', new URL('.', location.href)).href;
  const library = await getJson(url).catch((error) => {
    if (!error.reason) throw error;
    return { titles: [], error: error.reason };
  });
  if (!isShown()) return;
  const { titles, truncated } = library;
  if (titles.length === 0) {
    main.replaceChildren(el('h1', {}, 'Library'), ...describeEmptyLibrary(library), ...listIgnoredFiles(library));
    return;
  }
  const cards = el('ul', { class: 'cards' });
  const visibility = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((e) => {
    visibility.unobserve(e.target);
    e.target.draw();
  }), { rootMargin: '200px' });
  const showMatches = (query) => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = titles.filter((t) => words.every((word) => t.path.toLowerCase().includes(word)));
    cards.replaceChildren();
    const more = () => {
      button?.remove();
      const from = cards.childElementCount;
      cards.append(...matches.slice(from, from + CARDS_PER_PAGE).map((title) => createCard(title, visibility)));
      if (from + CARDS_PER_PAGE >= matches.length) return;
      // The button, which has the focus, is removed.
      const moreAndFocus = () => {
        const links = cards.querySelectorAll('a').length;
        more();
        cards.querySelectorAll('a')[links]?.focus();
      };
      button = el('li', {}, el('button', { type: 'button', onclick: moreAndFocus }, `Show more of ${matches.length}`));
      cards.append(button);
    };
    let button = null;
    more();
    count.textContent = `${matches.length === 1 ? '1 title' : `${matches.length} titles`}${truncated ? ' (the list is incomplete)' : ''}`;
  };
  const count = el('span', { class: 'quiet', role: 'status' });
  const search = el('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search the library', oninput: () => showMatches(search.value) });
  main.replaceChildren(el('div', { class: 'row' }, el('h1', {}, 'Library'), count, titles.length > 6 && search), cards, ...listIgnoredFiles(library));
  showMatches('');
}

/** Explains why no title is shown, and what to do. */
export function describeEmptyLibrary({ source, error }) {
  if (error) {
    return [el('p', { class: 'bad', role: 'alert' }, `${capitalize(error)}.`),
      el('p', {}, el('button', { type: 'button', onclick: () => location.reload() }, 'Try again'))];
  }
  const note = (text) => el('p', { class: 'note' }, text);
  if (source === 'unlisted') {
    return [note('This library is on an HTTP server, which cannot list its films. Enter the path of a film.'), createPathForm()];
  }
  return [note(source === 'storage'
    ? 'This library is empty. Upload MP4 files to the bucket and prefix that headwater serves, then reload the page.'
    : 'This library is empty. Put MP4 files into the folder that headwater serves, then reload the page.')];
}

/** Names files that are not listed although they may contain films, and the remedies. */
function listIgnoredFiles({ ignored }) {
  if (!ignored?.count) return [];
  const items = ignored.first.map(({ file, reason, fix }) => el('li', {}, `${file} ${reason}; ${fix}.`));
  const more = ignored.count - items.length;
  if (more > 0) items.push(el('li', {}, `${more} more.`));
  return [el('p', { class: 'note' }, 'Not listed:'), el('ul', { class: 'quiet ignored' }, ...items)];
}

/** A field for the path of a film. */
function createPathForm() {
  const field = el('input', { type: 'text', name: 'path', required: true, placeholder: 'folder/film.mp4', 'aria-label': 'Path of the film', autocomplete: 'off', spellcheck: 'false' });
  const play = (event) => {
    event.preventDefault();
    const path = field.value.trim().replace(/^\/+|\/+$/g, '');
    if (path !== '') location.hash = playHash(path);
  };
  return el('form', { class: 'row path', onsubmit: play }, field, el('button', { type: 'submit' }, 'Play'));
}

function createCard(title, visibility) {
  const posterCanvas = el('canvas', { class: 'poster', 'aria-hidden': 'true' });
  const bars = el('canvas', { class: 'bars', 'aria-hidden': 'true' });
  const badge = el('span', { class: 'badge', hidden: title.duration_ms == null }, duration(title.duration_ms ?? NaN));
  const summary = el('p', { class: 'quiet' }, describeTitle(title));
  const art = el('div', { class: 'art' }, el('span', { class: 'initial', 'aria-hidden': 'true' }, initialOf(title)), posterCanvas, bars,
    badge);
  const folder = title.path.split('/').slice(0, -1).join(' / ');
  const words = el('div', { class: 'words' },
    el('h2', { title: title.path }, title.name || title.path || 'All files'),
    folder && el('p', { class: 'quiet' }, folder),
    title.error ? el('p', { class: 'bad' }, describeTitleError(title)) : summary);
  if (title.error) return el('li', { class: 'card broken' }, art, words);
  const link = el('a', { class: 'card', href: playHash(title.path) }, art, words);
  // The list of a remote library contains names only. The poster needs the description of the film anyway.
  const describe = (description) => {
    if (title.duration_ms != null) return;
    const known = summarize(description);
    badge.textContent = duration(known.duration_ms);
    badge.hidden = false;
    summary.textContent = describeTitle(known);
  };
  link.draw = () => queuePoster(title.path, posterCanvas, bars, describe);
  visibility.observe(link);
  return el('li', {}, link);
}

/** Returns the error of a title as a sentence. The card already names the file. */
export function describeTitleError({ path, error }) {
  const prefix = `${path}: `;
  // The error of a folder starts with the name of a file in it.
  return error.startsWith(prefix) ? `${capitalize(error.slice(prefix.length))}.` : `${error}.`;
}

const initialOf = (title) => [...(title.name || title.path || '♪')][0].toUpperCase();

/** Returns what a card shows of a title's description. */
function summarize({ duration_ms, files, renditions }) {
  const [video, audio] = ['video', 'audio'].map((kind) => renditions.filter((r) => r.kind === kind));
  return { duration_ms, video, audio, bytes: files.reduce((sum, file) => sum + file.bytes, 0) };
}

/** "540p · 3 qualities · AVC · English, French · 2.8 MiB". */
function describeTitle({ video = [], audio = [], bytes: size, duration_ms: durationMs }) {
  const tallest = Math.max(0, ...video.map((v) => v.height ?? 0));
  const languages = [...new Set(audio.map((a) => language(a.language)).filter(Boolean))];
  const codecs = [...new Set([...video, ...audio].map((r) => codecName(r.codecs)))];
  return [
    tallest > 0 ? `${tallest}p` : durationMs != null && video.length === 0 && 'audio only',
    video.length > 1 && `${video.length} qualities`,
    codecs.join(', '),
    languages.join(', '),
    bytes(size),
  ].filter(Boolean).join(' · ');
}
