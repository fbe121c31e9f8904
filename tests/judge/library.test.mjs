// The page of a library without listed titles, in a minimal document.

import assert from 'node:assert/strict';
import { test } from 'node:test';

class FakeElement {
  constructor(tag) { Object.assign(this, { tag, children: [], attributes: {}, listeners: {}, value: '' }); }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener(name, act) { this.listeners[name] = act; }
  append(...children) { this.children.push(...children); }
  get text() { return this.children.map((child) => child.text ?? child).join(''); }
}
globalThis.document = { createElement: (tag) => new FakeElement(tag) };
globalThis.location = { hash: '', href: 'http://127.0.0.1/' };
const { describeEmptyLibrary, describeTitleError } = await import('../../player/library.js');
const { titleUrl } = await import('../../player/format.js');

const textOf = (library) => describeEmptyLibrary(library).map((part) => part.text).join(' ');

test('a library that cannot be listed shows the reason instead of an empty folder', () => {
  const text = textOf({ error: 'the library cannot be listed: status 403 SignatureDoesNotMatch; check the secret key' });
  assert.match(text, /^The library cannot be listed: .*SignatureDoesNotMatch; check the secret key\./);
  assert.doesNotMatch(text, /Put MP4 files/);
});

test('an empty library names the place for films', () => {
  assert.match(textOf({ source: 'folder' }), /Put MP4 files into the folder/);
  assert.match(textOf({ source: 'storage' }), /Upload MP4 files to the bucket/);
});

test('the error on a card is a sentence that does not repeat the name of the file', () => {
  assert.equal(describeTitleError({ path: 'a/b.mp4', error: 'a/b.mp4: this is not an MP4 file' }), 'This is not an MP4 file.');
  assert.equal(describeTitleError({ path: 'a', error: 'a/c.mp4: this is not an MP4 file' }), 'a/c.mp4: this is not an MP4 file.');
});

test('a library on an HTTP server has a field for the path of a film', () => {
  const [note, form] = describeEmptyLibrary({ source: 'unlisted' });
  assert.match(note.text, /cannot list its films/);
  const [field] = form.children;
  field.value = ' /my films/a b.mp4 ';
  let prevented = false;
  form.listeners.submit({ preventDefault: () => { prevented = true; } });
  assert.ok(prevented);
  assert.equal(location.hash, '#/play/my%20films/a%20b.mp4');
  field.value = '/';
  location.hash = '';
  form.listeners.submit({ preventDefault: () => {} });
  assert.equal(location.hash, '');
});

test('no path of a title names another server', () => {
  assert.equal(titleUrl('a b/c', '.json'), 'http://127.0.0.1/a%20b/c/.json');
  assert.equal(titleUrl('', '.json'), 'http://127.0.0.1/.json');
  assert.equal(titleUrl(''), 'http://127.0.0.1/');
  for (const path of ['//other.example/a', 'http://other.example/a', '\\\\other.example/a']) {
    assert.equal(new URL(titleUrl(path, '.json')).host, '127.0.0.1', path);
  }
  assert.equal(new URL(titleUrl('', '//other.example/a')).host, '127.0.0.1');
});
