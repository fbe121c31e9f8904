"""Which edge serves a path, and the share of paths that move when the number of edges changes."""

import http.client

PATHS = 1000


def ask_edge(client, path):
    # The edge refuses TRACE itself (405), so that a path costs no request to an origin.
    client.request("TRACE", path)
    response = client.getresponse()
    response.read()
    return response.headers["X-Served-By"]


def map_paths(port):
    """Returns {path: the edge that serves it}, of a fleet without other load."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    paths = [f"/remap.mp4/6000-0/video={n % 5}/{n}.m4s" for n in range(PATHS)]
    edges = {path: ask_edge(client, path) for path in paths}
    client.close()
    return edges


def moved_share(before, after):
    return sum(before[path] != after[path] for path in before) / len(before)


def edges_by_query(port):
    """Returns the edges that serve one path with different CMCD. More than one would store it twice."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    edges = {ask_edge(client, f"/remap.mp4/6000-0/video=1/1.m4s?CMCD=bl%3D{n}00") for n in range(30)}
    client.close()
    return edges
