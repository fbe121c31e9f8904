// Servers that start in one line, fetches with basic checks, and the list of titles.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const library = path.join(root, 'target/fixtures/library');
export const tracks = path.join(root, 'target/fixtures/tracks');
export const binary = process.env.HEADWATER ?? path.join(root, 'target/debug/headwater');

/** Starts `headwater serve` on a free port. Call `stop` in an `after` hook. */
export const serve = (source = library, ...more) => start('serve', source, ...more);

/** Starts `serve`, `edge` or `lab serve` on a free port. `stop` kills it, `drain` lets it finish. */
export async function start(program, ...more) {
  const args = [...program.split(' '), '--listen', '127.0.0.1:0', ...more];
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  const server = {
    stop: () => child.kill('SIGKILL'),
    drain: () => { child.kill('SIGTERM'); return ended; },
  };
  const wanted = args.includes('--admin') ? ['url', 'admin'] : ['url'];
  for await (const line of createInterface({ input: child.stdout })) {
    const [, verb, url] = line.match(/^(\w+) on (http:\S+)/) ?? [];
    if (verb) server[verb === 'listening' ? 'url' : verb] = url;
    if (wanted.every((name) => server[name])) return server;
  }
  throw new Error(`${binary} ended without a 'listening on' line`);
}

/** Names of all fixtures: files, and folders with renditions. */
export const titles = fs.readdirSync(library).filter((name) => !name.startsWith('.')).sort();

/** Fetches a URL. Checks status 200 and Content-Length. */
export async function get(url) {
  const response = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
  const body = new Uint8Array(await response.arrayBuffer());
  assert.equal(response.status, 200, `${url}: ${response.headers.get('headwater-error')}`);
  assert.equal(response.headers.get('content-length'), String(body.length), `${url}: Content-Length`);
  assert.ok(body.length > 0, `${url} is empty`);
  return body;
}

export const text = async (url) => new TextDecoder().decode(await get(url));

/** Reports a check that cannot run here; `make test` counts these. */
export function skip(context, why) {
  console.log(`SKIPPED ${why}`);
  context.skip(why);
}

/** Returns the peak segment bit rate (RFC 8216, 4.3.4.2) of segments { seconds, bytes }: the highest rate of
 *  consecutive segments that last between 0.5 and 1.5 target durations. */
export function peakRate(segments, target) {
  const average = rate(segments);
  let peak = average;
  for (let first = 0; first < segments.length; first += 1) {
    for (let end = first + 1; end <= segments.length; end += 1) {
      const run = segments.slice(first, end);
      const seconds = run.reduce((sum, s) => sum + s.seconds, 0);
      if (seconds > 1.5 * target) break;
      if (seconds >= 0.5 * target) peak = Math.max(peak, rate(run));
    }
  }
  return peak;
}

/** Returns bits per second. */
export const rate = (segments) => segments.reduce((sum, s) => sum + s.bytes * 8, 0)
  / segments.reduce((sum, s) => sum + s.seconds, 0);
