// One-line servers, fetches that check what every answer owes, and the titles to judge.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const library = path.join(root, 'target/fixtures/library');
export const binary = process.env.HEADWATER ?? path.join(root, 'target/debug/headwater');

/** `headwater serve` on a free port; `stop` it in an `after` hook. */
export const serve = (source = library, ...more) => start('serve', source, ...more);

/** A server of ours (`serve`, `edge`, `lab serve`) on a free port. `stop` ends it at once, `drain` politely. */
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

/** Names of all fixtures: files, and folders of renditions. */
export const titles = fs.readdirSync(library).filter((name) => !name.startsWith('.')).sort();

/** A 200 with a body of the length it states. */
export async function get(url) {
  const answer = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
  const body = new Uint8Array(await answer.arrayBuffer());
  assert.equal(answer.status, 200, `${url}: ${answer.headers.get('headwater-error')}`);
  assert.equal(answer.headers.get('content-length'), String(body.length), `${url}: Content-Length`);
  assert.ok(body.length > 0, `${url} is empty`);
  return body;
}

export const text = async (url) => new TextDecoder().decode(await get(url));

/** A judge that cannot be had here: said aloud, and counted by make test. */
export function skip(context, why) {
  console.log(`SKIPPED ${why}`);
  context.skip(why);
}

/** The peak segment bit rate of RFC 8216, 4.3.4.2, over segments of { seconds, bytes }: the
 *  largest of any run that lasts between half and one and a half target durations. */
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

/** Bits a second. */
export const rate = (segments) => segments.reduce((sum, s) => sum + s.bytes * 8, 0)
  / segments.reduce((sum, s) => sum + s.seconds, 0);
