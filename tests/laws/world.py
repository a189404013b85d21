"""One random case, run: a store, a coordinator that may crash, and a plain Python record of what was written."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.pipeline.coordinator import Coordinator, Settings
from belvedere.pipeline.local import LocalRunner
from belvedere.readers.cut import Cut
from belvedere.readers.problems import LISTED, problems
from belvedere.stores.embedded import EmbeddedStore
from belvedere.stores.memory import MemoryStore
from belvedere.types import Schema
from belvedere.views import catalog
from belvedere.views.definitions import LIVE, ViewDefinition
from tests.laws.domains import Table
from tests.laws.oracle import Expected, Oracle, canonical_row
from tests.laws.queries import View

Row = tuple[Any, ...]
_PATIENCE = 300  # more epochs than any case needs


class Crash(Exception):
    """The process ends here."""


@dataclass(frozen=True)
class Write:
    """Operations of one transaction: key values, and a row or None for a delete."""

    operations: tuple[tuple[Row, Row | None], ...]


@dataclass(frozen=True)
class Create:
    view: View


@dataclass(frozen=True)
class Run:
    """One epoch. The coordinator dies before or after its `dies_at`-th slot commit, or with -1 when all work is done."""

    tasks: int
    dies_at: int | None = None
    after: bool = False


@dataclass(frozen=True)
class Case:
    table: Table
    store: str  # "memory" or "embedded"
    slots: int
    streams: int
    before_images: bool
    settings: Settings
    script: tuple[Write | Create | Run, ...]


class Deadly:
    """A store whose slot commits can end the process; everything else is passed on."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.catalog, self.base, self.url, self.state = store.catalog, store.base, store.url, self
        self.slots = store.state.slots
        self.commits_left, self.after = math.inf, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.state, name)

    def shard(self, slot: int, epoch: int) -> Any:
        shard = self._store.state.shard(slot, epoch)
        return _DeadlyShard(self, shard)

    def committing(self, commit: Callable[[], None]) -> None:
        self.commits_left -= 1
        if self.commits_left < 0:
            if self.after:
                commit()
            raise Crash
        commit()


class _DeadlyShard:
    def __init__(self, store: Deadly, shard: Any) -> None:
        self.slot, self.epoch = shard.slot, shard.epoch
        self.get_many, self.scan, self.scan_batches = shard.get_many, shard.scan, shard.scan_batches
        self.write, self.close = shard.write, shard.close
        self.commit = lambda: store.committing(shard.commit)


@dataclass
class Runner:
    """Runs epochs in this process, and may die when all is written but not yet committed."""

    store: Deadly
    tasks: int = 1
    dies_at_end: bool = False

    def run(self, intent: Any) -> Any:
        acks = LocalRunner(self.store, self.tasks).run(intent)
        if self.dies_at_end:
            raise Crash
        return acks


