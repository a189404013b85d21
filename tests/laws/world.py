"""One random case, run: a store, a coordinator that may crash, and a judge that looks at every view
after every epoch.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, cast

from belvedere.catalog.definitions import LIVE, ViewDefinition
from belvedere.catalog.state import CatalogState, read_state
from belvedere.catalog.tables import create_table
from belvedere.catalog.views import create_view, drop_view
from belvedere.epochs.coordinator import Coordinator
from belvedere.errors import CatalogError, SqlError
from belvedere.readers.cut import Cut
from belvedere.readers.problems import LISTED, problems
from belvedere.stores.embedded import EmbeddedStore
from belvedere.stores.memory import MemoryStore, RowRules
from belvedere.types import Vector
from tests.laws.deadly import Crash, Deadly, Runner
from tests.laws.domains import is_long
from tests.laws.judges import in_order, judge_of, same_rows
from tests.laws.model import Model
from tests.laws.points import check_points
from tests.laws.script import Action, Base, Case, Create, Drop, Run, Settle, Write

__all__ = ["Action", "Base", "Case", "Create", "Drop", "Run", "World", "Write"]

Row = tuple[Any, ...]
_PATIENCE = 500  # more epochs than any case needs


@dataclass
class World:
    """With `opened` the case is run on that store instead of its own."""

    case: Case
    seen: Counter[str] = field(default_factory=Counter)
    opened: Any = None
    level: str = "strong"  # that views ask for
    dice: Random = field(default_factory=lambda: Random(3))

    def run(self) -> Counter[str]:
        """Run the script and then until nothing is left to do, looking at every view after every
        epoch.
        """
        with ExitStack() as closing:
            store = self.opened or self._open(closing)
            closing.callback(store.close)
            if self.case.longest_key is not None:
                limits = replace(store.capabilities, longest_key=self.case.longest_key)
                store.capabilities = limits
            self._play(store)
        return self.seen

    def _open(self, closing: ExitStack) -> Any:
        if self.case.store != "embedded":
            rows = RowRules() if self.case.store == "rows" else None
            return MemoryStore(self.case.slots, self.case.streams, rows=rows)
        folder = tempfile.mkdtemp(prefix="belvedere-law-")
        closing.callback(shutil.rmtree, folder)
        return EmbeddedStore.open(folder, self.case.slots)

    def _play(self, store: Any) -> None:
        # passes on what it does not change, so it is a store as well
        self.store = cast("Any", Deadly(store))
        self.time = 1000.0
        self.last: dict[int, tuple[int, list[Row]]] = {}
        for base in self.case.tables:
            create_table(self.store, base.name, base.table.schema, base.before_images)
        state = self._state()
        self.tables = [state.table(b.name) for b in self.case.tables]
        self.model = Model(self.tables)
        longest_key = store.capabilities.longest_key
        self.judge = judge_of(self.case, self.tables, longest_key)
        try:
            self.judge.moved(self.model)
            self.coordinator = self._new_coordinator()
            for action in self.case.script:
                self._act(action)
            self._until_dry()
            self._until_gone()
        finally:
            self.judge.close()

    def _state(self) -> CatalogState:
        found: CatalogState = self.store.catalog.read(read_state)
        return found

    def _act(self, action: Action) -> None:
        if isinstance(action, Write):
            self.model.write(self.store, self.tables[action.table], action.operations)
        elif isinstance(action, Create):
            self._create(action)
        elif isinstance(action, Drop):
            self._drop(action)
        elif isinstance(action, Settle):
            self._until_dry()
        else:
            self._epoch(action)

    def _drop(self, drop: Drop) -> None:
        """A view that was replaced and is still read may use the one that should go."""
        try:
            self.seen["drop"] += drop_view(self.store, drop.name, if_exists=True)
        except CatalogError as error:
            if "used by" not in str(error):
                raise

    def _create(self, create: Create) -> None:
        """A view that is refused is not there; the law of trees counts how many are."""
        view = create.view
        self.seen["replaced"] += create.replace
        try:
            create_view(self.store, create.name, view.select, view.key, self.level, create.replace)
        except SqlError as error:
            if self.case.law == "single":
                raise
            self.seen["refused"] += 1
            self.seen[f"refused: {error}"] += 1
        except CatalogError as error:
            if "used by" not in str(error):
                raise

    def _until_dry(self) -> None:
        for i in range(_PATIENCE):
            if not self._epoch(Run(1 + i % 2)):
                break
        else:
            raise AssertionError("the coordinator never comes to an end")
        state = self._state()
        assert {s.state for s in state.status.values()} <= {LIVE}
        assert all(
            state.head.vector.get(stream, 0) == end for stream, end in self.store.base.end().items()
        )

    def _until_gone(self) -> None:
        """Without views there is nothing in the state but delta views; views go before those that
        they read.
        """
        names = sorted(self._state().views, reverse=True)
        for name in [n for n in names if "again" in n] + [n for n in names if "again" not in n]:
            drop_view(self.store, name)
        for _ in range(_PATIENCE):  # what they leave is removed in portions of some time
            self._until_dry()
            if not self.store.catalog.read(lambda t: t.scan("garbage/")):
                break
        tables = range(1, int(self.store.catalog.get_one("next_id")))
        deltas = {t.delta for t in self.tables}
        left = {
            (slot, t)
            for slot in range(self.case.slots)
            for t in tables
            if t not in deltas and self.store.count(slot, t)[0]
        }
        assert not left, f"slots and tables that dropped views have left: {sorted(left)}"

    def _new_coordinator(self) -> Coordinator:
        self.time += 60.0  # the lease of a dead coordinator ends
        coordinator = Coordinator(
            self.store, Runner(self.store), self.case.settings, now=lambda: self.time
        )
        assert coordinator.acquire()
        return coordinator

    def _epoch(self, run: Run) -> bool:
        self.time += 1.0
        self.coordinator.runner = Runner(self.store, run.tasks, run.dies_at == -1)
        self.store.commits_left = (
            math.inf if run.dies_at is None or run.dies_at == -1 else run.dies_at
        )
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
        state = self._state()
        if self.model.advance(state.head.vector):
            self.judge.moved(self.model)
        for view in state.views.values():
            if state.status[view.id].state == LIVE:
                self._check(view, state)

    def _check(self, view: ViewDefinition, state: CatalogState) -> None:
        where = f"{view.select} with key {view.key}, epoch {state.head.epoch}"
        types = self.judge.types(view)
        assert types is None or [str(t) for t in types] == [
            str(c.type) for c in view.schema.columns
        ], where
        expected = self.judge.expected(view, state, self.seen)
        cut = Cut(self.store, state.head.epoch, state.head.vector, state)
        actual = _rows(cut, view)
        self.seen["long values"] += any(is_long(value) for row in actual for value in row)
        self._check_history(view, state, actual)
        self.seen["other zeros"] += check_points(cut, view, actual, self.dice)
        errors = state.in_error(view)
        assert len(problems(cut, view)) == min(errors, LISTED), where
        if expected is not None:
            self.seen["something to see"] += len(expected.rows)
            assert same_rows(actual, expected.rows), (
                f"{where}\nshows     {in_order(actual)}\nshould be {in_order(expected.rows)}"
            )
            assert errors == expected.errors, (
                f"{where}\n{errors} rows in error, not {expected.errors}"
            )

    def _check_history(self, view: ViewDefinition, state: CatalogState, actual: list[Row]) -> None:
        """What the epoch before showed can still be read."""
        epoch, rows = self.last.get(view.id, (0, []))
        if epoch == state.head.epoch - 1 and epoch:
            cut = Cut(self.store, epoch, Vector(), state)
            assert same_rows(_rows(cut, view), rows), (
                f"{view.select}: epoch {epoch} reads differently after epoch {state.head.epoch}"
            )
        self.last[view.id] = state.head.epoch, actual


def _rows(cut: Cut, view: ViewDefinition) -> list[Row]:
    return list(zip(*(c.to_pylist() for c in cut.rows(view).columns), strict=True))
