"""PostgreSQL as a source: its log is followed by logical decoding, its tables are asked.

settings     options, connections, what errors of the client mean
places       positions in the log, snapshots, names of transactions
columns      types: which can be held exactly, how they are read and asked for
describing   tables as relations
preparing    publication, replica identity and slot
fields       many rows of bytes as columns of texts, without a loop over rows
texts        columns of texts as Arrow
messages     the messages of pgoutput
images       rows before and after of many transactions, net per key
stream       the replication connection
following    the monitor
answers      rows as of one snapshot
source       all of it as a `Source`
"""

from __future__ import annotations

from collections.abc import Mapping

from belvedere.sources.base import Source


def open_source(name: str, options: Mapping[str, str]) -> Source:
    """A source of this name; connects to nobody."""
    from belvedere.sources.postgres.settings import read_options
    from belvedere.sources.postgres.source import PostgresSource

    return PostgresSource(read_options(name, options))
