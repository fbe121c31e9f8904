// A static file server on Deno.serve. It follows the contract of ../README.md.
//
//   deno run --allow-net --allow-read server.ts --listen HOST:PORT FOLDER

const [, listen, folder] = Deno.args;
const [hostname, port] = listen.split(":");
const root = await Deno.realPath(folder);

/** Returns the file of a URL below the folder. URL has already resolved its dots. */
async function open(url: string): Promise<{ file: Deno.FsFile; size: number } | undefined> {
  const { pathname } = new URL(url);
  if (!/^(\/[\w.~-]+)+$/.test(pathname)) return undefined;
  try {
    const { isFile, size } = await Deno.stat(root + pathname);
    return isFile ? { file: await Deno.open(root + pathname), size } : undefined;
  } catch {
    return undefined;
  }
}

type Part = { first: number; end: number };

/** Parses a single range (RFC 9110, 14.1.2); null if unsatisfiable, undefined if ignored. */
function partOf(range: string | null, size: number): Part | null | undefined {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/i.exec(range ?? "") ?? [];
  if (from === undefined || (from === "" && to === "")) return undefined;
  if (from === "") return Number(to) > 0 && size > 0 ? { first: Math.max(0, size - Number(to)), end: size } : null;
  if (to !== "" && Number(to) < Number(from)) return undefined;
  if (Number(from) >= size) return null;
  return { first: Number(from), end: to === "" ? size : Math.min(size, Number(to) + 1) };
}

/** Ends a stream after this many bytes. */
function limit(bytes: number): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let left = bytes;
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.length > left ? chunk.subarray(0, left) : chunk);
      left -= Math.min(left, chunk.length);
      if (left === 0) controller.terminate();
    },
  });
}

async function answer(request: Request): Promise<Response> {
  if (!["GET", "HEAD"].includes(request.method)) {
    return new Response(null, { status: 405, headers: { Allow: "GET, HEAD" } });
  }
  const found = await open(request.url);
  if (!found) return new Response(null, { status: 404 });
  const { file, size } = found;
  const part = partOf(request.headers.get("range"), size);
  if (part === null) {
    file.close();
    return new Response(null, { status: 416, headers: { "Content-Range": `bytes */${size}` } });
  }
  const { first, end } = part ?? { first: 0, end: size };
  const headers = new Headers({
    "Content-Type": "video/mp4",
    "Content-Length": String(end - first),
    "Accept-Ranges": "bytes",
  });
  if (part) headers.set("Content-Range", `bytes ${first}-${end - 1}/${size}`);
  const status = part ? 206 : 200;
  if (request.method === "HEAD" || end === first) {
    file.close();
    return new Response(null, { status, headers });
  }
  await file.seek(first, Deno.SeekMode.Start);
  return new Response(file.readable.pipeThrough(limit(end - first)), { status, headers });
}

Deno.serve({
  hostname,
  port: Number(port),
  onListen: (address) => console.log(`listening on http://${address.hostname}:${address.port}`),
}, answer);
