"""A relay between the edges and one origin, which delays every byte while it is slow."""

import asyncio
import contextlib
import multiprocessing


class Relay:
    """A process that relays TCP. `delay` is in seconds, for each block in each direction."""

    def __init__(self, port):
        context = multiprocessing.get_context("fork")
        self.delay = context.Value("d", 0.0)
        ports, theirs = context.Pipe(False)
        self.process = context.Process(target=lambda: asyncio.run(relay(port, self.delay, theirs)), daemon=True)
        self.process.start()
        self.port = ports.recv()

    def stop(self):
        self.process.terminate()
        self.process.join()


async def relay(port, delay, tell):
    async def accept(reader, writer):
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return writer.close()
        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))

    async def pump(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(256 << 10):
                await asyncio.sleep(delay.value)
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    tell.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()
