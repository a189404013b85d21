"""MariaDB as a source: its binary log is followed, its InnoDB tables are asked.

settings     where the server is, connections, what errors of the client mean
checks       settings of the server without which the log would have gaps
describing   tables as relations, from information_schema
places       positions in the binary log
statements   what a statement in the log does to relations
images       rows of the log as Arrow tables, net per key
groups       events of the log put together to transactions
reading      the client library's reader, which never connects again by itself
following    the monitor
answers      rows as of one snapshot, and the place in the log that it shows
source       all of it as a `Source`
"""

from __future__ import annotations

from collections.abc import Mapping

from belvedere.sources.base import Source
from belvedere.sources.mariadb.options import read_options
from belvedere.sources.mariadb.settings import Settings
from belvedere.sources.mariadb.source import MariaDBSource

__all__ = ["MariaDBSource", "Settings", "open_source"]


def open_source(name: str, options: Mapping[str, str]) -> Source:
    """A source of this name; connects to nobody."""
    return MariaDBSource(read_options(options))
