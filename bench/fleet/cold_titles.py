"""Titles that no viewer plays: their first requests reach an origin and the storage, so that a fault is certain to be met."""

import threading
import urllib.error
import urllib.request

from machines import FleetError

# The tracks of a cold title.
FILES = ("sound.mp4", "v1_180p.mp4")


class Fetch(threading.Thread):
    """One request through the balancer. `result` is the status, or the error."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.result, self.body = url, None, b""
        self.start()

    def run(self):
        try:
            with urllib.request.urlopen(self.url, timeout=60) as response:
                self.body = response.read()
                self.result = response.status
        except urllib.error.HTTPError as error:
            self.result = error.code
        except OSError as error:
            self.result = str(error)


class ColdTitles:
    def __init__(self, port, titles):
        self.port, self.titles = port, list(titles)
        self.fetches = []

    def next_title(self):
        if not self.titles:
            raise FleetError("no title is left that was not requested before")
        return self.titles.pop(0)

    def fetch(self, path):
        self.fetches.append(Fetch(f"http://127.0.0.1:{self.port}/{path}"))
        return self.fetches[-1]

    def fetch_next(self):
        """Requests the playlist of a title for the first time."""
        return self.fetch(f"{self.next_title()}/film.ism/.m3u8")

    def read(self, count):
        for fetch in [self.fetch_next() for _ in range(count)]:
            fetch.join()

    def read_all(self):
        """Plays a title to its end, without pauses."""
        multivariant = f"{self.next_title()}/film.ism/.m3u8"
        for media in self.read_playlist(multivariant):
            for segment in self.read_playlist(media):
                self.fetch(segment).join()

    def read_playlist(self, path):
        """Returns the paths that a playlist lists."""
        fetch = self.fetch(path)
        fetch.join()
        lines = [line for line in fetch.body.decode().splitlines() if line and not line.startswith("#")]
        return [f"{path.rpartition('/')[0]}/{line}" for line in lines]

    def read_until(self, condition):
        """Requests titles until a condition holds, and returns the title that made it hold."""
        while True:
            title = self.titles[0] if self.titles else None
            self.read(1)
            if condition():
                return title

    def failures(self):
        """Waits for all requests, and returns the results of those that failed."""
        for fetch in self.fetches:
            fetch.join()
        failed = [fetch.result for fetch in self.fetches if fetch.result != 200]
        self.fetches = []
        return failed
