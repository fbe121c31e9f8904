// The Workflow Manager, used by other clients: curl, schemathesis, jsonpath-rfc9535, Chromium.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch } from './browser.mjs';
import { binary, root, skip, start } from './support.mjs';

const WDD = 'application/mpeg-nbmp-wdd+json';
const judges = path.join(root, 'target/api/bin');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-lab-'));
let server;

before(async () => {
  server = await start('lab serve', '--out', folder);
});
after(async () => {
  server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Sends a request with curl. Returns status, headers, and the body, parsed if it is JSON. */
function curl(target, ...more) {
  const out = execFileSync('curl', ['-sS', '-i', '--max-time', '60', ...more, server.url + target], { encoding: 'utf8' });
  const [head, ...rest] = out.split('\r\n\r\n');
  const [line, ...headers] = head.split('\r\n');
  const body = rest.join('\r\n\r\n');
  return {
    status: Number(line.split(' ')[1]),
    header: (name) => headers.find((h) => h.toLowerCase().startsWith(`${name}:`))?.split(': ')[1],
    body,
    json: () => JSON.parse(body),
  };
}

const parameter = (name, datatype, restrictions, id = 1) => ({
  name, id, datatype, values: [{ name: 'value', id: 1, restrictions }],
});

/** An experiment with a known result. */
const known = (id, run = 'echo \'{"x": 7}\'', state = 'instantiated') => ({
  scheme: { uri: 'urn:mpeg:mpegi:nbmp:2023' },
  general: { id, name: 'known', description: 'Is what is known known?', state },
  processing: {
    'function-restrictions': [
      {
        instance: 'known',
        general: { id: 'measure' },
        monitoring: { variable: [{ name: 'x', definition: '/x', unit: '1', 'var-type': 'number' }] },
        configuration: { parameters: [parameter('run', 'string', [run])] },
      },
      {
        instance: 'lab.experiment',
        configuration: { parameters: [parameter('rounds', 'integer', { 'min-value': 2, 'max-value': 2 })] },
      },
    ],
  },
});

const post = (document, ...more) => curl('/workflows', '-H', `Content-Type: ${WDD}`, '--data-binary', JSON.stringify(document), ...more);

async function until(what, holds) {
  for (const began = Date.now(); Date.now() - began < 60_000;) {
    const found = holds();
    if (found) return found;
    await new Promise((later) => { setTimeout(later, 50); });
  }
  return assert.fail(`waited for ${what}`);
}

/** Not every machine can make network namespaces. */
const links = spawnSync(binary, ['lab', 'link', '--', 'true']).status === 0;

test('a posted workflow runs, and a deleted one is gone', async (t) => {
  if (!links) return skip(t, 'posted workflows: this machine cannot make links');
  const made = post(known('runs'));
  assert.equal(made.status, 201, made.body);
  assert.equal(made.header('location'), '/workflows/runs');
  assert.equal(made.header('content-type'), WDD);
  const idle = () => {
    const now = curl('/workflows/runs').json();
    assert.notEqual(now.general.state, 'in-error', JSON.stringify(now.monitoring));
    return now.general.state === 'idle' && now;
  };
  const done = await until('idle', idle);
  const variables = new Map(done.monitoring.variable.map((v) => [v.name, v.value]));
  assert.equal(variables.get('lab.runs-done'), '2');
  assert.equal(variables.get('lab.last.x'), '7');
  assert.equal(curl('/workflows/runs/summary').json().arms[0].values.x.mean, 7);
  assert.ok(fs.existsSync(path.join(folder, 'workflows/runs/runs.jsonl')));
  // Another document under the same name starts without files of the first.
  const other = curl('/workflows/runs', '-X', 'PUT', '-H', `Content-Type: ${WDD}`, '--data-binary', JSON.stringify(known('runs', 'echo \'{"x": 8}\'')));
  assert.equal(other.status, 200, other.body);
  await until('idle again', idle);
  const [arm] = curl('/workflows/runs/summary').json().arms;
  assert.deepEqual([arm.runs, arm.values.x.mean], [2, 8]);
  const gone = curl('/workflows/runs', '-X', 'DELETE');
  assert.deepEqual([gone.status, gone.json().general.state], [200, 'destroyed']);
  assert.equal(curl('/workflows/runs').status, 404);
  assert.ok(!fs.existsSync(path.join(folder, 'workflows/runs')));
});

test('a running workflow is stopped, a queued one waits, and nothing is left behind', async (t) => {
  if (!links) return skip(t, 'stopping workflows: this machine cannot make links');
  const mark = `4${process.pid}`;
  assert.equal(post(known('long', `sleep ${mark}`)).status, 201);
  const alive = () => spawnSync('pgrep', ['-fx', `sleep ${mark}`]).status === 0;
  await until('the sink', alive);
  const waits = post(known('waits'));
  assert.deepEqual([waits.status, waits.header('retry-after')], [202, '10']);
  assert.equal(curl('/workflows/waits').json().general.state, 'instantiated');
  const change = (state) => curl('/workflows/long', '-X', 'PATCH', '-H', 'Content-Type: application/json',
    '--data', JSON.stringify({ general: { id: 'long', state } }));
  const whole = curl('/workflows/long', '-X', 'PUT', '--data-binary', JSON.stringify(known('long')), '-H', `Content-Type: ${WDD}`);
  assert.equal(whole.status, 409, whole.body);
  assert.equal(change('in-error').status, 400);
  const stopped = change('idle');
  assert.deepEqual([stopped.status, stopped.json().general.state], [200, 'idle']);
  await until('its end', () => !alive());
  await until('the other', () => curl('/workflows/waits').json().general.state === 'idle');
  assert.equal(change('running').status, 200);
  await until('the sink again', alive);
  assert.equal(curl('/workflows/long', '-X', 'DELETE').status, 200);
  await until('its end again', () => !alive());
  assert.equal(curl('/workflows/waits', '-X', 'DELETE').status, 200);
  assert.deepEqual(fs.readdirSync(path.join(folder, 'workflows')), []);
});

test('reports are posted to allowed URLs only', async (t) => {
  const { createServer } = await import('node:http');
  const reports = [];
  const taker = createServer((request, response) => {
    let body = '';
    request.on('data', (data) => { body += data; });
    request.on('end', () => { reports.push(JSON.parse(body)); response.end(); });
  });
  await new Promise((ready) => { taker.listen(0, '127.0.0.1', ready); });
  t.after(() => taker.close());
  const reporting = (url) => ({
    'reporting-type': 'periodic', 'reporting-interval': 100, 'report-start-time': '2026-11-21T00:00:00Z',
    url, 'delivery-method': 'HTTP POST', 'report-type': 'urn:example:x',
  });
  for (const url of ['http://192.0.2.1/x', 'https://127.0.0.1/x', 'http://169.254.169.254/latest/meta-data']) {
    const refused = post({ ...known('reports'), reporting: reporting(url) });
    assert.deepEqual([refused.status, refused.json().acknowledge.unsupported], [422, ['$.reporting.url']]);
  }
  if (!links) return skip(t, 'reports: this machine cannot make links');
  const url = `http://127.0.0.1:${taker.address().port}/reports`;
  const made = post({ ...known('reports', 'sleep 0.5; echo \'{"x": 7}\''), reporting: reporting(url) });
  assert.equal(made.status, 201, made.body);
  assert.deepEqual(made.json().acknowledge.partial, ["$.reporting['report-start-time']"]);
  await until('the last report', () => reports.at(-1)?.state === 'idle');
  assert.ok(reports.length > 4 && reports.some((r) => r.state === 'running'), JSON.stringify(reports.map((r) => r.state)));
  const last = new Map(reports.at(-1).variable.map((v) => [v.name, v.value]));
  assert.equal(last.get('lab.last.x'), '7');
  curl('/workflows/reports', '-X', 'DELETE');
});

test('errors have a status and a JSONPath', (t) => {
  const cases = [
    [400, (d) => { delete d.general.id; }, '$.general.id'],
    [400, (d) => { d.general.id = '../x'; }, '$.general.id'],
    [400, (d) => { d.unheard = 1; }, '$.unheard'],
    [400, (d) => { d.processing['function-restrictions'][0].configuration.parameters[0].datatype = 'text'; },
      "$.processing['function-restrictions'][0].configuration.parameters[0].datatype"],
    [422, (d) => { d.processing['function-restrictions'][0].configuration.parameters[0].values[0].restrictions = ['{nothing}']; },
      "$.processing['function-restrictions'][0].configuration.parameters[0]"],
    [422, (d) => { d.failover = { 'failover-mode': 'execute-backup-deployment', 'failover-delay': 0, 'backup-deployment-url': 'http://127.0.0.1/' }; },
      "$.failover['failover-mode']"],
    [422, (d) => { d.processing['function-restrictions'][0].failover = { 'failover-mode': 'execute-backup-deployment', 'failover-delay': 0, 'backup-deployment-url': 'http://127.0.0.1/' }; },
      "$.processing['function-restrictions'][0].failover['failover-mode']"],
  ];
  const paths = [];
  for (const [status, harm, wanted] of cases) {
    const document = known('wrong');
    harm(document);
    const response = post(document);
    assert.equal(response.status, status, response.body);
    const { failed, unsupported } = response.json().acknowledge;
    assert.ok((failed ?? unsupported).includes(wanted), response.body);
    assert.ok(response.header('headwater-error').includes(wanted));
    paths.push([document, wanted]);
  }
  const postStatus = (...more) => curl('/workflows', ...more).status;
  assert.equal(postStatus('--data-binary', '{"general": {', '-H', `Content-Type: ${WDD}`), 400);
  assert.equal(postStatus('--data-binary', '{}', '-H', 'Content-Type: text/plain'), 415);
  assert.equal(postStatus('-H', 'Accept: text/html'), 406);
  assert.equal(postStatus('-X', 'DELETE'), 405);
  assert.equal(curl('/workflows/none').status, 404);
  assert.equal(post(known('twice', 'true', 'idle')).status, 201);
  assert.equal(post(known('twice', 'true', 'idle')).status, 409);
  assert.equal(curl('/workflows/twice', '-X', 'DELETE').status, 200);
  // A foreign page, and a DNS name that an attacker resolves to this address.
  assert.equal(postStatus('-H', 'Origin: http://evil.example'), 403);
  assert.equal(postStatus('-H', 'Sec-Fetch-Site: cross-site'), 403);
  assert.equal(postStatus('-H', 'Host: evil.example'), 421);
  if (!fs.existsSync(path.join(judges, '../whole'))) return skip(t, 'JSONPath: jsonpath-rfc9535 could not be installed');
  const script = `
import json, sys, jsonpath_rfc9535 as jsonpath
for document, path in json.load(sys.stdin):
    found = jsonpath.find(path, document)
    print(len(found))
`;
  const counts = execFileSync(path.join(judges, 'python'), ['-c', script], { input: JSON.stringify(paths), encoding: 'utf8' });
  // The first path names a missing field.
  assert.deepEqual(counts.trim().split('\n'), ['0', '1', '1', '1', '1', '1', '1']);
});

test('tasks run a client only, and functions are discovered', async (t) => {
  const task = {
    general: { id: 'one', name: 'one', state: 'idle' },
    monitoring: { variable: [{ name: 'x', definition: '/x', unit: '1', 'var-type': 'number' }] },
    configuration: { parameters: [parameter('run', 'string', ['echo \'{"x": 3}\''])] },
  };
  const send = (target, method, body) => curl(target, '-X', method, '-H', 'Content-Type: application/mpeg-nbmp-tdd+json', '--data-binary', JSON.stringify(body));
  assert.equal(send('/tasks', 'POST', task).status, 201);
  assert.equal(curl('/tasks/one').json().general.state, 'idle');
  assert.equal(curl('/workflows/one').status, 404);
  if (links) {
    assert.equal(send('/tasks/one', 'PATCH', { general: { id: 'one', state: 'running' } }).status, 200);
    const value = () => curl('/tasks/one').json().monitoring.variable.find((v) => v.name === 'lab.last.x')?.value;
    await until('the figure', () => value() === '3');
  }
  assert.equal(curl('/tasks/one', '-X', 'DELETE').status, 200);
  const wrong = send('/tasks', 'POST', { general: { id: 'two' }, configuration: { parameters: [parameter('run', 'string', ['{nothing}'])] } });
  assert.equal(wrong.status, 422, wrong.body);
  const found = curl('/discover-functions?id=nginx');
  assert.deepEqual([found.status, found.header('content-type'), found.json()[0].general.id], [200, 'application/mpeg-nbmp-fdd+json', 'nginx']);
  assert.ok(curl('/discover-functions-in-group?groupId=servers').json().length >= 4);
  assert.equal(curl('/discover-functions-in-group?groupId=bakers').status, 404);
  if (!links) skip(t, 'running tasks: this machine cannot make links');
});

test('the page shows workflows, their graph and figures', async (t) => {
  const browser = await launch();
  if (!browser) return skip(t, 'the lab page: Chromium is not installed');
  t.after(() => browser.close());
  const document = JSON.parse(fs.readFileSync(path.join(root, 'crates/lab/tests/nbmp/shown.wdd.json'), 'utf8'));
  assert.equal(post(document).status, 201);
  const page = await browser.newPage({ viewport: { width: 1000, height: 700 } });
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  await page.goto(server.url);
  await page.waitForSelector('article svg g.function');
  assert.equal(await page.locator('article .pill').innerText(), 'idle');
  assert.equal(await page.locator('article svg g.function').count(), 3);
  assert.ok((await page.locator('article').innerText()).includes('100 ms, 20 Mbit/s'));
  page.on('dialog', (dialog) => dialog.accept());
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.waitForSelector('.none');
  assert.deepEqual(faults, []);
});

test('the page shows a curl example and accepts an upload', async (t) => {
  const browser = await launch();
  if (!browser) return skip(t, 'an upload: Chromium is not installed');
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1000, height: 700 } });
  await page.goto(server.url);
  await page.waitForSelector('.none');
  assert.ok((await page.locator('#curl').innerText()).includes(`'${server.url}/workflows?scale=small'`));
  const upload = async (name, text) => {
    await page.locator('#file').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(text) });
    await page.getByRole('button', { name: 'Upload and run' }).click();
  };
  await upload('wrong.json', '{"general": {');
  await page.getByText('wrong.json: ').waitFor();
  await upload('known.wdd.json', JSON.stringify(known('uploaded', 'true', 'idle')));
  await page.getByText('known.wdd.json is uploaded.').waitFor();
  await page.locator('article', { hasText: 'uploaded' }).waitFor();
  fs.mkdirSync(path.join(root, 'target/screenshots'), { recursive: true });
  await page.screenshot({ path: path.join(root, 'target/screenshots/lab-upload.png') });
  assert.equal(curl('/workflows/uploaded', '-X', 'DELETE').status, 200);
});

