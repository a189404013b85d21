"""The thread of one view that is kept by an algorithm, and what it says of itself.

Each view follows its sources by connections of its own, as it alone knows what it covers: a server
that keeps its log for followers has one more of them, whose name ends with the number of the view's
table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from belvedere.capture.condition import FOLLOWING, Condition
from belvedere.capture.worker import POLL, Worker
from belvedere.catalog import layout
from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.catalog.state import CatalogState, read_state
from belvedere.sources.base import Answer, Lag, Question, Source
from belvedere.stores.base import Store
from belvedere.warehouse.manager import Manager

LOADING = "loading"
_NOTE_EVERY = 1.0  # seconds between two notes that all is well
_LAG_EVERY = 5.0  # seconds between two questions to sources about what they keep

# opens a source that is followed for one table
OpenFor: TypeAlias = Callable[[SourceDefinition, TableDefinition], Source]
# asks in other processes
AskSource: TypeAlias = Callable[[SourceDefinition, Sequence[Question]], Sequence[Answer]]


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a view is behind one of its sources: transactions that were received and are not in
    it, and when the first of them was committed; bytes of the source's log that were not read, and
    that it keeps for this view.
    """

    source: str
    transactions: int
    since: float
    unread: int
    kept: int
    note: str


@dataclass(frozen=True, slots=True)
class Note:
    """`waits`: what the next rows wait for. `asked` and `again` count questions since the process
    began to keep the view.
    """

    state: str
    time: float
    message: str = ""
    waits: str = ""
    asked: int = 0
    again: int = 0
    behind: tuple[Behind, ...] = ()

    @property
    def is_wrong(self) -> bool:
        return self.state not in (FOLLOWING, LOADING)


def read_notes(store: Store) -> dict[int, Note]:
    """By the views' tables."""
    found = store.catalog.read(layout.KEEPING.all)
    return {table: _note(said) for table, said in found.items()}


def _note(said: dict[str, Any]) -> Note:
    behind = tuple(Behind(**each) for each in said.get("behind", ()))
    return Note(**{**said, "behind": behind})


def sources_of(state: CatalogState, table: TableDefinition) -> dict[str, SourceDefinition]:
    assert table.joined is not None
    return {name: state.source(name) for name in table.joined.sources}


class Keeping(Worker):
    def __init__(
        self,
        store: Store,
        table: TableDefinition,
        open_for: OpenFor,
        holds: Callable[[], bool],
        ask_far: AskSource | None = None,
    ) -> None:
        assert table.joined is not None
        super().__init__(store, f"view {table.joined.view}", holds)
        self._table, self._open_for, self._ask_far = table, open_for, ask_far
        self._manager: Manager | None = None
        self._said = 0.0
        self._lags: dict[str, Lag] = {}
        self._asked_lag = 0.0

    def _step(self) -> None:
        if self._manager is None:
            found = sources_of(self._store.catalog.read(read_state), self._table)
            opened = {name: self._open_for(source, self._table) for name, source in found.items()}
            ask = self._ask_far
            far = {} if ask is None else {n: partial(ask, source) for n, source in found.items()}
            self._manager = Manager(self._store, self._table, opened, self.ending, far=far)
        self._manager.step(POLL)
        self._note(LOADING if self._manager.is_loading else FOLLOWING)

    def _note(self, state: str) -> None:
        is_news = self._noted is None or self._noted.state != state
        if is_news or time.monotonic() - self._asked_lag >= _LAG_EVERY:
            assert self._manager is not None
            self._lags = {s: self._manager.lag(s) for s in self._manager.sources}
            self._asked_lag = time.monotonic()
        if is_news or time.monotonic() - self._said >= _NOTE_EVERY:
            self._note_condition(Condition(state, time.time()))

    def _note_condition(self, condition: Condition) -> None:
        self._said, self._noted = time.monotonic(), condition
        manager = self._manager
        note = Note(condition.state, condition.time, condition.message)
        if manager is not None:
            note = replace(
                note,
                waits=manager.waits,
                asked=manager.asked,
                again=manager.asked_again,
                behind=tuple(self._behind(manager, s) for s in manager.sources),
            )

        def body(t: Any) -> None:
            if layout.TABLES.get(t, self._table.id) is not None:
                layout.KEEPING.put(t, self._table.id, asdict(note))

        self._store.catalog.transact(body)

    def _behind(self, manager: Manager, source: str) -> Behind:
        lag = self._lags.get(source, Lag(0, 0))
        return Behind(source, *manager.behind(source), lag.bytes, lag.kept_bytes, lag.note)

    def _after(self, error: Exception) -> None:
        self._let_go()

    def _let_go(self) -> None:
        if self._manager is not None:
            self._manager.close()
            self._manager = None
