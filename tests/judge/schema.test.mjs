// xmllint validates every MPD against the schema of ISO/IEC 23009-1. The schema is not redistributable:
// scripts/schema.sh fetches it into target/schema, or DASH_SCHEMA names a copy.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { root, serve, skip, text, titles } from './support.mjs';

const schema = process.env.DASH_SCHEMA ?? path.join(root, 'target/schema/DASH-MPD.xsd');
const tracks = path.join(root, 'target/fixtures/tracks');
const secret = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-schema-')), 'secret');
const SYSTEMS = ['widevine', 'playready', 'fairplay', 'clearkey'];
const servers = {};
before(async () => {
  fs.writeFileSync(secret, 'a secret of at least sixteen bytes');
  const systems = SYSTEMS.flatMap((system) => ['--drm-systems', system]);
  servers.clear = await serve();
  servers.partial = await serve(tracks);
  servers.protected = await serve(undefined, '--drm-keys', `secret:${secret}`, '--drm-key-per', 'resolution', ...systems);
});
after(() => {
  for (const server of Object.values(servers)) server.stop();
  fs.rmSync(path.dirname(secret), { recursive: true, force: true });
});

/** Titles whose codecs cannot be protected yet. */
const UNPROTECTED = ['av1.mp4', 'vp9.mp4'];

for (const kind of ['clear', 'protected']) test(`every ${kind} MPD is valid`, { timeout: 300_000 }, async (t) => {
  if (!fs.existsSync(schema)) return skip(t, 'DASH schema: DASH-MPD.xsd is not installed; run scripts/schema.sh');
  // The schema imports the XLink schema by URL. Our copy declares the attributes that it uses.
  const local = path.join(root, `target/schema-local/${kind}`);
  fs.mkdirSync(local, { recursive: true });
  const own = fs.readFileSync(schema, 'utf8').replace(/schemaLocation="[^"]*xlink\.xsd"/, 'schemaLocation="xlink.xsd"');
  fs.writeFileSync(path.join(local, 'DASH-MPD.xsd'), own);
  fs.copyFileSync(path.join(root, 'tests/judge/xlink.xsd'), path.join(local, 'xlink.xsd'));
  const files = [];
  const films = fs.readdirSync(tracks).filter((name) => name.endsWith('.mp4'));
  const partial = kind === 'clear' ? films.map((title) => [servers.partial, title]) : [];
  const whole = titles.filter((name) => kind === 'clear' || !UNPROTECTED.includes(name));
  for (const [{ url }, title] of [...whole.map((title) => [servers[kind], title]), ...partial]) {
    for (const template of ['time', 'number']) {
      const file = path.join(local, `${title}.${template}.mpd`);
      fs.writeFileSync(file, await text(`${url}/${title}/.mpd?template=${template}`));
      files.push(file);
    }
  }
  const found = spawnSync('xmllint', ['--noout', '--nonet', '--schema', path.join(local, 'DASH-MPD.xsd'), ...files], { encoding: 'utf8' });
  const faults = found.stderr.split('\n').filter((line) => line && !line.endsWith(' validates'));
  assert.deepEqual(faults, []);
  assert.equal(found.status, 0);
});