class Model:
    """What was written, in log order, and the rows as of a vector."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.value_places = [i for i, name in enumerate(schema.names) if name not in schema.key]
        self._key = KeyCodec(tuple(c.type for c in schema.key_columns), normalize=False).encode_one
        self._value = RowCodec(tuple(c.type for c in schema.value_columns)).encode_one
        self.logs: dict[str, list[tuple[bytes, Row | None]]] = {}
        self.rows: dict[bytes, Row] = {}
        self.images: dict[bytes, bytes] = {}
        self._at: dict[str, int] = {}
        self._stream_of: dict[bytes, str] = {}

    def write(self, store: Any, table: int, before_images: bool, operations: Sequence[tuple[Row, Row | None]]) -> None:
        encoded = [(self._key(key), None if row is None else self._value(self._values(row))) for key, row in operations]
        ends = store.base.end()
        arrays = [pa.array([e[i] for e in encoded], pa.binary()) for i in (0, 1)]
        store.base.write(table, *arrays, before_images)
        for stream, end in store.base.end().items():
            for block in store.base.read_log(stream, ends.get(stream, 0), end):
                self._stream_of |= dict.fromkeys(block.keys.to_pylist(), stream)
        for (key, _), (_, row) in zip(encoded, operations, strict=True):
            self.logs.setdefault(self._stream_of[key], []).append((key, row))

    def advance(self, vector: dict[str, int]) -> None:
        for stream, position in vector.items():
            start = self._at.get(stream, 0)
            assert position >= start, "the committed vector went back"
            for key, row in self.logs.get(stream, [])[start:position]:
                self.rows.pop(key, None)
                if row is not None:
                    self.rows[key], self.images[key] = row, self._value(self._values(row))
            self._at[stream] = position

    def _values(self, row: Row) -> Row:
        return tuple(row[i] for i in self.value_places)


@dataclass
class World:
    case: Case
    seen: Counter[str] = field(default_factory=Counter)

    def run(self) -> Counter[str]:
        """Run the script and then until nothing is left to do, looking at every view after every epoch."""
        folder = Path(tempfile.mkdtemp(prefix="belvedere-law-")) if self.case.store == "embedded" else None
        store: Any = MemoryStore(self.case.slots, self.case.streams) if folder is None else EmbeddedStore.open(folder, self.case.slots)
        try:
            self._play(store)
        finally:
            store.close()
            if folder is not None:
                shutil.rmtree(folder)
        return self.seen

    def _play(self, store: Any) -> None:
        self.store, self.time = Deadly(store), 1000.0
        self.oracles: dict[int, Oracle] = {}
        self.before: dict[int, Expected] = {}
        self.last: dict[int, tuple[int, list[Row]]] = {}
        self.model = Model(self.case.table.schema)
        catalog.create_table(self.store, "base", self.case.table.schema, self.case.before_images)
        self.table = self.store.catalog.read(catalog.read_state).table("base")
        self.coordinator = self._new_coordinator()
        for action in self.case.script:
            self._act(action)
        self._until_dry()

    def _act(self, action: Write | Create | Run) -> None:
        if isinstance(action, Write):
            self.model.write(self.store, self.table.id, self.case.before_images, action.operations)
        elif isinstance(action, Create):
            name = f"view{len(self.store.catalog.read(catalog.read_state).views)}"
            catalog.create_view(self.store, name, action.view.select, action.view.key, "strong")
        else:
            self._epoch(action)

    def _until_dry(self) -> None:
        for i in range(_PATIENCE):
            if not self._epoch(Run(1 + i % 2)):
                break
        else:
            raise AssertionError("the coordinator never comes to an end")
        state = self.store.catalog.read(catalog.read_state)
        assert {s.state for s in state.status.values()} <= {LIVE}
        assert all(state.head.vector.get(stream, 0) == end for stream, end in self.store.base.end().items())

    def _new_coordinator(self) -> Coordinator:
        self.time += 60.0  # the lease of a dead coordinator ends
        coordinator = Coordinator(self.store, Runner(self.store), self.case.settings, now=lambda: self.time)
        assert coordinator.acquire()
        return coordinator

    def _epoch(self, run: Run) -> bool:
        self.time += 1.0
        self.coordinator.runner = Runner(self.store, run.tasks, run.dies_at == -1)
        self.store.commits_left = math.inf if run.dies_at in (None, -1) else run.dies_at
        self.store.after = run.after
        try:
            report = self.coordinator.step()
        except Crash:
            self.seen["crash"] += 1
            self.coordinator, report = self._new_coordinator(), None
            self._look()  # what the dead coordinator left half done is not to be seen
        finally:
            self.store.commits_left = math.inf
        if report is not None:
            self.seen[f"epoch {report.kind}"] += 1
            self._look()
        return report is not None

    def _look(self) -> None:
        """Every live view is the recomputation over the rows as of the committed vector."""
        state = self.store.catalog.read(catalog.read_state)
        self.model.advance(state.head.vector)
        for view in state.views.values():
            if state.status[view.id].state == LIVE:
                self._check(view, state)

    def _check(self, view: ViewDefinition, state: catalog.CatalogState) -> None:
        if view.id not in self.oracles:
            self.oracles[view.id] = Oracle(view.select, self.table.schema, view.schema.key)
        oracle = self.oracles[view.id]
        expected = oracle.recompute(self.model.rows, self.model.images)
        cut = Cut(self.store, state.head.epoch, state.head.vector, state)  # type: ignore[arg-type]  # Deadly passes all on
        actual = _rows(cut, view)
        where = f"{view.select} with key {view.key}, epoch {state.head.epoch}"
        assert [str(t) for t in oracle.types] == [str(c.type) for c in view.schema.columns], where
        assert same_rows(actual, expected.rows), f"{where}\nshows    {_sorted(actual)}\nshould be {_sorted(expected.rows)}"
        assert state.status[view.id].in_error == expected.errors, where
        assert len(problems(cut, view)) == min(expected.errors, LISTED), where
        self._check_history(view, state, actual)
        self._count(view, expected)

    def _check_history(self, view: ViewDefinition, state: catalog.CatalogState, actual: list[Row]) -> None:
        """What the epoch before showed can still be read."""
        epoch, rows = self.last.get(view.id, (0, []))
        if epoch == state.head.epoch - 1 and epoch:
            cut = Cut(self.store, epoch, {}, state)  # type: ignore[arg-type]
            assert same_rows(_rows(cut, view), rows), f"{view.select}: epoch {epoch} reads differently after epoch {state.head.epoch}"
        self.last[view.id] = state.head.epoch, actual

    def _count(self, view: ViewDefinition, now: Expected) -> None:
        old = self.before.get(view.id, Expected([], 0))
        self.before[view.id] = now
        self.seen["something to see"] += len(now.rows)
        self.seen["in error"] += now.errors
        self.seen["recovered"] += old.errors > now.errors
        self.seen["group moved"] += sum(old.groups.get(key, group) != group for key, group in now.groups.items())
        self.seen["extreme lost"] += _rises("min", old, now) + _rises("max", now, old)
        self.seen["distinct value lost"] += _rises("distinct", now, old)


def _rises(function: str, old: Expected, new: Expected) -> int:
    """In how many groups the result of a function is greater than it was."""
    groups, after = old.results.get(function, {}), new.results.get(function, {})
    return sum(any(map(_less, values, after.get(key, ()))) for key, values in groups.items())


def _less(a: Any, b: Any) -> bool:
    return a is not None and b is not None and type(a) is type(b) and bool(a < b)


def _rows(cut: Cut, view: ViewDefinition) -> list[Row]:
    return list(zip(*(c.to_pylist() for c in cut.rows(view).columns), strict=True))


def same_rows(actual: Sequence[Row], expected: Sequence[Row]) -> bool:
    """Equal as multisets; doubles may differ by rounding."""
    if Counter(map(canonical_row, actual)) == Counter(map(canonical_row, expected)):
        return True
    if len(actual) != len(expected):
        return False
    pairs = zip(_sorted(actual), _sorted(expected), strict=True)
    return all(len(a) == len(b) and all(map(_close, a, b)) for a, b in pairs)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-12)
    return type(a) is type(b) and bool(a == b)


def _sorted(rows: Sequence[Row]) -> list[Row]:
    return sorted(map(canonical_row, rows), key=lambda row: [repr(v) if not isinstance(v, float) else f"{v:.9e}" for v in row])
