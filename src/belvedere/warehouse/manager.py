"""Keeps the joined rows of one view, over sources that are followed for this view alone.

    connect    each source follows its relations, from the positions that the view covers
    load       once: all relations are asked for and joined, see `loading`
    take       what sources tell goes to the processor, in their order
    ask        one subquery after the other; between them, sources are heard
    apply      rows, positions and what no answer has shown in one write; then sources may forget

Nothing but that write is durable. Whoever comes next follows from its positions, and asks again.
What a source tells must not be lost before: it is confirmed when it is covered.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from belvedere.catalog.definitions import TableDefinition
from belvedere.errors import SourceError, SourceLost, SourceUnreachable
from belvedere.sources.base import Lag, Monitor, Relation, Source, SourceTransaction, Stopped
from belvedere.stores.base import Operations, Store
from belvedere.warehouse.choice import STRONG
from belvedere.warehouse.covered import Covered, Ledger
from belvedere.warehouse.definition import from_text, machine_of
from belvedere.warehouse.evaluation import Wanted
from belvedere.warehouse.exchange import (
    CHUNK,
    Asked,
    AskFar,
    found_in,
    is_far,
    questions,
    transaction_of,
)
from belvedere.warehouse.kept import Stored
from belvedere.warehouse.loading import Load, note_loaded, read_load, write_load
from belvedere.warehouse.machine import Apply, Transaction
from belvedere.warehouse.net import net
from belvedere.warehouse.processor import Found, Processor, Subquery, Todo

QUIET_SECONDS = 0.25  # between two writes that only move positions
_TOGETHER = 100  # subqueries that are asked at once


class Manager:
    """`step` may raise whatever a source or the store raises; then close it and begin anew."""

    def __init__(
        self,
        store: Store,
        table: TableDefinition,
        sources: Mapping[str, Source],
        stop: threading.Event,
        now: Callable[[], float] = time.monotonic,
        far: Mapping[str, AskFar] | None = None,
        chunk: int = CHUNK,
    ) -> None:
        """`far` asks a source for many values at once, more than one `chunk`."""
        assert table.joined is not None
        self._store, self._table, self._sources, self._now = store, table, sources, now
        self._joined, self._ending = table.joined, stop
        self._far, self._chunk = far or {}, chunk
        self._shape, self._relations = from_text(table.joined.core.encode())
        self._kept = Stored(store, table, self._shape)
        self._ledger = Ledger(store, table.joined.progress)
        self._covered = self._ledger.covered  # perhaps ahead of what is written
        self._written, self._busy_since = now(), 0.0
        self._due = now() - table.joined.period  # when the last batch was
        self.asked = self.asked_again = 0
        self._hear_nothing()
        self._take_over()

    def _hear_nothing(self) -> None:
        self._monitors: dict[str, Monitor] = {}
        self._processor: Processor | None = None
        self._load: Load | None = None
        self._todo: deque[Subquery] = deque()
        self._reached: dict[str, str] = {}
        self._received: dict[str, str] = {}  # behind the last transaction of each
        # position and time of what was received and is not written
        self._behind: dict[str, deque[tuple[str, float]]] = {s: deque() for s in self._sources}
        self._missing: dict[str, set[str]] = {}  # global transactions that are half received

    def _take_over(self) -> None:
        """Who has kept the view before conflicts at its next write."""
        if self._covered.again:
            for source in self._sources.values():
                source.remove()
            self._covered = Covered()
        self._covered = replace(self._covered, incarnation=uuid.uuid4().hex)
        self._write([], self._covered)

    def close(self) -> None:
        for monitor in self._monitors.values():
            monitor.close()
        self._monitors.clear()
        for source in self._sources.values():
            source.close()

    @property
    def is_loading(self) -> bool:
        return not self._ledger.covered.positions

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self._sources)

    @property
    def waits(self) -> str:
        """What the next rows wait for; "" if everything that came is applied."""
        for gid, missing in self._missing.items():
            return f"the part of global transaction {gid} at {', '.join(sorted(missing))}"
        if self._load is not None and self._load.missing:
            gid, source = self._load.missing[0]
            return f"the part of global transaction {gid} at {source}"
        if self._processor is not None and self._processor.machine.is_held:
            return f"its next batch, one every {self._joined.period:g} s"
        if self._processor is None or not self._processor.open_queries:
            return ""
        if not self._joined.algorithm.endswith("strobe") or self._joined.algorithm == "c-strobe":
            return "answers of sources"
        seconds = max(0.0, self._now() - self._busy_since)
        return f"a quiet moment, for {seconds:.0f} s"

    def behind(self, source: str) -> tuple[int, float]:
        """How many transactions are received and not in the view, and when the first of them was
        committed.
        """
        waiting = self._behind[source]
        return len(waiting), waiting[0][1] if waiting else 0.0

    def lag(self, source: str) -> Lag:
        """What the source has that was not read, and what it keeps for us."""
        return self._sources[source].lag(self._reached[source])

    def step(self, timeout: float) -> None:
        """Take what comes within so many seconds, and ask what is to be asked."""
        self._connect()
        if self._processor is None:
            self._begin()
        for source, monitor in self._monitors.items():
            share = 0.0 if self._todo else timeout / len(self._monitors)
            for event in monitor.poll(share):
                if isinstance(event, Stopped):
                    raise SourceError(
                        f"{source}.{event.relation} cannot be followed any more: {event.reason}."
                        f" Drop view {self._joined.view} and create it again"
                    )
                self._reached[source] = event.position
                if isinstance(event, SourceTransaction):
                    self._take(source, event)
                else:
                    self._do(self._heard.reached(source, event.position))
        if self._joined.period and self._now() - self._due >= self._joined.period:
            self._due = self._now()
            self._do(self._heard.due())
        if self._todo:
            self._ask()
        self._note_quiet()

    @property
    def _heard(self) -> Processor:
        assert self._processor is not None, "begun before"
        return self._processor

    # ---- beginning

    def _connect(self) -> None:
        if self._monitors:
            return
        positions = dict(self._covered.positions)
        for name, source in self._sources.items():
            relations = list(dict.fromkeys(self._relations_of(name).values()))
            prepared = self._prepare(name, source, relations)
            start = positions.setdefault(name, prepared)
            self._monitors[name] = source.follow(relations, start)
        self._reached = positions

    def _prepare(self, name: str, source: Source, relations: Sequence[Relation]) -> str:
        try:
            return source.prepare(relations)
        except (SourceUnreachable, SourceLost):
            raise
        except SourceError as error:
            altered = [r.name for r in relations if source.describe(r.name).schema != r.schema]
            if not altered:
                raise
            raise SourceError(
                f"{name}.{altered[0]} has other columns now. Drop view {self._joined.view} and"
                " create it again"
            ) from error

    def _relations_of(self, source: str) -> dict[int, Relation]:
        members = enumerate(self._shape.members)
        return {n: self._relations[n] for n, m in members if m.source == source}

    def _begin(self) -> None:
        positions = dict(self._reached)
        if self.is_loading:
            self._load = read_load(self._shape, self._relations, self._sources)
            self._covered = replace(self._covered, loaded=dict(self._load.answers))
        else:
            note_loaded(self._store, self._table, self._ledger.vector)
        joined = self._joined
        self._processor = Processor(
            self._shape,
            machine_of(self._shape, joined.algorithm, joined.every, positions),
            self._covers,
            uuid.uuid4().hex,
            Apply((), positions, self._covered.unseen),
        )
        self._covered = replace(self._covered, positions=positions)
        self._end_load()

    def _covers(self, source: str, position: str, other: str) -> bool:
        return self._sources[source].covers(position, other)

    # ---- what comes

    def _take(self, source: str, told: SourceTransaction) -> None:
        transaction = self._news(source, transaction_of(self._shape, source, told))
        self._check_single(source, transaction)
        self._received[source] = transaction.position
        self._behind[source].append((transaction.position, told.time))
        if transaction.parts and self._joined.algorithm not in ("strobe", "t-strobe"):
            missing = self._missing.setdefault(transaction.gid, set(transaction.parts))
            missing.discard(source)
            if not missing:
                del self._missing[transaction.gid]
        if not self._heard.open_queries:
            self._busy_since = self._now()
        self._do(self._heard.received(transaction))

    def _check_single(self, source: str, transaction: Transaction) -> None:
        """Strobe was called strong as its sources promise single updates."""
        is_promised = self._joined.algorithm == "strobe" and self._joined.reaches == STRONG
        if is_promised and len(transaction.updates) > 1:
            raise SourceError(
                f"source {source} says transactions = 'single', and one of them has changed"
                f" {len(transaction.updates)} rows (an UPDATE is a row that goes and one that"
                f" comes), of which view {self._joined.view} could show a part. Drop the view, and"
                " create it with algorithm = 't-strobe'"
            )

    def _news(self, source: str, transaction: Transaction) -> Transaction:
        """Without what the view has already, as it was loaded with it."""
        found = self._covered.loaded.get(source)
        if found is not None and self._sources[source].shows(found[0], transaction.id):
            return Transaction(transaction.id, source, transaction.position, ())
        return transaction if self._load is None else self._load.without_shown(transaction)

    def _do(self, todo: Iterable[Todo]) -> None:
        for one in todo:
            if isinstance(one, Apply):
                self._apply(one)
            else:
                self._todo.append(one)

    def _ask(self) -> None:
        """What waits for the source that has waited longest, all at once: one snapshot will do."""
        name = self._todo[0].source
        chosen = [subquery for subquery in self._todo if subquery.source == name][:_TOGETHER]
        for subquery in chosen:
            self._todo.remove(subquery)
        found = self._answers(name, [self._questions(subquery) for subquery in chosen])
        self.asked += len(chosen)
        for subquery, one in zip(chosen, found, strict=True):
            todo = self._heard.answered(subquery, one)
            again = [t for t in todo if isinstance(t, Subquery) and t.leg is subquery.leg]
            self.asked_again += len(again)
            self._do(todo)

    def _answers(self, name: str, asked: Sequence[Sequence[Asked]]) -> list[Found]:
        questions, source = (
            [question for each in asked for _, question in each],
            self._sources[name],
        )
        if name in self._far and is_far(asked, self._chunk):
            answers = iter(self._far[name](questions))
        else:
            answer = source.ask(questions)
            answers = (replace(answer, tables=(tables,)) for tables in answer.tables)
        return [
            found_in(self._shape, each, list(islice(answers, len(each))), source) for each in asked
        ]

    def _questions(self, subquery: Subquery) -> list[Asked]:
        """To ask for no row still tells what the source shows."""
        nothing = Wanted(next(iter(self._relations_of(subquery.source))), (0,), ())
        relations = dict(enumerate(self._relations))
        return questions(self._shape, relations, subquery.wanted or [nothing], self._chunk)

    # ---- what is applied

    def _apply(self, apply: Apply) -> None:
        covered = self._moved(apply.covered, apply.unseen)
        if self._load is not None:
            self._load.rows.change(net(self._shape, apply.actions, self._load.rows))
            self._covered = covered
            self._end_load()
            return
        weights = net(self._shape, apply.actions, self._kept)
        self._covered = covered
        if weights:
            self._write(self._kept.operations(weights), covered)

    def _moved(self, positions: Mapping[str, str], unseen: Mapping[str, Iterable[str]]) -> Covered:
        """Never back: a source without transactions is further than its last one."""
        now = dict(self._covered.positions)
        now |= {s: p for s, p in positions.items() if self._covers(s, p, now[s])}
        loaded = {
            s: answer
            for s, answer in self._covered.loaded.items()
            if not self._covers(s, now[s], answer[1])
        }
        told = {s: tuple(names) for s, names in unseen.items()}
        return replace(self._covered, positions=now, unseen=told, loaded=loaded)

    def _end_load(self) -> None:
        """When the view shows no half of a global transaction, it is written."""
        load = self._load
        if load is None or not load.is_closed(self._covered.positions, self._covers):
            return
        rows = self._kept.table(list(load.rows.rows))
        for operations in write_load(self._store, self._table, rows):
            self._write([operations], replace(self._covered, positions={}))
            if self._ending.is_set():
                return
        self._load = None
        self._write([], self._covered)
        note_loaded(self._store, self._table, self._ledger.vector)

    def _write(self, operations: list[Operations], covered: Covered) -> None:
        self._ledger.write(operations, covered)
        self._written = self._now()
        for source, waiting in self._behind.items():
            while waiting and self._has_written(source, waiting[0][0]):
                waiting.popleft()
        for source, monitor in self._monitors.items():
            if source in covered.positions:
                monitor.confirm(covered.positions[source])

    def _has_written(self, source: str, position: str) -> bool:
        written = self._ledger.covered.positions.get(source)
        return written is not None and self._covers(source, written, position)

    def _note_quiet(self) -> None:
        """So that others see how far we are, and sources need not keep what we have."""
        if self._is_idle():
            self._covered = self._moved(self._reached, self._covered.unseen)
        if self._load is not None or self._covered == self._ledger.covered:
            return
        if self._now() - self._written >= QUIET_SECONDS:
            self._write([], self._covered)

    def _is_idle(self) -> bool:
        """Whether all that was received is applied."""
        now = self._covered.positions
        return all(self._covers(s, now[s], position) for s, position in self._received.items())
