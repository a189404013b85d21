"""Pieces of the engine that can be replaced by what a careless engineer would have written.

Each breaks one rule of docs/rules.md that has no switch of its own in the store or the ledger;
`test_rules` shows that the simulator notices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.state import read_head, read_state
from belvedere.epochs import commits, coordinator, manager, source
from belvedere.epochs.intent import Intent
from belvedere.errors import Stale
from belvedere.evaluation import evaluate
from belvedere.graph import Places
from belvedere.operators import exact, select
from belvedere.readers import cut
from belvedere.readers.cut import Cut
from belvedere.sql import planner
from belvedere.sql.planned import PlannedView
from belvedere.sql.planner import plan_view
from belvedere.stores.base import Shard, Store


@contextmanager
def log_to_its_end() -> Iterator[None]:
    """R5: an attempt reads all that is logged when it runs, not what its intent says."""
    read = source.read_operations

    def careless(store: Store, intent: Intent, slots: Sequence[int]) -> Any:
        return read(store, replace(intent, high=store.base.end()), slots)

    with patch.object(source, "read_operations", careless):
        yield


_BITS = 50  # of a careless sum


@contextmanager
def rounded_sums() -> Iterator[None]:
    """R5: doubles are added as they come, each sum rounded, so the result depends on order and
    width.

    To fewer bits than a double has, but to more than nine digits: so it shows in few schedules
    already.
    """
    add = exact.add

    def careless(a: exact.Total, b: exact.Total) -> exact.Total:
        units, *others = add(a, b)
        mantissa, exponent = math.frexp(units / (1 << 1074))
        rounded = Fraction(math.ldexp(round(math.ldexp(mantissa, _BITS)), exponent - _BITS))
        return (int(rounded * (1 << 1074)), *others)  # type: ignore[return-value]  # the length is that of a Total

    with patch.object(exact, "add", careless):
        yield


@contextmanager
def late_names() -> Iterator[None]:
    """R6: a reader takes the epoch first and looks its views up afterwards."""

    def careless(store: Store, read: Callable[[Cut], Any]) -> Any:
        while True:
            head = store.catalog.read(read_head)
            state = store.catalog.read(read_state)
            try:
                result = read(Cut(store, head.epoch, head.vector, state))
            except Stale:
                continue
            if cut._still_there(state, store.catalog.read(read_state)):
                return result

    with patch.object(cut, "at_cut", careless):
        yield


@contextmanager
def no_second_look() -> Iterator[None]:
    """R6: a reader does not look whether its views were dropped while it read."""
    with patch.object(cut, "_still_there", lambda before, after: True):
        yield


@contextmanager
def unseen_pins() -> Iterator[None]:
    """R6: collection and trimming do not ask for pins."""
    with (
        patch.object(coordinator, "oldest_pin", lambda store, now: None),
        patch.object(commits, "oldest_pin_in", lambda t, now: None),
    ):
        yield


@contextmanager
def ids_again() -> Iterator[None]:
    """R7: a view that is created again gets the state tables of the one before."""
    given: dict[tuple[str, tuple[str, ...]], ViewDefinition] = {}
    bind = ViewDefinition.bind

    def careless(view: ViewDefinition, known: Places, new_id: Callable[[], int]) -> ViewDefinition:
        before = given.setdefault((view.select, view.key), bind(view, known, new_id))
        return replace(view, planned=before.planned, bound=True)

    with patch.object(ViewDefinition, "bind", careless):
        yield


@contextmanager
def sinks_without_exchange() -> Iterator[None]:
    """R8: the task that computes a row writes it, whoever owns the row's key. (An engine that asks
    refuses: see `shard`.)
    """

    def careless(*arguments: Any) -> PlannedView:
        planned = plan_view(*arguments)
        return replace(planned, nodes=(*planned.nodes[:-1], replace(planned.nodes[-1], local=True)))

    def shard(attempt: manager.Attempt, slot: int) -> Shard:
        if slot not in attempt.shards:
            attempt.shards[slot] = manager._Recording(
                attempt.store.state.shard(slot, attempt.plan.intent.epoch), attempt
            )
        return attempt.shards[slot]

    with ExitStack() as stack:
        stack.enter_context(patch.object(planner, "plan_view", careless))
        stack.enter_context(patch.object(manager.Attempt, "shard", shard))
        yield


@contextmanager
def raising_rows() -> Iterator[None]:
    """R9: an expression that raises ends the attempt."""

    def careless(expressions: Sequence[select.Expression], changes: pa.Table, *_: Any) -> Any:
        wanted = ", ".join(f"{e.sql} AS x{i}" for i, e in enumerate(expressions))
        return (
            select._typed(evaluate(f"SELECT {wanted} FROM changes", changes), expressions),
            changes,
        )

    with patch.object(select, "_evaluate", careless):
        yield


SUBSTITUTES = {
    piece.__name__: piece
    for piece in (
        log_to_its_end,
        rounded_sums,
        late_names,
        no_second_look,
        unseen_pins,
        ids_again,
        sinks_without_exchange,
        raising_rows,
    )
}
