"""The rows of `bench/table.py`, grouped by set-up. Each part returns the rows that it measured."""

from .encrypted import encrypted
from .films import cold_texts, files, long_films
from .others import edges, testers
from .row import missing
from .serving import cores, ranges, slow_tls_viewers, slow_viewers, tls

__all__ = ["cold_texts", "cores", "edges", "encrypted", "files", "long_films", "missing", "ranges", "slow_tls_viewers", "slow_viewers", "testers", "tls"]
