"""The answer: what makes up a record of a view, or what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.encoding import KeyCodec
from belvedere.errors import PipelineError, SchemaError
from belvedere.explain.tree import Texts
from belvedere.graph import Node
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import ID, Origin, columns
from belvedere.operators.lineage import Pieces, Wanted, merged
from belvedere.readers.cut import Cut, check_readable
from belvedere.readers.problems import problems
from belvedere.readers.rows import ViewRows, key_tuple
from belvedere.stores.base import Store
from belvedere.types import Epoch, Key, Row, Vector
from belvedere.why.finding import Finder
from belvedere.why.gaps import Reason, reasons
from belvedere.why.operations import Logged, operations
from belvedere.why.tracing import (
    Start,
    Traced,
    consumers_first,
    needed,
    reads_twice,
    trace,
)

DECIDES, BESIDE = "_decides", "_beside"


@dataclass(frozen=True, slots=True)
class BaseRows:
    """Rows of one base table that make up a record: those of `pieces`, and `beside` them rows that
    keep out what else would be seen, if a table is read twice.
    """

    table: TableDefinition
    pieces: Pieces
    beside: pa.Table

    @property
    def keys(self) -> pa.BinaryArray:
        both = pa.concat_tables([self.pieces.rows.select([ID]), self.beside.select([ID])])
        return both.column(ID).combine_chunks()

    def to_arrow(self) -> pa.Table:
        """The table's columns, and for each row whether it decides, and whether it is beside."""
        names = columns(len(self.table.schema.columns))
        parts = [self.pieces.rows.select(names), self.beside.select(names)]
        own, beside = (part.num_rows for part in parts)
        decides = pa.array(np.append(self.pieces.decides, np.zeros(beside, bool)))
        data = pa.concat_tables(parts).combine_chunks().columns
        arrays = [*data, decides, pa.array(np.arange(own + beside) >= own)]
        return pa.table(arrays, names=[*self.table.schema.names, DECIDES, BESIDE])


