// HDR logs of the load tester, read by hdr-histogram-js: the counts and percentiles of the summary.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import hdr from 'hdr-histogram-js';
import { binary } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-hdr-'));
let server;

// A server whose delay in milliseconds is in the path.
before(async () => {
  const { Worker } = await import('node:worker_threads');
  server = new Worker(`
    const http = require('node:http');
    const { parentPort } = require('node:worker_threads');
    const server = http.createServer((request, response) => {
      setTimeout(() => response.end('ok'), Number(request.url.slice(1)));
    });
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
  `, { eval: true });
  server.port = await new Promise((ready) => server.on('message', ready));
});
after(async () => {
  await server.terminate();
  fs.rmSync(folder, { recursive: true });
});

/** Adds all intervals of a log with a tag suffix into one histogram. */
function read(log, ending) {
  const reader = new hdr.HistogramLogReader(log);
  const sum = hdr.build({ bitBucketSize: 64, autoResize: true, numberOfSignificantValueDigits: 3 });
  for (let next = reader.nextIntervalHistogram(); next; next = reader.nextIntervalHistogram()) {
    if (next.tag.endsWith(ending)) sum.add(next);
  }
  return sum;
}

test('another reader finds the same values in an HDR log', () => {
  const [log, json] = ['run.hdr', 'run.json'].map((name) => path.join(folder, name));
  const urls = [1, 5, 20, 60].map((ms) => `http://127.0.0.1:${server.port}/${ms}`);
  const words = ['load', 'rate', ...urls, '--rate', 'steps:100+100/1s..200', '--hdr', log, '--json', json];
  const done = spawnSync(binary, words, { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  const { summary } = JSON.parse(fs.readFileSync(json, 'utf8'));
  const text = fs.readFileSync(log, 'utf8');
  for (const [ending, percentiles] of [['/due', summary.from_due_ms], ['/sent', summary.from_sent_ms]]) {
    const found = read(text, ending);
    assert.equal(found.totalCount, summary.requests);
    for (const [name, percentile] of [['p50', 50], ['p90', 90], ['max', 100]]) {
      const ms = found.getValueAtPercentile(percentile) / 1e6;
      assert.ok(Math.abs(ms / percentiles[name] - 1) < 0.002, `${ending} ${name}: ${ms} and ${percentiles[name]}`);
    }
    // 300 requests do not support a p99.
    assert.equal(percentiles.p99, null);
    assert.ok(found.getValueAtPercentile(99) > 60e6);
  }
});
