// CMCD of emulated viewers, validated request by request with the reference library of the standard.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import http from 'node:http';
import { validateCmcdRequest } from '@svta/cml-cmcd';
import { binary, serve, titles } from './support.mjs';

const title = titles.find((name) => name.endsWith('.mp4'));
let origin;
let relay;
let requests = [];

// A proxy in front of the origin that records all requests.
before(async () => {
  origin = await serve(undefined, '--segment', '2s');
  relay = http.createServer((request, response) => {
    requests.push({ url: `http://o.test${request.url}`, headers: request.headers });
    const onward = http.request(origin.url + request.url, { headers: request.headers }, (originResponse) => {
      response.writeHead(originResponse.statusCode, originResponse.headers);
      originResponse.pipe(response);
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
  const args = ['load', 'players', url, '--viewers', '2', '--spread', '0s', '--duration', '3s', '--seeks', '3600', ...more];
  const child = spawn(binary, args, { stdio: 'ignore' });
  return new Promise((ended) => child.on('exit', ended));
}

for (const style of ['1-query', '1-header', '2-query', '2-header']) {
  for (const manifest of ['.m3u8', '.mpd']) {
    test(`CMCD ${style} of ${manifest} is valid`, async () => {
      requests = [];
      assert.equal(await play(manifest, '--cmcd', style, '--expect', 'failed = 0', '--expect', 'errors = 0'), 0);
      assert.ok(requests.length > 10, `${requests.length} requests`);
      const version = Number(style[0]);
      const keys = new Set();
      for (const request of requests) {
        const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => name.startsWith('cmcd-')));
        assert.equal(Object.keys(headers).length > 0, style.endsWith('header'));
        const result = validateCmcdRequest({ url: request.url, method: 'GET', headers }, { version });
        const errors = result.issues.filter((issue) => issue.severity === 'error');
        assert.deepEqual(errors, [], `${request.url} ${JSON.stringify(headers)}`);
        Object.keys(result.data).forEach((key) => keys.add(key));
        assert.equal(result.data.sf, manifest === '.mpd' ? 'd' : 'h');
      }
      for (const key of ['br', 'bl', 'd', 'mtp', 'nor', 'ot', 'sf', 'sid', 'st', 'su', 'tb', ...(version === 2 ? ['sta', 'sn', 'msd', 'v'] : [])]) {
        assert.ok(keys.has(key), `${key} was never sent`);
      }
    });
  }
}
