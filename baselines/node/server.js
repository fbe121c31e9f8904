// A static file server on the http module of Node.js: one event loop, files read through its thread
// pool. It follows the contract of ../README.md.
//
//   node server.js --listen HOST:PORT FOLDER

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { listen: { type: 'string' } } });
const [, host, port] = /^(.+):(\d+)$/.exec(values.listen);
const folder = fs.realpathSync(positionals[0]);

/** Returns the file of a target below the folder; undefined if there is none. */
async function open(target) {
  const file = path.join(folder, target.split('?')[0]);
  if (!file.startsWith(folder + path.sep) || file.includes('\0')) return undefined;
  const handle = await fs.promises.open(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK).catch(() => undefined);
  const found = await handle?.stat();
  if (found?.isFile()) return { handle, size: found.size };
  await handle?.close();
  return undefined;
}

/** Parses a single range (RFC 9110, 14.1.2) to { first, end }; null if unsatisfiable, undefined if ignored. */
function partOf(range, size) {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/i.exec(range ?? '') ?? [];
  if (from === undefined || (from === '' && to === '')) return undefined;
  if (from === '') return Number(to) > 0 && size > 0 ? { first: Math.max(0, size - to), end: size } : null;
  if (to !== '' && Number(to) < Number(from)) return undefined;
  if (Number(from) >= size) return null;
  return { first: Number(from), end: to === '' ? size : Math.min(size, Number(to) + 1) };
}

async function answer(request, response) {
  if (!['GET', 'HEAD'].includes(request.method)) return response.writeHead(405, { Allow: 'GET, HEAD', 'Content-Length': 0 }).end();
  const file = await open(request.url);
  if (!file) return response.writeHead(404, { 'Content-Length': 0 }).end();
  const { handle, size } = file;
  const part = partOf(request.headers.range, size);
  if (part === null) {
    await handle.close();
    return response.writeHead(416, { 'Content-Range': `bytes */${size}`, 'Content-Length': 0 }).end();
  }
  const { first, end } = part ?? { first: 0, end: size };
  response.writeHead(part ? 206 : 200, {
    'Content-Type': 'video/mp4',
    'Content-Length': end - first,
    'Accept-Ranges': 'bytes',
    ...(part && { 'Content-Range': `bytes ${first}-${end - 1}/${size}` }),
  });
  if (request.method === 'HEAD' || end === first) {
    await handle.close();
    return response.end();
  }
  // An error here means that the client has disconnected.
  return pipeline(handle.createReadStream({ start: first, end: end - 1 }), response, () => {});
}

const server = http.createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});
server.listen({ host, port: Number(port), backlog: 4096 }, () => {
  console.log(`listening on http://${host}:${server.address().port}`);
});
process.on('SIGTERM', () => process.exit(0));
