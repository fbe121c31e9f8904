// docs/how-to/drm.md as a reader follows it: its commands are copied from the document and run in a new folder. The
// page then plays the film.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { begun, ended, launch, open } from './browser.mjs';
import { binary, library, root, skip } from './support.mjs';

const page = fs.readFileSync(path.join(root, 'docs/how-to/drm.md'), 'utf8');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-howto-'));
const film = path.join(library, 'avc.mp4');
const missing = fs.existsSync(film) ? undefined : 'fixtures: avc.mp4 was not made';
const running = [];
let browser;
let address;

/** Returns an address on which nothing listens. */
function freeAddress() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(`127.0.0.1:${port}`));
    });
  });
}

before(async () => {
  browser = await launch();
  fs.mkdirSync(path.join(folder, 'bin'));
  fs.symlinkSync(path.resolve(binary), path.join(folder, 'bin/headwater'));
  fs.mkdirSync(path.join(folder, 'films'));
  if (!missing) fs.copyFileSync(film, path.join(folder, 'films/film.mp4'));
});
after(async () => {
  await browser?.close();
  for (const child of running) child.kill('SIGKILL');
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Returns the shell commands of a section, block by block. */
function blocksOf(heading) {
  const section = page.split(`\n## ${heading}\n`)[1].split('\n## ')[0];
  const blocks = [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, text]) => text);
  assert.ok(blocks.length > 0, heading);
  return blocks;
}

/** The document's own environment, except for a home and a port of the test. */
const shell = () => ({
  cwd: folder, encoding: 'utf8',
  env: { ...process.env, HOME: folder, PATH: `${folder}/bin:${process.env.PATH}`, HEADWATER_LISTEN: address },
});
const adapt = (text) => text.replaceAll('127.0.0.1:8080', address);

function run(text) {
  const done = spawnSync('bash', ['-euo', 'pipefail', '-c', adapt(text)], shell());
  assert.equal(done.status, 0, `${text}\n${done.stdout}${done.stderr}`);
  return done.stdout;
}

/** Starts the server of a command line, and waits until it listens. */
async function startServer(line) {
  address = await freeAddress();
  const child = spawn('bash', ['-c', `exec ${line.replace(/ *&$/, '')}`], { ...shell(), stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(child);
  for await (const said of createInterface({ input: child.stdout })) if (said.startsWith('listening on')) return child;
  return assert.fail(`${line} ended`);
}

test('five commands lead from nothing to a film that plays with ClearKey', async (t) => {
  if (missing) return skip(t, missing);
  const lines = blocksOf('Try it with ClearKey')[0].trim().split('\n');
  assert.equal(lines.length, 5, page);
  run(lines[0]);
  await startServer(lines[1]);
  assert.match(run(lines[2]), /^#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,.*KEYFORMAT="org.w3.clearkey"$/m);
  assert.match(run(lines[3]), /<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cbcs"/);
  const { keys } = JSON.parse(run(lines[4]));
  assert.equal(keys.length, 1);
  // The command with which the document derives keys.
  const derived = run(blocksOf('Derive the keys of `secret:FILE`')[0]).trim();
  assert.equal(derived, Buffer.from(keys[0].k, 'base64url').toString('hex'));
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  for (const engine of ['hls', 'shaka', 'dash']) {
    const view = await open(browser, { url: `http://${address}` }, 'film.mp4', `player=${engine}`);
    await view.until('the start', begun);
    await view.until('the end', engine === 'dash' ? () => { const s = window.headwater.state(); return s.ended || s.currentTime >= s.duration - 0.05; } : ended);
    assert.deepEqual([(await view.state()).errors, view.faults], [[], []], engine);
    // The page names the systems of the title.
    assert.match(await view.page.textContent('body'), /encrypted \(cbcs\) for ClearKey\./);
    await view.page.close();
  }
});

test('a CPIX document leads to the signaling of several systems', async (t) => {
  if (missing) return skip(t, missing);
  const [write, serve, verify] = blocksOf('Try it with a CPIX document');
  run(write);
  await startServer(serve.trim());
  const [session, systems] = verify.trim().split('\n').map(run);
  const formats = [...session.matchAll(/KEYFORMAT="([^"]+)"/g)].map(([, format]) => format).sort();
  const [widevine, playready] = ['urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed', 'com.microsoft.playready'];
  assert.deepEqual(formats, [playready, playready, widevine, widevine]);
  const words = systems.trim().split('\n').map((word) => word.replace(/.*"(urn:uuid:)?([^"]+)"/, '$2'));
  const [video, audio] = ['a1', 'a2'].map((end) => `00000000-0000-0000-0000-0000000000${end}`);
  const both = ['edef8ba9-79d6-4ace-a3c8-27dcd51d21ed', '9a04f079-9840-4286-ab92-e65be0885f95'];
  assert.deepEqual(words, [video, ...both, '3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c', audio, ...both]);
});

test('the certificate of the document is accepted', async (t) => {
  if (missing) return skip(t, missing);
  run(blocksOf('Request encrypted key values with SPEKE')[0]);
  await startServer('headwater serve ~/films --drm-keys speke:https://keys.example/speke --drm-private-key key.pem --drm-certificate certificate.pem');
});
