#!/usr/bin/env python3
"""first_byte.py: responds to every HTTP request with 204 after a random time, like the first byte of an S3 object.

nginx requests it before each response (auth_request), so that the storage itself still sends the file.

  first_byte.py PORT LOW_MS HIGH_MS [SEED]
"""

import asyncio
import random
import sys

ANSWER = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"


class Delay(asyncio.Protocol):
    """Responds to each request head of a connection; nginx sends one request at a time."""

    def __init__(self, draw_seconds):
        self.draw_seconds = draw_seconds
        self.head = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.head += data
        while b"\r\n\r\n" in self.head:
            _, self.head = self.head.split(b"\r\n\r\n", 1)
            asyncio.get_running_loop().call_later(self.draw_seconds(), self.answer)

    def answer(self):
        if not self.transport.is_closing():
            self.transport.write(ANSWER)


async def main():
    port, low, high = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    chance = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    draw_seconds = lambda: chance.uniform(low, high) / 1000
    server = await asyncio.get_running_loop().create_server(lambda: Delay(draw_seconds), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
