"""One simulated world: a store in memory, its actors, a settable clock, and a judge that looks
after every commit.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa

from belvedere.catalog.definitions import LIVE, TableDefinition, ViewDefinition
from belvedere.catalog.head import Head
from belvedere.catalog.state import read_state
from belvedere.catalog.tables import create_table
from belvedere.epochs.lease import LEASE_SECONDS
from belvedere.epochs.rules import Rules
from belvedere.epochs.settings import Settings
from belvedere.readers.base_rows import codecs
from belvedere.readers.cut import Cut
from belvedere.stores import memory
from belvedere.stores.base import Operations
from belvedere.types import BIGINT, DOUBLE, STRING, Column, Schema, Vector
from tests.simulation.mixes import Mix
from tests.simulation.oracle import VIEWS, Content, Operation, Oracle, Row, View
from tests.simulation.scheduler import Actor, Scheduler

SCHEMA = Schema(
    (Column("k", STRING, False), Column("g", STRING), Column("x", BIGINT), Column("f", DOUBLE)),
    ("k",),
)
GROUPS = ("a", "b", None)
LEASE_OVER = LEASE_SECONDS + 1.0


class Violation(Exception):
    """A promise is broken; the message says which."""


@dataclass(frozen=True, slots=True)
class Switches:
    """Rules that are on.

    `substituted` names pieces of the engine that are replaced (`tests.simulation.substitutes`).
    """

    store: memory.Rules = field(default_factory=memory.Rules)
    rows: memory.RowRules = field(default_factory=memory.RowRules)
    engine: Rules = field(default_factory=Rules)
    substituted: tuple[str, ...] = ()
    # off: doubles are compared to nine digits, so an inexact sum alone is no violation
    last_bits: bool = True


class World:
    def __init__(self, mix: Mix, seed: int, switches: Switches) -> None:
        self.mix, self.switches = mix, switches
        self.random = random.Random(f"{mix.name}/{seed}")
        self.scheduler = Scheduler(self.random, after_step=self._judge_commit)
        self.store = memory.MemoryStore(
            mix.slots,
            mix.streams,
            switches.store,
            self.scheduler.point,
            self.now,
            switches.rows if mix.by_row else None,
        )
        self.oracle = Oracle()
        self.lines: list[dict[str, Any]] = []  # the history, for `belvedere.consistency`
        self.counts: Counter[str] = Counter()
        self.calm = False  # no more faults
        self.names: set[str] = set()  # views that must be there in the end
        self.settings = Settings(
            max_rows=mix.max_rows, load_rows=2, history=mix.history, trim_after=1
        )
        self.violation: Violation | None = None
        self._clock = 1_000_000.0
        self._amounts = iter(range(1, 62))
        self._head_bytes: bytes | None = None
        self.head = Head(0, 0, Vector())
        self.tables: dict[str, TableDefinition] = {}
        columns = {c.name: c.type.duckdb for c in SCHEMA.columns}
        self.lines += [{"table": t, "key": ["k"], "columns": columns} for t in mix.tables]
        self._create_tables()

    # ------------------------------------------------------------ time, counts, verdicts

    def now(self) -> float:
        return self._clock + 0.001 * self.scheduler.step

    def pass_time(self, seconds: float) -> None:
        self._clock += seconds

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def violate(self, text: str, cause: Exception | None = None) -> NoReturn:
        self.violation = self.violation or Violation(text)
        self.scheduler.note(f"VIOLATION {text}")
        raise self.violation from cause

    def spawn(self, name: str, body: Callable[[], None]) -> Actor:
        """An actor that has no way to fail."""

        def judged() -> None:
            try:
                body()
            except Violation:
                raise
            except Exception as error:  # whatever it is, nobody expects it
                self.violate(f"{name} fails with {type(error).__name__}: {error}", error)

        return self.scheduler.spawn(name, judged)

    # ------------------------------------------------------------ tables and operations

    def _create_tables(self) -> None:
        with self.scheduler.quietly():
            for name in self.mix.tables:
                create_table(self.store, name, SCHEMA, before_images=name == "images")
            self.tables = {t.name: t for t in self.store.catalog.read(read_state).tables.values()}
            for name in self.mix.tables:
                for _ in range(self.mix.rows):
                    self.write(name, [(self.some_key(), self.some_row())])

    def some_key(self) -> str:
        return f"k{self.random.randrange(self.mix.keys)}"

    def some_row(self) -> tuple[str | None, int, float]:
        number = next(self._amounts)
        # of many sizes, so that a careless sum rounds
        fraction = 0.1 * number * 10.0 ** (number % 7 - 3)
        return self.random.choice(GROUPS[: self.mix.groups]), 1 << number, fraction

    def write(
        self, table: str, operations: Sequence[tuple[str, tuple[str | None, int, float] | None]]
    ) -> None:
        self.write_all([(table, operations)])

    def write_all(
        self,
        parts: Sequence[tuple[str, Sequence[tuple[str, tuple[str | None, int, float] | None]]]],
    ) -> None:
        """Apply operations in one transaction (of one stream), and record them for the oracle."""
        encoded = [self._encoded(table, operations) for table, operations in parts]
        self.scheduler.point("write")
        with self.scheduler.quietly():
            before = self.store.base.end()
            written = self.store.base.write_all(encoded)
            (stream,) = written
        position = first = before[stream]
        for table, operations in parts:
            for k, row in operations:
                whole: Row | None = None if row is None else (k, *row)
                self.oracle.record(Operation(table, stream, position, k, whole))
                shown_row = whole and dict(zip(SCHEMA.names, whole, strict=True))
                line = {"op": position, "stream": stream, "tx": first, "table": table}
                self.lines.append({**line, "key": [k], "row": shown_row})
                position += 1
        self.oracle.transactions.append((stream, first, position))
        shown = ", ".join(f"{t} {k}: {r and r[:2]}" for t, done in parts for k, r in done)
        self.scheduler.note(f"writes {shown} at {stream} {first}")

    def _encoded(
        self, table: str, operations: Sequence[tuple[str, tuple[str | None, int, float] | None]]
    ) -> Operations:
        keys, rows = codecs(SCHEMA)
        definition = self.tables[table]
        return Operations(
            definition.id,
            pa.array([keys.encode_one((k,)) for k, _ in operations], pa.binary()),
            pa.array([row and rows.encode_one(row) for _, row in operations], pa.binary()),
            definition.before_images,
        )

    # ------------------------------------------------------------ views

    def select_of(self, name: str, table: str) -> str:
        return VIEWS[name].select.format(table=table)

    def view_of(self, select: str) -> tuple[View, str]:
        """The oracle's side of a view, by its text."""
        for view in VIEWS.values():
            for table in self.mix.tables:
                if view.select.format(table=table) == select:
                    return view, table
        raise KeyError(select)

    def expected(self, definition: ViewDefinition, vector: Vector) -> Content:
        view, table = self.view_of(definition.select)
        return view.content(self.oracle.rows(table, vector))

    def compare(
        self,
        who: str,
        definition: ViewDefinition,
        epoch: int,
        vector: Vector,
        seen: Content,
    ) -> None:
        right = self.expected(definition, vector)
        self._note_seen(who, definition, epoch, vector, seen)
        if not self.switches.last_bits:
            seen, right = _nine_digits(seen), _nine_digits(right)
        if seen != right:
            extra, missing = dict(seen - right), dict(right - seen)
            self.violate(
                f"{who}: view {definition.name} as of epoch {epoch} has {extra} too much and lacks"
                f" {missing}"
            )

    def _note_seen(
        self, who: str, definition: ViewDefinition, epoch: int, vector: Vector, seen: Content
    ) -> None:
        """One line of the history; a view in error has no state."""
        view, table = self.view_of(definition.select)
        if view.errors(self.oracle.rows(table, vector)):
            return
        name = f"{definition.name}#{definition.id}"
        if not any(line.get("view") == name for line in self.lines):
            begin = vector.to_json()
            self.lines.append({"view": name, "select": definition.select, "from": begin})
        rows = [dict(zip(definition.schema.names, row, strict=True)) for row in seen.elements()]
        by = f"reader at {epoch}" if who == "a reader" else "commits"  # readers overtake each other
        line = {"whole": name, "rows": rows, "by": by, "epoch": epoch, "at": vector.to_json()}
        self.lines.append(line)

    # ------------------------------------------------------------ the judge

    def _judge_commit(self) -> None:
        if self.violation is not None:
            raise self.violation
        if self._entries.get("head") is self._head_bytes:
            return
        self._head_bytes = self._entries.get("head")
        head = Head.from_bytes(self._head_bytes)
        if head.epoch != self.head.epoch:
            if head.epoch != self.head.epoch + 1:
                self.violate(f"epoch {self.head.epoch} is followed by epoch {head.epoch}")
            if not head.vector.covers(self.head.vector):
                self.violate(
                    f"epoch {head.epoch} goes back from {self.head.vector} to {head.vector}"
                )
            self._judge_transactions(head.vector)
            self.count("commits")
            self.scheduler.note(f"== epoch {head.epoch} is committed, vector {head.vector}")
        self.head = head
        self.judge(f"commit {head.epoch}")

    def _judge_transactions(self, vector: Vector) -> None:
        for stream, first, end in self.oracle.transactions:
            if first < vector[stream] < end:
                self.violate(f"vector {vector} divides the transaction at {stream} {first}")

    def judge(self, when: str) -> None:
        """Every live view, as of the committed epoch, equals its recomputation from the operations
        of the committed vector.
        """
        with self.scheduler.quietly():
            state = self.store.catalog.read(read_state)
            cut = Cut(self.store, state.head.epoch, state.head.vector, state)
            for definition in readable(cut):
                self._judge_view(when, definition, cut)

    def _judge_view(self, when: str, definition: ViewDefinition, cut: Cut) -> None:
        try:
            seen = content(cut.rows(definition))
        except Exception as error:
            # a state that cannot even be read, such as a row that is there -1 times
            self.violate(
                f"{when}: view {definition.name} as of epoch {cut.epoch} cannot be read: {error}",
                error,
            )
        self.compare(when, definition, cut.epoch, cut.vector, seen)
        view, table = self.view_of(definition.select)
        wrong = view.errors(self.oracle.rows(table, cut.vector))
        said = cut.state.in_error(definition)
        if said != wrong:
            self.violate(
                f"{when}: view {definition.name} says that {said} rows are in error, but"
                f" {wrong} are"
            )

    @property
    def dry(self) -> bool:
        """Everything written is committed, no epoch is open, no view is on its way, nothing of
        dropped views is left.
        """
        with self.scheduler.quietly():
            if self.head.vector != self.store.base.end():
                return False
            if "intent" in self._entries or any(
                key.startswith("garbage/") for key in self._entries
            ):
                return False
            state = self.store.catalog.read(read_state)
        return not state.building and all(
            state.status[v.id].state == LIVE for v in state.views.values()
        )

    @property
    def _entries(self) -> dict[str, bytes]:
        return self.store.catalog._entries  # type: ignore[attr-defined, no-any-return]  # the judge looks without a point


def readable(cut: Cut) -> list[ViewDefinition]:
    return [v for v in cut.state.views.values() if cut.state.status[v.id].state == LIVE]


def content(rows: pa.Table) -> Content:
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _nine_digits(rows: Content) -> Content:
    found: Content = Counter()
    for row, count in rows.items():
        found[tuple(round(v, 9) if isinstance(v, float) else v for v in row)] += count
    return found
