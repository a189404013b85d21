"""Rows that we have from sources beside what the sources themselves answer.

A row that is the same in both is right. One that differs is looked at again: our row, then theirs,
then everything is followed that the sources had by then. If nothing was written to our row in all
that time, no change that was on its way can explain the difference. An answer may still hide what
was followed before, and answers of several sources are of several moments; so a row is wrong only
when it was so in several looks. What is written again and again stays undecided.

    missing      the source has the row, we have not
    extra        we have it, the source has not
    different    both have the key, with different values
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias

from belvedere.capture.images import encode_rows
from belvedere.catalog.definitions import TableDefinition
from belvedere.epochs.base_check import (
    AT_ONCE,
    TRIES,
    BaseReport,
    BaseVerification,
    CatchUp,
    differ,
    gather,
    was_written,
)
from belvedere.errors import CatalogError
from belvedere.libraries import pa, pc
from belvedere.readers.base_rows import codecs
from belvedere.readers.cut import open_cut
from belvedere.sources.base import Question, Relation, Source
from belvedere.stores.base import Store

Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"  # keys and values, as in our table


LOOKS = 3  # of the TRIES, before a row is called wrong


class Theirs(Protocol):
    """What sources answer now for one table of ours."""

    def rows(self) -> Iterator[Batch]: ...

    def rows_of(self, keys: pa.BinaryArray) -> Batch:
        """At least those with these keys."""


def verify_theirs(
    store: Store, table: TableDefinition, theirs: Theirs, catch_up: CatchUp
) -> BaseVerification:
    """Compare a table of ours with its sources; catches up before, and in between."""
    catch_up()
    with open_cut(store) as cut:
        report = BaseReport(cut.state.readable(table))
        if table.id in cut.state.adopting:
            raise CatalogError(
                f"{table.name} is being loaded: run catch_up(), or start() a pipeline and wait"
            )
        report.epoch = cut.epoch
    for keys in gather(_doubtful(store, theirs, report), AT_ONCE):
        _decide(store, keys, theirs, report, catch_up)
    return report.finished()


def _doubtful(store: Store, theirs: Theirs, report: BaseReport) -> Iterator[pa.BinaryArray]:
    """Keys of rows that look different at first sight. The keys that we have are remembered."""
    table = report.table
    with store.base.snapshot() as snapshot:
        extra = {key for keys, _ in snapshot.scan(table.id) for key in keys.to_pylist()}
        for keys, values in theirs.rows():
            report.rows += len(keys)
            extra.difference_update(keys.to_pylist())
            yield keys.filter(differ(snapshot.get_many(table.id, keys), values))
    yield pa.array(sorted(extra), pa.binary())


def _decide(
    store: Store, keys: pa.BinaryArray, theirs: Theirs, report: BaseReport, catch_up: CatchUp
) -> None:
    table = report.table
    for look in range(1, TRIES + 1):
        with open_cut(store):  # the log stays from here on
            with store.base.snapshot() as snapshot:
                ours, since = snapshot.get_many(table.id, keys), snapshot.vector
            other = _aligned(keys, theirs.rows_of(keys))
            catch_up()
            was_quiet = pc.invert(was_written(store, table, keys, since))
        differs = differ(ours, other)
        if look >= LOOKS:
            wrong = pc.and_(differs, was_quiet)
            report.add(*(part.filter(wrong) for part in (keys, ours, other)))
            differs = pc.and_not(differs, wrong)
        keys = keys.filter(differs)
        if not len(keys):
            return
    report.undecided += len(keys)


def _aligned(keys: pa.BinaryArray, found: Batch) -> pa.BinaryArray:
    """The values of keys; NULL where nothing was found."""
    places = pc.index_in(keys, found[0])
    return found[1].take(places)


class RelationRows:
    """A relation that is followed."""

    def __init__(self, store: Store, source: Source, table: TableDefinition) -> None:
        assert table.followed is not None
        self._table, self._source = table, source
        self._longest = store.capabilities.longest_key
        followed = table.followed
        self._relation = Relation(followed.relation, table.schema, followed.has_before)

    def rows(self) -> Iterator[Batch]:
        return self._ask(None)

    def rows_of(self, keys: pa.BinaryArray) -> Batch:
        schema = self._table.schema
        codec, _ = codecs(schema)
        asked = pa.Table.from_arrays(codec.decode(keys), names=list(schema.key))
        return _together(self._ask(asked))

    def _ask(self, keys: pa.Table | None) -> Iterator[Batch]:
        names = self._table.schema.names
        (tables,) = self._source.ask([Question(self._relation, tuple(names), keys)]).tables
        for rows in tables:
            yield encode_rows(self._table, rows, self._longest)


def _together(batches: Iterator[Batch]) -> Batch:
    empty = pa.array([], pa.binary())
    found = [(empty, empty), *batches]
    return pa.concat_arrays([k for k, _ in found]), pa.concat_arrays([v for _, v in found])
