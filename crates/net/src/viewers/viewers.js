// Replaces the content of the page by its current state.
'use strict';
const PERIOD_MS = 2000;

async function update() {
  const state = document.getElementById('state');
  try {
    const response = await fetch('viewers', { cache: 'no-store' });
    if (!response.ok) throw new Error(`status ${response.status}`);
    // Scripts of a parsed document never run.
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    document.querySelector('main').replaceChildren(...page.querySelector('main').childNodes);
    state.textContent = '';
    state.className = '';
  } catch (error) {
    state.textContent = `cannot load the viewers: ${error.message}`;
    state.className = 'bad';
  }
  setTimeout(update, PERIOD_MS);
}

setTimeout(update, PERIOD_MS);
