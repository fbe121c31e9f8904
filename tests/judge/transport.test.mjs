// Transport streams read by mux.js, a transmuxer for browsers.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { get, serve, text } from './support.mjs';

const { inspect } = createRequire(import.meta.url)('mux.js/lib/tools/ts-inspector.js');
let server;
before(async () => { server = await serve(undefined, '--segment', '2s'); });
after(() => server.stop());

for (const title of ['avc.mp4', 'avc_2997.mp4', 'frag_unequal.mp4', 'audio_late.mp4', 'ladder']) {
  test(`${title} has valid packets, clocks and continuity counters`, async () => {
    const master = `${server.url}/${title}/.m3u8?format=ts`;
    const body = await text(master);
    const uris = new Set(body.split('\n').filter((line) => line && !line.startsWith('#')));
    for (const uri of uris) {
      const url = new URL(uri, master);
      const segments = (await text(url)).split('\n').filter((line) => line && !line.startsWith('#'));
      let last = -Infinity;
      for (const name of segments) {
        const bytes = await get(new URL(name, url));
        assert.equal(bytes.length % 188, 0, `${name}: whole packets`);
        const counters = new Map();
        for (let at = 0; at < bytes.length; at += 188) {
          assert.equal(bytes[at], 0x47, `${name}: sync byte at ${at}`);
          const pid = ((bytes[at + 1] & 0x1f) << 8) | bytes[at + 2];
          if (!(bytes[at + 3] & 0x10)) continue;
          const counter = bytes[at + 3] & 15;
          if (counters.has(pid)) assert.equal(counter, (counters.get(pid) + 1) & 15, `${name}: continuity of ${pid} at ${at}`);
          counters.set(pid, counter);
        }
        const found = inspect(bytes, 0);
        assert.equal(found.video?.length, 2, `${name}: first and last frame`);
        const [first, final] = found.video;
        assert.ok(first.dts > last, `${name}: decode times increase`);
        assert.ok(final.dts >= first.dts);
        assert.ok(first.pts >= first.dts, `${name}: presented before it is decoded`);
        last = final.dts;
      }
    }
  });
}
