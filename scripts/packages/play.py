"""Plays a title as a viewer: fetches page, playlists and a segment, and decodes every frame of the video.

    python3 scripts/packages/play.py http://HOST:PORT TITLE FILE

FILE is the source of the title's first rendition: as many frames as it has must be decoded.
"""

import re
import subprocess
import sys
import urllib.parse
import urllib.request


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read()


def fetch_first_entry(playlist_url):
    """Returns the absolute URL of the first URI in a playlist."""
    lines = fetch(playlist_url).decode().splitlines()
    assert lines[0] == "#EXTM3U", f"{playlist_url}: {lines[0]}"
    return urllib.parse.urljoin(playlist_url, next(line for line in lines if line and not line.startswith("#")))


def count_frames(source):
    command = ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries",
               "stream=nb_read_frames", "-of", "csv=p=0", source]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr, f"{source}: {done.stderr}"
    # ffprobe prints the stream of a playlist once for the program, and once for the file.
    return int(re.match(r"\d+", done.stdout)[0])


def main():
    server, title, file = sys.argv[1:]
    assert b"<html" in fetch(f"{server}/"), f"{server}/ is no page"
    # The page's script lists the titles of this document.
    library = fetch(f"{server}/-/library.json").decode()
    assert f'"{title}"' in library, f"the library does not contain {title}: {library}"
    multivariant = f"{server}/{title}/.m3u8"
    segment = fetch(fetch_first_entry(fetch_first_entry(multivariant)))
    assert b"moof" in segment[:200], f"the first segment begins with {segment[:16]}"
    decoded, expected = count_frames(multivariant), count_frames(file)
    assert decoded == expected, f"{multivariant}: {decoded} of {expected} frames were decoded"
    print(f"played {decoded} frames of {multivariant}")


main()
