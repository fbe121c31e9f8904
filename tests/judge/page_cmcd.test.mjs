// The players of the page send CMCD: the reference library of the standard accepts it, and rules of the edge
// that pace by it apply.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { validateCmcdRequest } from '@svta/cml-cmcd';
import { begun, launch, open } from './browser.mjs';
import { startRelay } from './relay.mjs';
import { library, skip, start } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-page-cmcd-'));
const records = path.join(folder, 'edge.jsonl');
const PLAYERS = ['mse', 'hls', 'dash', 'shaka'];
let origin;
let edge;
let relay;
let browser;

before(async () => {
  origin = await start('serve', library, '--segment', '2s');
  const config = path.join(folder, 'edge.toml');
  fs.writeFileSync(config, `[[rule]]
name = "pace by buffer"
when = 'path.endsWith(".m4s") && has(cmcd.bl)'
pace = "ramp(cmcd.bl, 0.0, 100.0, 30000.0, 50.0) * cmcd.tb"
`);
  edge = await start('edge', '--config', config, '--origin', origin.url, '--records', records);
  relay = await startRelay(edge);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  relay?.stop();
  edge?.stop();
  origin?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

const cmcdOf = ({ headers }) => Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('cmcd-')));

function validate(request) {
  const result = validateCmcdRequest({ url: request.url, method: 'GET', headers: cmcdOf(request) }, { version: 1 });
  const errors = result.issues.filter((issue) => issue.severity === 'error');
  assert.deepEqual(errors, [], `${request.url} ${JSON.stringify(cmcdOf(request))}`);
  return result.data;
}

/** Plays past the buffer target, and returns the requests of the player for segments. */
async function play(player) {
  relay.requests = [];
  const view = await open(browser, relay, 'film', `player=${player}`);
  await view.until('five seconds', () => window.headwater.state().currentTime > 5);
  const { errors } = await view.state();
  assert.deepEqual(errors, []);
  await view.page.close();
  return relay.requests.filter((request) => /\.m4s(\?|$)/.test(request.url));
}

for (const player of PLAYERS) {
  test(`${player} sends valid CMCD with each segment request`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const segments = await play(player);
    assert.ok(segments.length > 10, `${segments.length} segments`);
    // A query would give each request its own key in other caches.
    assert.deepEqual(segments.filter((request) => request.url.includes('CMCD')), []);
    const data = segments.map(validate);
    const keys = new Set(data.flatMap((one) => Object.keys(one)));
    for (const key of ['br', 'bl', 'd', 'ot', 'sf', 'sid', 'su', 'tb', 'cid']) assert.ok(keys.has(key), `${key} was never sent: ${[...keys]}`);
    assert.equal(new Set(data.map((one) => one.sid)).size, 1, 'one session');
    assert.ok(data.every((one) => one.ot && one.sf && (one.ot !== 'v' || one.tb > 0)), JSON.stringify(data));
  });
}

for (const [variant, title] of [['cmaf', 'film'], ['file', 'avc.mp4']]) {
  test(`the player of the browser sends valid CMCD with its first request (${variant})`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    relay.requests = [];
    const view = await open(browser, relay, title, `player=native&variant=${variant}`);
    await view.until('the start', begun);
    assert.deepEqual((await view.state()).errors, []);
    await view.page.close();
    const first = relay.requests.find((request) => request.url.includes('CMCD='));
    assert.ok(first, 'no request with CMCD');
    const { sid, cid, sf } = validate(first);
    assert.deepEqual([sid.length, cid, sf], [36, title, variant === 'file' ? 'o' : 'h']);
  });
}

test('a session has a fresh identifier, and names of films need not be ASCII', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage();
  await page.goto(`${relay.url}/`);
  const [first, second, headers] = await page.evaluate(async () => {
    const { startSession, encodeHeaders } = await import('/-/cmcd.js');
    const name = 'Ärger "im" Büro/Folge 2.mp4';
    return [startSession(name), startSession(name), encodeHeaders({ ...startSession(name), bs: true, su: false, ot: 'v', br: 5, mtp: undefined })];
  });
  assert.notEqual(first.sid, second.sid);
  assert.equal(headers['CMCD-Object'], 'br=5,ot=v');
  assert.equal(headers['CMCD-Status'], 'bs');
  assert.equal(headers['CMCD-Request'], undefined);
  assert.match(headers['CMCD-Session'], /^cid="%C3%84rger%20%22im%22[!-~]*",sid="[0-9a-f-]{36}"$/);
  await page.close();
});

// The last test: the edge writes its records when it ends.
test('a rule of the edge paces all players by their buffer', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  assert.equal(await edge.drain(), 0);
  const lines = fs.readFileSync(records, 'utf8').trim().split('\n').map(JSON.parse);
  const paced = lines.filter((record) => record.rule === 'pace by buffer' && record.cmcd.bl > 0);
  const sessions = new Set(paced.map((record) => record.cmcd.sid));
  assert.equal(sessions.size, PLAYERS.length, `${paced.length} of ${lines.length} records`);
});