test('the page shows live figures', async (t) => {
  if (!links) return skip(t, 'live figures: this machine cannot make links');
  const browser = await launch();
  if (!browser) return skip(t, 'live figures: Chromium is not installed');
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1000, height: 700 }, colorScheme: 'dark' });
  await page.goto(server.url);
  await page.waitForSelector('.none');
  // The run ends after the page has shown the end of the first run.
  const flag = path.join(folder, 'seen');
  const run = `test {round} = 0 || until test -e ${flag}; do sleep 0.05; done; echo '{"x": 4{round}}'`;
  assert.equal(post(known('live', run)).status, 201);
  await page.getByText('1 of 2 runs').waitFor();
  assert.equal(await page.locator('article .pill').innerText(), 'running');
  assert.match(await page.locator('article table').innerText(), /x\s+40/);
  fs.mkdirSync(path.join(root, 'target/screenshots'), { recursive: true });
  await page.screenshot({ path: path.join(root, 'target/screenshots/lab-running.png') });
  fs.writeFileSync(flag, '');
  await page.getByText('2 of 2 runs').waitFor();
  await page.locator('article .idle').waitFor();
  assert.match(await page.locator('article table').innerText(), /x\s+41/);
  assert.equal(curl('/workflows/live', '-X', 'DELETE').status, 200);
  await page.waitForSelector('.none');
});

test('schemathesis finds no undocumented response', (t) => {
  if (!fs.existsSync(path.join(judges, '../whole'))) return skip(t, 'the API description: schemathesis could not be installed');
  const checks = ['not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_schema_conformance',
    'response_headers_conformance', 'unsupported_method', 'use_after_free', 'ensure_resource_availability'];
  const done = spawnSync(path.join(judges, 'schemathesis'), ['run', `${server.url}/openapi.json`, '--checks', checks.join(','),
    '--max-examples', '25', '--seed', '1', '--generation-database', 'none', '--no-color'],
  { encoding: 'utf8', cwd: folder, timeout: 300_000 });
  assert.equal(done.status, 0, done.stdout.slice(-6000) + done.stderr);
  assert.equal(curl('/healthz').status, 200);
});
