// The CMCD collector: it decodes what the reference library of the standard encodes to the same values, and
// real players are its senders.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { CmcdEventType, CmcdReporter, decodeCmcd, encodeCmcd, toCmcdHeaders, toCmcdQuery, toCmcdValue, validateCmcdEvents } from '@svta/cml-cmcd';
import { launch, open } from './browser.mjs';
import { library, skip, start } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-collector-'));
const inFolder = (name) => path.join(folder, name);
const TOKEN = 'a-token-of-this-test';
const WAIT_MS = 60_000;
const servers = {};
let browser;

before(async () => {
  fs.writeFileSync(inFolder('token'), TOKEN);
  const collector = (name) => ['--cmcd-collector', '--cmcd-records', inFolder(`${name}.jsonl`), '--admin', '127.0.0.1:0', '--admin-token-file', inFolder('token')];
  servers.serve = await start('serve', library, '--segment', '2s', ...collector('serve'));
  servers.edge = await start('edge', '--origin', servers.serve.url, ...collector('edge'));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  Object.values(servers).forEach((server) => server.stop());
  fs.rmSync(folder, { recursive: true, force: true });
});

const authorization = { authorization: `Bearer ${TOKEN}` };
const viewers = async (server) => (await fetch(`${server.admin}/viewers.json`, { headers: authorization })).json();

async function sessionOf(server, id) {
  return (await viewers(server)).latest.find(({ session }) => session === id);
}

