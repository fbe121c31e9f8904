"""Emulates ten thousand viewers at 300 kb/s for `bench/table.py`. Each connection requests a segment,
reads it at that rate, and requests the next. One thread does all reading."""

import re
import resource
import socket
import ssl
import time

# The receive buffer of a connection. It is small, because little data is in flight on a slow link.
RECEIVE_BYTES = 32 << 10
TICKS_A_SECOND = 4


def allow_descriptors(count):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most < count:
        raise RuntimeError(f"{count} open files are needed, {most} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Viewer:
    """A connection, its next request, and the bytes that its response still lacks."""

    __slots__ = ("left", "next", "socket")

    def __init__(self, address, first, context=None):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self.socket.connect(address)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.socket.setblocking(False)
        self.left, self.next = 0, first

    def request(self, paths):
        self.socket.send(b"GET %s HTTP/1.1\r\nHost: films\r\n\r\n" % paths[self.next % len(paths)])
        self.next += 1
        self.left = -1

    def take(self, most):
        """Reads up to a number of bytes. Returns how many arrived."""
        try:
            if self.left < 0:
                return self.head(self.socket.recv(most))
            got = self.discard(min(most, self.left))
        except (BlockingIOError, ssl.SSLWantReadError):
            return 0
        if not got:
            raise RuntimeError("the server closed a connection")
        self.left -= got
        return got

    def discard(self, most):
        if isinstance(self.socket, ssl.SSLSocket):
            return self.socket.recv_into(SINK, most)
        # Discards the bytes in the kernel, because only the server is measured.
        return self.socket.recv_into(SINK, most, socket.MSG_TRUNC)

    def head(self, data):
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.I)
        if not (end and length and b" 200 " in head[:20]):
            raise RuntimeError(f"no response: {head[:100]}")
        self.left = int(length[1]) - len(body)
        return len(data)


SINK = bytearray(1 << 16)


def watch(url, paths, viewers, kbps, seconds):
    """Returns the bytes that all viewers read in `seconds`, after all have started. Calls `begun()` before."""
    scheme, _, authority = url.partition("://")
    host, port = authority.split(":")
    paths = [path.split("?")[0].encode() for path in paths]
    context = trusting() if scheme == "https" else None
    watching = [Viewer((host, int(port)), n, context) for n in range(viewers)]
    try:
        for viewer in watching:
            viewer.request(paths)
        play(watching, paths, kbps, 3)
        yield
        yield play(watching, paths, kbps, seconds)
    finally:
        for viewer in watching:
            viewer.socket.close()


def trusting():
    """Returns a client context that accepts the self-signed certificate of a benchmark."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def play(watching, paths, kbps, seconds):
    """Serves every viewer once per quarter of a second, evenly spread."""
    share = kbps * 1000 // 8 // TICKS_A_SECOND
    ticks = int(seconds * TICKS_A_SECOND)
    began, total, step = time.monotonic(), 0, max(1, len(watching) // 50)
    for tick in range(ticks):
        for at in range(0, len(watching), step):
            due = began + (tick + at / len(watching)) / TICKS_A_SECOND
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            for viewer in watching[at : at + step]:
                if viewer.left == 0:
                    viewer.request(paths)
                total += viewer.take(share)
    return {"bytes": total, "wall_s": time.monotonic() - began, "due_s": seconds}