@dataclass(frozen=True)
class Why:
    """Why a view has, or has not, a record under a key as of an epoch.

    `row` is the record, None if there is none; `count` how often a view of counted rows has it.
    Printed, it is a tree. What is logged is read when it is asked for.
    """

    view: str
    key: tuple[Any, ...]
    epoch: Epoch
    row: Row | None
    count: int
    notes: tuple[str, ...]
    _store: Store = field(repr=False)
    _vector: Vector = field(repr=False)
    _definition: ViewDefinition = field(repr=False)
    _texts: Texts = field(repr=False)
    _traced: Traced = field(repr=False)
    _tables: Mapping[str, BaseRows] = field(repr=False)
    _reasons: tuple[Reason, ...] = field(repr=False)

    @property
    def tables(self) -> tuple[str, ...]:
        """The base tables in which rows were found."""
        return tuple(found.table.name for found in self._tables.values() if len(found.keys))

    def rows(self, table: str) -> pa.Table:
        """All rows of a base table that make up the record: its columns, `_decides`, and `_beside`
        for a row that only keeps out what would be seen without it.
        """
        return self._of(table).to_arrow()

    def operations(self, table: str) -> pa.Table:
        """What the retained log has of these rows: the key, stream, position, time and kind."""
        found, logged = self._of(table), self.logged(table)
        rows = [
            (key, each.stream, each.position, each.time, each.kind)
            for key in found.keys.to_pylist()
            for each in logged.by_key.get(key, [])
        ]
        keys = pa.array([row[0] for row in rows], pa.binary())
        kinds = tuple(c.type for c in found.table.schema.key_columns)
        data = KeyCodec(kinds).decode(keys) if rows else [pa.array([], k.arrow) for k in kinds]
        rest = [
            pa.array([row[i] for row in rows], kind)
            for i, kind in enumerate([pa.string(), pa.int64(), pa.float64(), pa.string()], 1)
        ]
        names = [*found.table.schema.key, "_stream", "_position", "_time", "_kind"]
        return pa.table([*data, *rest], names=names)

    def logged(self, table: str) -> Logged:
        """The same by the key of each row, and from where on it is known."""
        return self._logged.setdefault(table.lower(), self._read_log(self._of(table)))

    def to_dict(self) -> dict[str, Any]:
        """All of it."""
        from belvedere.why.text import reasons_to_dicts

        return {
            "view": self.view,
            "key": list(self.key),
            "epoch": self.epoch,
            "row": self.row,
            "count": self.count,
            "tables": {
                name: {
                    "rows": self.rows(name).to_pylist(),
                    "operations": self.operations(name).to_pylist(),
                    "log_from": self.logged(name).since,
                }
                for name in self.tables
            },
            "missing": reasons_to_dicts(self, self._reasons),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from belvedere.why.text import as_text

        return as_text(self)

    def _of(self, table: str) -> BaseRows:
        found = self._tables.get(table.lower())
        if found is None:
            names = ", ".join(t.table.name for t in self._tables.values())
            raise SchemaError(f"view {self.view} does not read a table {table}: it reads {names}")
        return found

    @cached_property
    def _logged(self) -> dict[str, Logged]:
        return {}

    def _read_log(self, found: BaseRows) -> Logged:
        return operations(self._store, found.table, found.keys, self._vector)


def why(cut: Cut, view: ViewDefinition, key: Key) -> Why:
    """At a cut that the caller holds."""
    check_readable(cut.state, view, lambda v: problems(cut, v))
    values = key_tuple(key)
    rows = ViewRows.of(view)
    if len(values) != len(view.schema.key):
        columns_of_key = ", ".join(view.schema.key) or "no columns"
        raise SchemaError(
            f"the key of view {view.name} is ({columns_of_key}): give {len(view.schema.key)}"
            f" value(s), not {len(values)}"
        )
    finder = Finder(cut, view)
    try:
        return _answer(finder, rows, rows.plain(values))
    finally:
        finder.close()


def _answer(finder: Finder, rows: ViewRows, key: tuple[Any, ...]) -> Why:
    cut, view = finder.cut, finder.view
    key, shown = _record(rows, cut.rows(view, key), key)
    start = _start(view, shown if shown.num_rows else _key_row(view, key))
    found = _exactly(finder, start, rows, key)
    traced: Traced = {}
    said: tuple[Reason, ...] = ()
    if shown.num_rows:
        if not found.num_rows:
            raise PipelineError(
                f"view {view.name} has a record with this key, and its tables have no rows that"
                f" make it: run belvedere verify {view.name}"
            )
        traced = trace(finder, start, found)
    else:
        said = reasons(finder, start.node, start.wanted)
        traced = _of_reasons(said)
    tables = dict(_base_rows(finder, start, traced, bool(shown.num_rows)))
    row = shown.slice(0, 1).to_pylist()[0] if shown.num_rows else None
    return Why(
        view.name,
        key,
        cut.epoch,
        row,
        shown.num_rows,
        tuple(finder.notes),
        cut.store,
        cut.vector,
        view,
        finder.texts,
        traced,
        tables,
        said,
    )


def _record(
    rows: ViewRows, found: pa.Table, key: tuple[Any, ...]
) -> tuple[tuple[Any, ...], pa.Table]:
    """One record of those whose keys SQL calls equal: under the key as it is given, if it is there.
    With the key that it has.
    """
    if not rows.doubles or not found.num_rows:
        return key, found
    keys = rows.keys.encode([found.column(name) for name in rows.schema.key])
    record = rows.keys.encode_one(key)
    if not pc.any(pc.equal(keys, record)).as_py():
        record = keys[0].as_py()
    return rows.keys.decode_one(record), found.filter(pc.equal(keys, record))


def _key_row(view: ViewDefinition, key: tuple[Any, ...]) -> pa.Table:
    """The columns of the key alone."""
    columns_of_key = view.schema.key_columns
    arrays = [pa.array([v], c.type.arrow) for v, c in zip(key, columns_of_key, strict=True)]
    return pa.table(arrays, names=[c.name for c in columns_of_key])


def _start(view: ViewDefinition, row: pa.Table) -> Start:
    """What is wanted of the end of the graph, by the columns of the record that are known."""
    place = dict(zip(view.schema.names, view.planned.columns, strict=True))
    kinds = {c.name: c.type for c in view.schema.columns}
    names = row.column_names
    wanted = Wanted.of(
        [place[n] for n in names],
        [kinds[n] for n in names],
        [row.column(n) for n in names],
    )
    return Start(view.planned.nodes[-1], wanted, frozenset(view.planned.columns))


def _exactly(finder: Finder, start: Start, rows: ViewRows, key: tuple[Any, ...]) -> pa.Table:
    """The rows of the record: a key of a view tells -0.0 and 0.0 apart."""
    node = start.node
    operator = node.operator
    if isinstance(operator, Origin):
        found = finder.find(node, start.wanted)
    else:
        found = start.wanted.keep(finder.of_port(node, 0, start.wanted))
    place = dict(zip(rows.schema.names, rows.columns, strict=True))
    arrays = [found.column(f"c{place[name]}") for name in rows.schema.key]
    if not arrays:
        return found
    record = rows.keys.encode_one(key)
    return found.filter(pc.equal(rows.keys.encode(arrays), record))


def _of_reasons(said: tuple[Reason, ...]) -> Traced:
    parts: dict[int, list[Pieces]] = {}
    for reason in _all_reasons(said):
        for node, pieces in (reason.rows or {}).items():
            parts.setdefault(node, []).append(pieces)
    return {node: merged(found) for node, found in parts.items()}


def _all_reasons(said: tuple[Reason, ...]) -> Iterator[Reason]:
    for reason in said:
        yield reason
        for branch in reason.beside:
            yield from _all_reasons(branch)


def _base_rows(
    finder: Finder, start: Start, traced: Traced, is_there: bool
) -> Iterator[tuple[str, BaseRows]]:
    sources = [node for node in finder.view.planned.nodes if node.source]
    asked: Mapping[int, Wanted] = {}
    if is_there and _may_be_seen_twice(finder, start.node):
        asked = needed(finder, start)
        finder.notes.setdefault("a table is read twice: no row is said to decide")
    for node in sources:
        pieces = traced.get(node.id)
        if pieces is None:
            pieces = Pieces.undecided(finder.find(node, Wanted(ids=pa.array([], pa.binary()))))
        beside = pieces.rows.slice(0, 0)
        if node.id in asked:
            rows = finder.find(node, asked[node.id])
            beside = rows.filter(pa.array(~Wanted(ids=pieces.ids).holds(rows)))
        table = finder.table(node)
        yield table.name.lower(), BaseRows(table, pieces, beside)


def _may_be_seen_twice(finder: Finder, node: Node) -> bool:
    """Whether a row that is there for one way may show on another without what keeps it out."""
    below = list(consumers_first(finder, node))
    return reads_twice(finder, node) and not all(each.operator.grows for each in below)
