// Keys from a SPEKE key server that is made of pycpix (speke_server.py): it validates our requests, and encrypts the
// keys for the certificate that they contain. ffmpeg decrypts the films with the keys that it chose.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { boxes, download, frameHashes, playlists } from './protection.mjs';
import { root, serve, skip, text } from './support.mjs';

const python = path.join(root, 'target/cpix/bin/python');
const missing = fs.existsSync(path.join(root, 'target/cpix/version')) ? undefined : 'pycpix is not installed; run scripts/cpix.sh';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-speke-'));
const file = (name) => path.join(folder, name);
const TITLE = 'ladder';
let clear;
let keyServer;

/** Starts the key server. `seen` has an entry for each request. */
async function startKeyServer() {
  const child = spawn(python, [path.join(root, 'tests/judge/speke_server.py')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const seen = [];
  const url = await new Promise((resolve, reject) => {
    child.on('exit', () => reject(new Error('the key server ended')));
    lines.on('line', (line) => (line.startsWith('listening on ') ? resolve(line.slice('listening on '.length)) : seen.push(JSON.parse(line))));
  });
  return { url, seen, stop: () => child.kill('SIGKILL') };
}

before(async () => {
  clear = await serve(undefined, '--segment', '2s');
  if (missing) return;
  keyServer = await startKeyServer();
  const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', file('key.pem'), '-out', file('certificate.pem'), '-subj', '/CN=origin', '-days', '2'], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
});
after(() => {
  for (const server of [clear, keyServer]) server?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

const ENCRYPTED = ['--drm-private-key', file('key.pem'), '--drm-certificate', file('certificate.pem')];

for (const [speke, cpix, scheme] of [['2.0', '2.3', 'cbcs'], ['2.1', '2.4', 'cenc']]) {
  for (const flags of [ENCRYPTED, []]) {
    const kind = flags.length > 0 ? 'encrypted' : 'plain';
    test(`SPEKE ${speke}, ${scheme}: pycpix accepts the request, and its ${kind} keys decrypt the film`, async (t) => {
      if (missing) return skip(t, missing);
      const from = keyServer.seen.length;
      const server = await serve(undefined, '--segment', '2s', '--drm-keys', `speke:${keyServer.url}/{title}`, '--drm-speke-version', speke, '--drm-scheme', scheme, '--drm-key-per', 'resolution', '--drm-systems', 'widevine', ...flags);
      const mpd = await text(`${server.url}/${TITLE}/.mpd`);
      const [ours, theirs] = [await playlists(server, TITLE), await playlists(clear, TITLE)];
      const [request, ...others] = keyServer.seen.slice(from);
      assert.deepEqual([request.errors, others.length], [[], 0]);
      assert.deepEqual([request.contentId, request.version, request.headers['x-speke-version'], request.headers['content-type']], [TITLE, cpix, speke, 'application/xml']);
      assert.deepEqual(request.rules.map(([, type]) => type), ['SD', 'HD', 'UHD', 'AUDIO']);
      assert.deepEqual(new Set(request.schemes), new Set([scheme]));
      const pem = kind === 'plain' ? null : fs.readFileSync(file('certificate.pem'), 'utf8').replace(/-----[^-]+-----|\n/g, '');
      assert.equal(request.certificate, pem);
      const kidOf = Object.fromEntries(request.rules.map(([kid, type]) => [type, kid]));
      for (const [n, playlist] of ours.entries()) {
        const kid = kidOf[playlist.isVideo ? 'SD' : 'AUDIO'];
        const name = await download(playlist, file(`${speke}-${kind}-${n}.mp4`));
        const [decrypted, expected] = [frameHashes(name, request.keys[kid]), frameHashes(await download(theirs[n], file(`clear-${n}.mp4`)))];
        assert.ok(expected.out.split('\n').length > 3, expected.err);
        assert.equal(decrypted.out, expected.out, decrypted.err);
        // The key server's own signaling is written unchanged.
        const pssh = request.pssh[kid];
        assert.ok(playlist.body.includes(`URI="data:text/plain;base64,${pssh}"`), playlist.body);
        assert.ok(mpd.includes(`<cenc:pssh>${pssh}</cenc:pssh>`), mpd);
        assert.deepEqual(boxes(fs.readFileSync(name), 'pssh').map((box) => box.toString('base64')), [pssh]);
      }
      server.stop();
    });
  }
}

test('the keys of another certificate are refused', async (t) => {
  if (missing) return skip(t, missing);
  const made = spawnSync('openssl', ['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', file('other.pem')], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
  const flags = ['--drm-keys', `speke:${keyServer.url}/{title}`, '--drm-private-key', file('other.pem'), '--drm-certificate', file('certificate.pem')];
  await assert.rejects(serve(undefined, ...flags), /ended without/);
});