/** Waits until a session meets a condition, which may throw while the session does not exist. */
async function untilSession(server, id, event, holds) {
  for (const deadline = Date.now() + WAIT_MS; ;) {
    const session = await sessionOf(server, id);
    if (session && holds(session)) return session;
    if (Date.now() > deadline) assert.fail(`${event}: ${JSON.stringify(session)}`);
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}

async function post(server, body, type = 'application/cmcd') {
  const response = await fetch(`${server.url}/cmcd`, { method: 'POST', body, headers: { 'content-type': type } });
  assert.equal(response.status, 204, `${body}: ${await response.text()}`);
}

/** Waits for the records of a session. They are written within a moment of their arrival. */
async function recordsOf(name, id, count) {
  for (const deadline = Date.now() + WAIT_MS; ;) {
    const lines = fs.readFileSync(inFolder(`${name}.jsonl`), 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line));
    const found = lines.filter(({ cmcd }) => cmcd.sid === id);
    if (found.length >= count) return found;
    if (Date.now() > deadline) assert.fail(`${found.length} of ${count} records of ${id}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

/** Waits for the record with the values that the reference library decodes from a line. */
async function recordOf(id, line, received) {
  const wanted = decoded(line);
  for (const deadline = Date.now() + WAIT_MS; ; received = await recordsOf('edge', id, 1)) {
    if (received.some(({ cmcd }) => isDeepStrictEqual(cmcd, wanted))) return;
    if (Date.now() > deadline) assert.fail(`no record of ${line}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

/** The library's value in the form of our records, which cut texts to 256 characters. */
function plain(value) {
  if (typeof value === 'string') return [...value].slice(0, 256).join('');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'symbol') return value.description;
  if (value === null || typeof value !== 'object') return value;
  if (!('value' in value)) return value.description;
  const { value: item, params } = value;
  return params && Object.keys(params).length > 0 ? { value: plain(item), ...Object.fromEntries(Object.entries(params).map(([k, v]) => [k, plain(v)])) } : plain(item);
}
const decoded = (line) => Object.fromEntries(Object.entries(decodeCmcd(line)).map(([key, value]) => [key, plain(value)]));

const of = toCmcdValue;
const FACTS = {
  v: 2, cid: 'films/tos, "the film".mp4', ts: 1790000000123, sn: 3, st: 'v', sf: 'd', ot: 'v', sta: 'p', pt: 1234.5, pr: 1.5,
  br: [of(3000, { v: true }), of(128, { a: true })], tb: [of(6000, { v: true })], lb: [of(300, { v: true })], ab: [of(3128, { av: true })],
  bl: [of(12_300, { v: true }), of(9000, { a: true })], mtp: [of(25_400, { v: true })], msd: 421, ltc: 3000, dfa: 4,
  bs: true, bsd: [of(1200, { v: true })], bsa: [of(2, { v: true })], bsda: [of(3000, { v: true })],
  ec: ['E(1', 'E 2'], cdn: 'east', nr: true, d: 4004, dl: 800, su: true, cs: 'a)b', rtp: 5000,
  nor: [of('../2.m4s', { r: '0-99' })], 'com.example-key': 'x', 'ab-c': 5,
};
const MORE = { ce: { cen: 'my-event' }, h: { h: 'host.test' }, b: { bg: true }, rr: { url: 'http://cdn.test/a.m4s', rc: 200, ttfb: 10, ttlb: 20, ttfbb: 12, smrt: 'a', cmsdd: '"x";etp=5', cmsds: 'ot=v' } };

for (const name of ['serve', 'edge']) {
  test(`${name} decodes events of every type to the values that were encoded`, async () => {
    const types = [...Object.values(CmcdEventType), 'h'];
    const id = `events, "${name}"`;
    const lines = types.map((e) => encodeCmcd({ ...FACTS, sid: id, e, ...MORE[e] }, { version: 2, reportingMode: 'event' }));
    await post(servers[name], lines.join('\n'));
    await post(servers[name], lines.join('\r\n'), 'text/plain;charset=UTF-8');
    const records = await recordsOf(name, id, 2 * lines.length);
    for (const [at, line] of [...lines, ...lines].entries()) assert.deepEqual(records[at].cmcd, decoded(line), line);
    assert.ok(types.length > 15 && new Set(records.map(({ cmcd }) => cmcd.e)).size >= types.length - 1, String(types));
    const session = await sessionOf(servers[name], id);
    assert.deepEqual([session.title, session.pathway, session.bitrate_kbps, session.buffer_ms, session.stalls, session.stalled_ms, session.start_up_ms, session.errors],
      [FACTS.cid, 'east', 3000, 12_300, 2, 3000, 421, 2]);
    const exported = await (await fetch(`${servers[name].admin}/metrics`, { headers: authorization })).text();
    for (const e of types) assert.match(exported, new RegExp(`headwater_cmcd_reports_total\\{event="${e}"\\} 2\n`));
  });

  for (const mode of ['query', 'headers']) {
    test(`${name} decodes requests with CMCD in ${mode} to the values that were encoded`, async () => {
      const id = `${name} ${mode}`;
      const data = { ...FACTS, sid: id };
      const query = mode === 'query' ? `?${toCmcdQuery(data, { version: 2 })}` : '';
      const headers = mode === 'headers' ? toCmcdHeaders(data, { version: 2 }) : {};
      const response = await fetch(`${servers[name].url}/film/.mpd${query}`, { headers });
      assert.equal(response.status, 200);
      const [{ cmcd, mode: recorded, path: requested }] = await recordsOf(name, id, 1);
      assert.deepEqual([cmcd, recorded, requested], [decoded(encodeCmcd(data, { version: 2, reportingMode: 'request' })), 'request', '/film/.mpd']);
    });
  }
}

test('the reporter of the reference library sends to the collector', async () => {
  const url = `${servers.edge.url}/cmcd`;
  const statuses = [];
  const send = async ({ url: to, ...request }) => {
    const { status } = await fetch(to, request);
    statuses.push(status);
    return { status };
  };
  const enabledKeys = ['sid', 'cid', 'sta', 'bl', 'br', 'msd', 'ec', 'e', 'ts', 'sn', 'v'];
  const reporter = new CmcdReporter({ sid: 'reporter', cid: 'film', enabledKeys, eventTargets: [{ url, events: ['ps', 'e', 't'], interval: 30, batchSize: 2, enabledKeys }] }, send);
  reporter.start();
  for (const sta of ['s', 'p', 'r', 'p']) reporter.update({ sta });
  reporter.recordEvent('e', { ec: ['X-1'] });
  reporter.stop(true);
  const { stalls, last_error: error, title } = await untilSession(servers.edge, 'reporter', 'an error', ({ errors }) => errors === 1);
  assert.deepEqual([stalls, error, title], [1, 'X-1', 'film']);
  assert.ok(statuses.length > 1 && statuses.every((status) => status === 204), String(statuses));
});

// Players with their own reporters, on a page of the same server. All of them send events of version 2, but
// Shaka Player 5.2 reports no state, and dash.js 5.2 only the keys that are listed.
const PLAYERS = {
  'hls.js': ['hls.min.js', ['ps', 't'], (video, url, targets) => {
    const hls = new globalThis.Hls({ cmcd: { sessionId: 'hls.js', contentId: 'film', version: 2, eventTargets: targets } });
    hls.loadSource(`${url}/film/.m3u8`);
    hls.attachMedia(video);
  }],
  'dash.js': ['dash.all.min.js', ['ps', 't'], (video, url, targets) => {
    const player = globalThis.dashjs.MediaPlayer().create();
    player.initialize();
    const enabledKeys = ['sid', 'cid', 'sta', 'bl', 'br', 'ec', 'e', 'ts', 'sn', 'v'];
    const withKeys = targets.map((target) => ({ ...target, enabled: true, enabledKeys }));
    player.updateSettings({ streaming: { cmcd: { enabled: true, sid: 'dash.js', cid: 'film', version: 2, eventTargets: withKeys } } });
    player.attachView(video);
    player.attachSource(`${url}/film/.mpd`);
  }],
  Shaka: ['shaka-player.compiled.js', ['bc', 't'], async (video, url, targets) => {
    const player = new globalThis.shaka.Player();
    await player.attach(video);
    const enabled = targets.map((target) => ({ ...target, enabled: true }));
    player.configure({ cmcd: { enabled: true, sessionId: 'Shaka', contentId: 'film', version: 2, eventTargets: enabled } });
    await player.load(`${url}/film/.mpd`);
  }],
};

for (const [player, [script, events, play]] of Object.entries(PLAYERS)) {
  test(`${player} sends requests and events of version 2`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const { url } = servers.edge;
    const page = await browser.newPage();
    const bodies = [];
    page.on('response', (response) => response.status() === 204 && bodies.push(response.request().postData()));
    await page.goto(`${url}/`);
    await page.addScriptTag({ url: `${url}/-/vendor/${script}` });
    await page.evaluate(async ([start, to]) => {
      const video = document.createElement('video');
      video.muted = true;
      document.body.append(video);
      const targets = [{ url: `${to}/cmcd`, events: ['ps', 't', 'bc', 'rr', 'e'], interval: 1, batchSize: 1 }];
      await globalThis.eval(`(${start})`)(video, to, targets);
      await new Promise((ready) => { video.addEventListener('canplay', ready, { once: true }); });
      await video.play();
    }, [play.toString(), url]);
    const state = events.includes('ps') ? 'playing' : 'unknown';
    const session = await untilSession(servers.edge, player, 'a playing session', (found) => found.state === state && found.bitrate_kbps > 0 && found.buffer_ms > 0 && found.reports > 8);
    await page.close();
    assert.equal(session.stalls, 0, JSON.stringify(session));
    assert.equal(session.title, 'film');
    assert.ok(session.tcp?.rtt_us > 0 || session.tcp === null, JSON.stringify(session));
    const modes = (await recordsOf('edge', player, session.reports)).map((record) => `${record.mode} ${record.cmcd.e ?? ''}`);
    for (const mode of ['request ', ...events.map((event) => `event ${event}`)]) assert.ok(modes.includes(mode), `${mode} in ${modes}`);
    const lines = bodies.join('\n').split('\n').filter(Boolean);
    assert.ok(lines.length > 3, `${lines.length} lines`);
    const received = await recordsOf('edge', player, session.reports);
    for (const line of lines) await recordOf(player, line, received);
    return undefined;
  });
}

test('the page sends events of a session from its start to its end', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const bodies = [];
  const view = await open(browser, servers.edge, 'film', 'player=mse', async (page) => {
    page.on('request', (request) => request.method() === 'POST' && bodies.push(request.postData()));
  });
  await view.until('playback', () => window.headwater.state().currentTime > 2);
  const [{ session: id }] = (await viewers(servers.edge)).latest.filter(({ title, state }) => title === 'film' && state === 'playing');
  const playing = await untilSession(servers.edge, id, 'figures', (found) => found.start_up_ms > 0 && found.bitrate_kbps > 0 && found.buffer_ms > 0);
  const { startup_ms: startUp } = await view.state();
  assert.equal(playing.start_up_ms, startUp);
  assert.equal(playing.stalls, 0);
  await view.page.evaluate(() => { document.querySelector('video').pause(); });
  await untilSession(servers.edge, id, 'the pause', ({ state }) => state === 'paused');
  assert.deepEqual(view.faults, []);
  await view.page.goto('about:blank');
  await untilSession(servers.edge, id, 'the end', ({ state }) => state === 'quit');
  await view.page.close();
  assert.ok(bodies.length > 2, `${bodies.length} requests`);
  for (const body of bodies) {
    const { issues } = validateCmcdEvents(body, { version: 2 });
    assert.deepEqual(issues.filter(({ severity }) => severity === 'error'), [], body);
  }
});
