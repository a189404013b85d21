"""One source, followed step by step by one thread.

    take over   write that it is us who follow now; a follower before us conflicts at its next write
    connect     have the source prepare its log for all relations, follow from where we were
    take        a transaction: its operations and the position behind it in one write, then confirm
    copy        a relation that is new, or has to be loaded again, between two transactions

A copy is as of a snapshot of the source, whose log comes by another way. An answer is used only if
it shows every transaction that was followed before it was asked for; transactions that come later
and that it shows are left out for this relation, until the position has reached its end. From then
on the relation is as of the position, like all others: only then it is complete, and views may use
it.

Changes of a relation that is not kept only pass, also what a copy shows: views that are there go on
with that. The table that is filled for others gets all of it too, which at the end of the copy
comes to the same. As it would be wrong to views twice, a transaction is taken up where it was left.

A crash before a write: the source gives the transaction again, as it was not confirmed. A crash
after it: the position is behind the transaction.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from belvedere.capture.awaited import forget_awaited, read_awaited
from belvedere.capture.copying import copy_operations
from belvedere.capture.images import Encoder
from belvedere.capture.operations import (
    Together,
    behind,
    change_operations,
    divided,
    passing_operations,
)
from belvedere.capture.progress import RECENT, Copied, Ledger, Progress, read_recent
from belvedere.catalog.definitions import Filled, TableDefinition
from belvedere.catalog.filling import claim_copy, note_filled
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.catalog.sources import note_copied
from belvedere.catalog.state import CatalogState
from belvedere.errors import SchemaError, SourceError, SourceLost, SourceUnreachable, TooLarge
from belvedere.libraries import pa
from belvedere.readers.cut import CatalogCache
from belvedere.sources.base import (
    Event,
    Monitor,
    Question,
    Quiet,
    Relation,
    RelationChange,
    Source,
    SourceTransaction,
    Stopped,
)
from belvedere.stores.base import Operations, Store

_OTHER_COLUMNS = "its columns are not those that it had"
QUIET_SECONDS = 5.0  # between two writes that only move the position: each is an epoch


class Follower:
    """`step` may raise whatever the source or the store raise; then close it and begin anew."""

    def __init__(
        self,
        store: Store,
        definition: SourceDefinition,
        source: Source,
        stop: threading.Event | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stop` ends a long copy."""
        self._store, self._definition, self._source, self._now = store, definition, source, now
        self._ending = stop or threading.Event()
        self._cache = CatalogCache(store)
        self._ledger = Ledger(store, definition.progress)
        self._monitor: Monitor | None = None
        self._connected: frozenset[str] = frozenset()
        self._prepared = ""  # from here on the log has all that is connected
        self._reached = self._progress.position  # at or behind the position that is written
        # an answer must show these: one that was followed long ago may still be hidden from queries
        known = read_recent(store, definition.progress, self._progress)
        self._recent: deque[str] = deque(known, RECENT)
        self._written = now()
        self._encoder = Encoder([], None)
        self._was_early = False  # when it asked for a copy last
        self._take_over()

    @property
    def _progress(self) -> Progress:
        return self._ledger.progress

    @property
    def reached(self) -> str:
        """All that happened before this position is in our log."""
        return self._reached

    def close(self) -> None:
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None

    def step(self, timeout: float) -> bool:
        """Take what comes within so many seconds; False if nothing of the source is followed."""
        tables = self._tables()
        if self._definition.generation != self._progress.generation:
            self._forget()
        self._connect(tables)
        if self._monitor is None:
            return False
        before = self._progress.position
        is_due = not self._was_early and any(map(self._is_due, tables.values()))
        events = self._monitor.poll(0.0 if is_due else timeout)
        self._encoder = Encoder(events, self._store.capabilities.longest_key)
        with self._store.base.together():
            for event in events:
                self._take(event, tables)
        for table in tables.values():
            self._copy(table)
        self._note_quiet()
        if self._progress.position != before:
            self._confirm()
        return True

    # ---- connecting

    def _take_over(self) -> None:
        self._write([], replace(self._progress, follower=uuid.uuid4().hex))

    def _forget(self) -> None:
        """All is loaded again: what the source kept for us may have been lost."""
        self.close()
        self._source.remove()
        forget_awaited(self._store, self._definition.name)
        self._recent.clear()
        self._connected, self._reached = frozenset(), ""
        again = Progress(self._progress.follower, self._definition.generation)
        self._write([], replace(again, transactions=self._progress.transactions))

    def _tables(self) -> dict[str, TableDefinition]:
        """The tables that follow relations, by the relations' names."""
        state = self._cache.state()
        self._definition = state.sources.get(self._definition.name.lower(), self._definition)
        return {
            table.followed.relation: table
            for table in state.relations_of(self._definition.name)
            if table.followed is not None and table.id not in state.dropping
        }

    def _connect(self, tables: dict[str, TableDefinition]) -> None:
        wanted = {name for name, table in tables.items() if self._is_wanted(name, table)}
        gone = self._connected - tables.keys()
        if not gone and wanted <= self._connected and (self._monitor or not wanted):
            return
        self.close()
        self._connected = frozenset(wanted)
        if wanted:
            self._follow({name: tables[name] for name in sorted(wanted)})

    def _is_wanted(self, relation: str, table: TableDefinition) -> bool:
        """One that is stopped is when somebody asks for a copy, again after each refusal."""
        if relation not in self._progress.stopped:
            return True
        if not self._is_asked(table) or self._progress.refused.get(relation) == self._version:
            return False
        filled = self._filled(table)
        if filled is None or filled.alone:
            return True
        self._refuse_more(relation, table)
        return False

    def _refuse_more(self, relation: str, table: TableDefinition) -> None:
        """Views have the relation as it was when it stopped. What was missed since is told by
        nobody, so a copy for another view alone would leave these behind.
        """
        reason, source = self._progress.stopped[relation], self._definition.name
        hint = f"ALTER SOURCE {source} RELOAD {table.name.partition('.')[2]} builds its views anew"
        said = reason if hint in reason else f"{reason}; {hint}"
        self._write([], self._progress.refuse(relation, said, self._version))

    @property
    def _version(self) -> int:
        return self._cache.state().head.version

    def _follow(self, tables: dict[str, TableDefinition]) -> None:
        relations = [_relation(table) for table in tables.values()]
        try:
            self._prepared = self._source.prepare(relations)
            start = self._progress.position or self._prepared
            self._monitor = self._source.follow(relations, start)
        except (SourceUnreachable, SourceLost):
            raise
        except SourceError:
            if not self._stop_wrong(tables):
                raise
            return  # the next step leaves these out
        self._reached = start
        if not self._progress.position:
            self._write([], replace(self._progress, position=start))

    def _stop_wrong(self, tables: dict[str, TableDefinition]) -> bool:
        """Whether it was one of the relations that cannot be followed: then others go on. What
        holds for all of them is said of the source: a password that was changed stops none.
        """
        offered = self._source.relations()
        found = {name: self._trouble(name, table) for name, table in tables.items()}
        is_well = not all(found.values()) or _OTHER_COLUMNS in found.values()
        wrong = {
            name: why for name, why in found.items() if why and (is_well or name not in offered)
        }
        for name, reason in wrong.items():
            self._refuse(name, reason)
        return bool(wrong)

    def _trouble(self, relation: str, table: TableDefinition) -> str:
        """Why a relation cannot be followed; "" if it can."""
        try:
            found = self._source.describe(relation)
        except SourceUnreachable:
            raise
        except SourceError as error:
            return str(error)
        return "" if found.schema == table.schema else _OTHER_COLUMNS

    def _refuse(self, relation: str, reason: str) -> None:
        self._connected -= {relation}
        progress = replace(self._progress, position=self._reached or self._progress.position)
        self._write([], progress.refuse(relation, reason, self._version))

    # ---- what comes

    def _take(self, event: Event, tables: dict[str, TableDefinition]) -> None:
        self._reached = self._further(self._reached, event.position)
        if isinstance(event, SourceTransaction):
            self._take_transaction(event, tables)
        elif isinstance(event, Stopped):
            self._stop(event.relation, event.reason)
        else:
            assert isinstance(event, Quiet)

    def _further(self, position: str, other: str) -> str:
        """Never back, as what passes must not come twice: a relation may stop at a place before
        the end of a transaction that was followed.
        """
        covers = self._source.covers
        is_back = bool(position) and covers(position, other) and not covers(other, position)
        return position if is_back else other

    def _take_transaction(
        self, transaction: SourceTransaction, tables: dict[str, TableDefinition]
    ) -> None:
        self._recent.append(transaction.transaction)
        operations: dict[str, Together] = {}
        wrong: dict[str, str] = {}
        for change in transaction.changes:
            if change.relation not in self._connected:
                continue
            try:
                found = self._operations(tables[change.relation], change, transaction)
            except SchemaError as error:
                wrong[change.relation] = str(error)
                continue
            if found is not None and len(found.keys):
                operations[change.relation] = found
        progress = replace(
            self._progress,
            position=self._further(self._progress.position, transaction.position),
            last=transaction.transaction,
            time=transaction.time,
            transactions=self._progress.transactions + 1,
            half="",
            halves={},
        )
        for relation, reason in wrong.items():
            self._connected -= {relation}
            progress = progress.stop(relation, reason)
        self._write_transaction(operations, progress)

    def _operations(
        self, table: TableDefinition, change: RelationChange, transaction: SourceTransaction
    ) -> Together | None:
        """What our tables are to have of a change, and have not already; None if nothing."""
        if not table.passes:
            copied = self._progress.copies.get(change.relation)
            name = transaction.transaction
            is_there = copied is not None and self._source.shows(copied.marker, name)
            if is_there:
                return None
            return change_operations(table, self._encoder.images(table, change))
        known = self._progress.position
        if known and self._source.covers(known, transaction.position):
            return None
        filled = self._filled(table)
        rows = 0 if filled is None else filled.table
        found = passing_operations(table, self._encoder.images(table, change), rows)
        last = self._progress.halves.get(change.relation)
        is_half = last is not None and self._progress.half == transaction.transaction
        return behind(found, bytes.fromhex(last)) if last is not None and is_half else found

    def _filled(self, table: TableDefinition) -> Filled | None:
        state: CatalogState = self._cache.state()
        return state.filled.get(table.id)

    def _copied(self, table: TableDefinition, relation: str) -> Copied | None:
        """The copy of a relation that waits for its end, if it is of the table that is filled."""
        copied, filled = self._progress.copies.get(relation), self._filled(table)
        claim = "" if filled is None else filled.claim
        return copied if copied is not None and copied.claim == claim else None

    def _stop(self, relation: str, reason: str) -> None:
        """Our table stays as it is until somebody asks for a copy."""
        self._connected -= {relation}
        progress = replace(self._progress, position=self._reached or self._progress.position)
        self._write([], progress.stop(relation, reason))

    def _write(self, operations: Sequence[Operations], progress: Progress) -> None:
        self._ledger.write(operations, progress)
        self._written = self._now()

    def _confirm(self) -> None:
        """What is durable here need not be kept there."""
        if self._monitor is not None and self._progress.position:
            self._monitor.confirm(self._progress.position)

    def _write_transaction(self, operations: dict[str, Together], progress: Progress) -> None:
        every = [each for together in operations.values() for each in together.tables]
        try:
            self._write(every, progress)
        except TooLarge:
            self._write_parts(operations, progress)
            self._write([], progress)

    def _write_parts(self, operations: dict[str, Together], progress: Progress) -> None:
        """More than one transaction of ours takes. Only the last part has the new position, so
        after a crash all of it comes again; of what passes only what is behind the last part.
        """
        for relation, together in operations.items():
            for piece in divided(together):
                known = self._progress
                if any(each.before is not None for each in piece.tables):
                    known = known.with_half(progress.last, relation, bytes(piece.keys[-1].as_py()))
                self._ledger.write(piece.tables, known)

    def _note_quiet(self) -> None:
        """So that others see how far we are, and the source need not keep what we have. Seldom, but
        at once if somebody waits for it.
        """
        if self._reached == self._progress.position:
            return
        if self._now() - self._written >= QUIET_SECONDS or self._is_awaited():
            self._write([], replace(self._progress, position=self._reached))

    def _is_awaited(self) -> bool:
        """Whether somebody waits for what was reached and is not written."""
        wanted = read_awaited(self._store, self._definition.name)
        if wanted is None or self._source.covers(self._progress.position, wanted):
            return False
        return self._source.covers(self._reached, wanted)

    # ---- copies

    def _is_asked(self, table: TableDefinition) -> bool:
        """Whether a copy of the relation is wanted, and not written yet."""
        state: CatalogState = self._cache.state()
        return table.id in state.adopting and state.adopting[table.id] is None

    def _is_wanted_here(self, table: TableDefinition) -> bool:
        assert table.followed is not None
        return table.followed.relation in self._connected and self._is_asked(table)

    def _is_due(self, table: TableDefinition) -> bool:
        """Whether a relation that is to be copied can be asked for."""
        assert table.followed is not None
        if not self._is_wanted_here(table) or self._copied(table, table.followed.relation):
            return False
        return self._source.covers(self._reached, self._prepared)

    def _copy(self, table: TableDefinition) -> None:
        """Take a relation that is to be copied a step further."""
        assert table.followed is not None
        relation = table.followed.relation
        if self._is_due(table):
            self._ask(table, relation)
        if self._is_wanted_here(table):
            copied = self._copied(table, relation)
            if copied is not None and self._source.covers(self._reached, copied.end):
                self._complete(table, relation, copied)

    def _ask(self, table: TableDefinition, relation: str) -> None:
        asked = _relation(table)
        answer = self._source.ask([Question(asked, asked.schema.names)])
        (rows,) = answer.tables
        try:
            self._was_early = not self._is_fresh(answer.marker)
            if self._was_early:
                return  # asked again at the next step
            target, claim = self._claim(table)
            if target is None:
                return  # nobody wants it any more
            for operations in copy_operations(self._store, target, rows):
                for part in divided(operations):
                    self._write(part.tables, self._progress)
                    self._confirm()  # which also tells the source that we are there
                if self._ending.is_set():
                    return  # what is there already is not written again
        except SchemaError as error:
            self._refuse(relation, str(error))
            return
        finally:
            _close(rows)
        copied = Copied(answer.marker, answer.end, claim)
        self._write([], self._progress.with_copy(relation, copied))

    def _claim(self, table: TableDefinition) -> tuple[TableDefinition | None, str]:
        """Where the rows of a copy go, and the claim under which; None: nowhere."""
        if not table.passes:
            return table, ""
        filled = self._filled(table)
        claim = "" if filled is None else claim_copy(self._store, table.id, filled)
        return replace(table, id=filled.table) if filled is not None and claim else None, claim

    def _is_fresh(self, marker: str) -> bool:
        """Whether an answer shows all that was followed before it was asked for."""
        return all(self._source.shows(marker, transaction) for transaction in self._recent)

    def _complete(self, table: TableDefinition, relation: str, copied: Copied) -> None:
        """First the progress: after a crash in between the relation is copied once more, but a wish
        for a new copy is never taken for the old one.
        """
        progress = replace(self._progress, position=self._reached)
        vector = self._ledger.write([], progress.without_copy(relation))
        if table.passes:
            note_filled(self._store, table.id, copied.claim, vector)
        else:
            note_copied(self._store, table, vector)


def _relation(table: TableDefinition) -> Relation:
    assert table.followed is not None
    return Relation(table.followed.relation, table.schema, table.followed.has_before)


def _close(rows: Iterator[pa.Table]) -> None:
    """An answer that is not read to its end holds a connection."""
    close = getattr(rows, "close", None)
    if close is not None:
        close()
