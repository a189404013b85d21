"""The master property can fail: each of these faults, planted in the engine, is found within a few hundred cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from belvedere.changes import net
from belvedere.errors import StoreError
from belvedere.operators import aggregate, errors, ordered, select, sinks
from belvedere.operators.grouping import Int128
from belvedere.pipeline import manager
from belvedere.pipeline.ledger import Rules as LedgerRules
from belvedere.readers import base_rows
from belvedere.stores.memory import Rules
from tests.laws import test_master_property, world

Plant = Callable[[pytest.MonkeyPatch], None]
_ENOUGH = 500


def a_vanished_minimum_is_found_again(m: pytest.MonkeyPatch) -> None:
    search = ordered.Ordered._search
    m.setattr(ordered.Ordered, "_search", lambda self, shard, key, gone, limit, reverse: search(self, shard, key, iter(()), limit, reverse))


def distinct_values_only_grow(m: pytest.MonkeyPatch) -> None:
    apply = ordered.Ordered.apply
    m.setattr(ordered.Ordered, "apply", lambda *args: (t := apply(*args)) and replace(t, distinct=np.maximum(t.distinct, 0)))


def the_sum_of_nothing_is_zero(m: pytest.MonkeyPatch) -> None:
    added = aggregate.Aggregate._added

    def wrong(self: Any, old: Any, delta: Any, touched: Any) -> Any:
        state = added(self, old, delta, touched)
        return replace(state, non_null=[np.maximum(n, 1) for n in state.non_null])

    m.setattr(aggregate.Aggregate, "_added", wrong)


def a_global_aggregate_begins_without_a_row(m: pytest.MonkeyPatch) -> None:
    m.setattr(manager.Attempt, "_first_rows", lambda self, level: [])


def a_loading_view_sees_all_changes(m: pytest.MonkeyPatch) -> None:
    run = manager.Attempt.run

    def wrong(self: Any, level: int, incoming: Any) -> Any:
        self._watermarks = dict.fromkeys(self._watermarks)
        return run(self, level, incoming)

    m.setattr(manager.Attempt, "run", wrong)


def loading_reads_rows_as_they_are_now(m: pytest.MonkeyPatch) -> None:
    m.setattr(base_rows, "_later", lambda *args: None)


def the_first_before_image_is_forgotten(m: pytest.MonkeyPatch) -> None:
    operations = net.net_operations

    def wrong(keys: Any, values: Any, before: Any) -> net.NetChanges:
        return operations(keys, values, before if before is None else pa.nulls(len(before), pa.binary()))

    m.setattr(net, "net_operations", wrong)


def errors_stay_for_ever(m: pytest.MonkeyPatch) -> None:
    def only_new(shard: Any, table: int, rows: pa.Table) -> int:
        kept = rows.filter(pa.compute.greater(rows.column("_w"), 0))
        return errors.record_errors(shard, table, kept) if kept.num_rows else 0

    m.setattr(manager, "record_errors", only_new)


def the_carry_of_a_sum_is_lost(m: pytest.MonkeyPatch) -> None:
    m.setattr(Int128, "__add__", lambda a, b: Int128(a.low + b.low, a.high + b.high))


def equal_rows_count_once(m: pytest.MonkeyPatch) -> None:
    counted = sinks.counted
    m.setattr(sinks, "counted", lambda counts: counted(np.minimum(counts, 1)))


def a_retry_reads_its_own_writes(m: pytest.MonkeyPatch) -> None:
    plain = world.MemoryStore
    m.setattr(world, "MemoryStore", lambda slots, streams: plain(slots, streams, Rules(keep_before=False)))


def an_open_intent_is_replaced(m: pytest.MonkeyPatch) -> None:
    coordinator = world.Coordinator
    m.setattr(world, "Coordinator", lambda *args, **named: coordinator(*args, **named, rules=LedgerRules(one_intent=False)))


def a_condition_that_is_null_holds(m: pytest.MonkeyPatch) -> None:
    evaluate = select._evaluate

    def wrong(expressions: Any, changes: Any, numbers: Any, failures: Any) -> Any:
        values, rows = evaluate(expressions, changes, numbers, failures)
        return ([values[0].fill_null(True)] if expressions[0].type.name == "boolean" and numbers == 0 else values), rows

    m.setattr(select, "_evaluate", wrong)


FAULTS: list[Plant] = [
    a_vanished_minimum_is_found_again,
    distinct_values_only_grow,
    the_sum_of_nothing_is_zero,
    a_global_aggregate_begins_without_a_row,
    a_loading_view_sees_all_changes,
    loading_reads_rows_as_they_are_now,
    the_first_before_image_is_forgotten,
    errors_stay_for_ever,
    the_carry_of_a_sum_is_lost,
    equal_rows_count_once,
    a_retry_reads_its_own_writes,
    an_open_intent_is_replaced,
    a_condition_that_is_null_holds,
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    monkeypatch.setattr(test_master_property, "shrunk", lambda case, fails: case)
    with pytest.raises(AssertionError, match="run it again") as caught:
        test_master_property.hold_the_law(0, _ENOUGH)
    # A wrong view, or a store that notices a wrong value before; anything else would be a plant that does not work.
    assert isinstance(caught.value.__cause__, AssertionError | StoreError)
