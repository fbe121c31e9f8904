// The texts of the page's errors, without a browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { get } from '../../player/format.js';

async function errorText(header, status = 404) {
  globalThis.fetch = async () => new Response('', { status, headers: header ? { 'Headwater-Error': header } : {} });
  return get('http://127.0.0.1/films/a%20film.mp4/.json').then(() => null, (error) => error.message);
}

test('viewers see no internal words of the error field', async () => {
  for (const side of ['client', 'upstream', 'internal']) {
    const text = await errorText(`${side}; there is no such file`);
    assert.match(text, /^The server does not have this film.* There is no such file\.$/);
    assert.doesNotMatch(text, /client|upstream|internal/);
  }
  assert.match(await errorText('internal'), /^The server does not have this film/);
  assert.doesNotMatch(await errorText('internal'), /internal/);
});
