"""The first load of a view: one answer of each source, with all rows of its relations, joined.

The view is then as of these answers. What they show may come by the log once more, and is left out.
A global transaction may be shown by the answer of one source and not by that of another: the load
is not closed then, and kept in memory until the missing part has come by the log. Which ones were
shown is read from the tables where applications note them, with the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from belvedere.capture.copying import copy_operations
from belvedere.capture.operations import divided
from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.sources import note_copied
from belvedere.catalog.state import read_state
from belvedere.libraries import pa
from belvedere.sources.base import Question, Relation, Source
from belvedere.stores.base import Operations, Store
from belvedere.types import Vector
from belvedere.warehouse.evaluation import Way
from belvedere.warehouse.exchange import rows_of
from belvedere.warehouse.kept import Gathered
from belvedere.warehouse.machine import Term, Transaction
from belvedere.warehouse.rows import Member, Row, Shape

PARTS = "belvedere_transactions"  # the relation in which applications note global transactions

Covers = Callable[[str, str, str], bool]


@dataclass(slots=True)
class Load:
    """`answers`: marker and end, per source. `shown`: the global transactions of which a source has
    shown its part. `half`: parts that are to come, with their positions when they have.
    """

    rows: Gathered
    answers: dict[str, tuple[str, str]]
    shown: dict[str, set[str]]
    half: dict[tuple[str, str], str | None] = field(default_factory=dict)

    @property
    def missing(self) -> list[tuple[str, str]]:
        return [part for part, position in self.half.items() if position is None]

    def without_shown(self, transaction: Transaction) -> Transaction:
        """A part that comes does not wait for those that the load has shown."""
        if not transaction.parts:
            return transaction
        part = transaction.gid, transaction.source
        if part in self.half:
            self.half[part] = transaction.position
        left = tuple(
            s for s in transaction.parts if transaction.gid not in self.shown.get(s, set())
        )
        if len(left) > 1:
            return replace(transaction, parts=left)
        return replace(transaction, gid="", parts=())

    def is_closed(self, covered: Mapping[str, str], covers: Covers) -> bool:
        return all(
            position is not None and covers(source, covered[source], position)
            for (_, source), position in self.half.items()
        )


@dataclass(frozen=True, slots=True)
class _Read:
    """What one source has answered: rows by their members, global transactions with their parts."""

    answer: tuple[str, str]
    rows: dict[int, tuple[Row, ...]]
    noted: dict[str, set[str]]


def read_load(shape: Shape, relations: Sequence[Relation], sources: Mapping[str, Source]) -> Load:
    is_alone = len(sources) == 1
    read = {
        name: _read(shape, relations, name, source, is_alone) for name, source in sources.items()
    }
    given = {n: rows for one in read.values() for n, rows in one.rows.items()}
    whole = Way(shape, Term(tuple(given[n] for n in range(len(shape.members)))))
    rows = Gathered(shape, map(shape.show, whole.combinations))
    answers = {name: one.answer for name, one in read.items()}
    shown = {name: set(one.noted) for name, one in read.items()}
    half = {
        (gid, source): None
        for one in read.values()
        for gid, parts in one.noted.items()
        for source in sorted(parts & read.keys())
        if gid not in shown[source]
    }
    return Load(rows, answers, shown, dict(half))


def _read(
    shape: Shape, relations: Sequence[Relation], name: str, source: Source, is_alone: bool
) -> _Read:
    members = [n for n, member in enumerate(shape.members) if member.source == name]
    questions = [Question(relations[n], shape.members[n].columns) for n in members]
    noted = [] if is_alone else _noted(source)
    answer = source.ask([*questions, *noted])
    tables = iter(answer.tables)
    rows = {n: _rows(shape.members[n], table) for n, table in zip(members, tables, strict=False)}
    gids = {gid: parts for table in answer.tables[len(members) :] for gid, parts in _gids(table)}
    return _Read((answer.marker, answer.end), rows, gids)


def _rows(member: Member, tables: Iterator[pa.Table]) -> tuple[Row, ...]:
    return tuple(dict.fromkeys(row for table in tables for row in rows_of(member, table)))


def _noted(source: Source) -> list[Question]:
    if PARTS not in source.relations():
        return []
    return [Question(source.describe(PARTS), ("gid", "sources"))]


def _gids(tables: Iterator[pa.Table]) -> Iterator[tuple[str, set[str]]]:
    for table in tables:
        for gid, names in zip(
            table.column("gid").to_pylist(), table.column("sources").to_pylist(), strict=True
        ):
            yield gid, {name.strip() for name in (names or "").strip("{}").split(",")}


def write_load(store: Store, table: TableDefinition, rows: pa.Table) -> Iterator[Operations]:
    """Where the table differs: an earlier try may have left rows."""
    for operations in copy_operations(store, table, [rows]):
        for part in divided(operations):
            yield from part.tables


def note_loaded(store: Store, table: TableDefinition, vector: Vector) -> None:
    state = store.catalog.read(read_state)
    if table.id in state.adopting and state.adopting[table.id] is None:
        note_copied(store, table, vector)
