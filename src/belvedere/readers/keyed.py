"""Relations of a statement, in ranges of their keys, at a cut; and how these keys are stored."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.encoding.ranges import Ranges
from belvedere.libraries import pa
from belvedere.readers.base_rows import rows_at
from belvedere.readers.cut import Cut, check_readable
from belvedere.readers.problems import problems
from belvedere.sql.query import Keyed


def keyed_of(found: TableDefinition | ViewDefinition) -> Keyed:
    """How the keys of a relation are stored: only those of views may have NULLs, and -0.0."""
    is_view = isinstance(found, ViewDefinition)
    return Keyed(found.schema, normalize=not is_view, has_nulls=is_view)


def readable_view(cut: Cut, name: str) -> ViewDefinition:
    """The view, if it is live and has no errors."""
    view = cut.state.view(name)
    check_readable(cut.state, view, lambda v: problems(cut, v))
    return view


def read_at(cut: Cut, name: str, ranges: Ranges, size: int) -> Iterator[pa.Table]:
    """Rows of a table or view at a cut, in batches that begin with a size."""
    table = cut.state.tables.get(name)
    if table is not None:
        return rows_at(cut.store, table, cut.epoch, cut.vector, ranges, size)
    return cut.read(readable_view(cut, name), ranges, size)
