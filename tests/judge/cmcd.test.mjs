// CMCD: what emulated viewers tell of themselves, judged by the reference library of the standard's
// makers, request by request.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import http from 'node:http';
import { validateCmcdRequest } from '@svta/cml-cmcd';
import { binary, serve, titles } from './support.mjs';

const title = titles.find((name) => name.endsWith('.mp4'));
let origin;
let relay;
let asked = [];

// In front of the origin: writes down what it is asked, and asks the origin the same.
before(async () => {
  origin = await serve(undefined, '--segment', '2s');
  relay = http.createServer((request, response) => {
    asked.push({ url: `http://o.test${request.url}`, headers: request.headers });
    const onward = http.request(origin.url + request.url, { headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    onward.end();
  });
  await new Promise((ready) => relay.listen(0, '127.0.0.1', ready));
});
after(() => {
  relay.closeAllConnections();
  relay.close();
  origin.stop();
});

function play(manifest, ...more) {
  const url = `http://127.0.0.1:${relay.address().port}/${title}/${manifest}`;
  const words = ['load', 'players', url, '--viewers', '2', '--spread', '0s', '--duration', '3s', '--seeks', '3600', ...more];
  const child = spawn(binary, words, { stdio: 'ignore' });
  return new Promise((ended) => child.on('exit', ended));
}

for (const style of ['1-query', '1-header', '2-query', '2-header']) {
  for (const manifest of ['.m3u8', '.mpd']) {
    test(`CMCD ${style} of ${manifest} is valid`, async () => {
      asked = [];
      assert.equal(await play(manifest, '--cmcd', style, '--expect', 'failed = 0', '--expect', 'errors = 0'), 0);
      assert.ok(asked.length > 10, `${asked.length} requests`);
      const version = Number(style[0]);
      const seen = new Set();
      for (const request of asked) {
        const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => name.startsWith('cmcd-')));
        assert.equal(Object.keys(headers).length > 0, style.endsWith('header'));
        const result = validateCmcdRequest({ url: request.url, method: 'GET', headers }, { version });
        const wrong = result.issues.filter((issue) => issue.severity === 'error');
        assert.deepEqual(wrong, [], `${request.url} ${JSON.stringify(headers)}`);
        Object.keys(result.data).forEach((key) => seen.add(key));
        assert.equal(result.data.sf, manifest === '.mpd' ? 'd' : 'h');
      }
      for (const key of ['br', 'bl', 'd', 'mtp', 'nor', 'ot', 'sf', 'sid', 'st', 'su', 'tb', ...(version === 2 ? ['sta', 'sn', 'msd', 'v'] : [])]) {
        assert.ok(seen.has(key), `${key} was never told`);
      }
    });
  }
}
