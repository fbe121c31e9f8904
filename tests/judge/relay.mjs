// A proxy in front of a server that records requests, and can fail those for media.
import http from 'node:http';

const MEDIA = /\.(m4s|ts|mp4)(\?|$)/;

/** Starts a relay. `fault` is undefined, a status, 'hang' (no response) or 'drop' (the connection closes). */
export async function startRelay(origin) {
  const relay = { fault: undefined, failed: 0, requests: [] };
  const server = http.createServer((request, response) => {
    relay.requests.push({ url: `http://relay.test${request.url}`, headers: request.headers });
    if (relay.fault && MEDIA.test(request.url)) return fail(relay, request, response);
    return forward(origin, request, response);
  });
  await new Promise((ready) => { server.listen(0, '127.0.0.1', ready); });
  relay.url = `http://127.0.0.1:${server.address().port}`;
  relay.stop = () => { server.closeAllConnections(); server.close(); };
  return relay;
}

function fail(relay, request, response) {
  relay.failed += 1;
  if (relay.fault === 'drop') request.socket.destroy();
  if (typeof relay.fault !== 'number') return;
  response.writeHead(relay.fault, { 'content-length': 0 });
  response.end();
}

function forward(origin, request, response) {
  const onward = http.request(origin.url + request.url, { headers: request.headers, method: request.method }, (originResponse) => {
    response.writeHead(originResponse.statusCode, originResponse.headers);
    originResponse.pipe(response);
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  onward.end();
}
