"""Files as a source: CSV, Parquet and JSON lines, whose changes are differences of snapshots.

options      those of CREATE SOURCE
reading      the files as they are: which, what columns, rows with the types of the relation
snapshots    the rows as they were, kept in a directory of its own, numbered
differences  what differs from one snapshot to the next
following    the monitor
source       all of it as a `Source`
"""

from __future__ import annotations

from collections.abc import Mapping

from belvedere.sources.base import Source
from belvedere.sources.files.options import Options, read_options
from belvedere.sources.files.source import FileSource

__all__ = ["FileSource", "Options", "open_source"]


def open_source(name: str, options: Mapping[str, str]) -> Source:
    """A source of this name; reads nothing."""
    return FileSource(read_options(options))
