"""The master property can fail: each of these faults, planted in the engine, is found within a few
hundred cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from belvedere.changes import net
from belvedere.epochs import garbage, level, manager
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.plan import COMPLETE, EpochPlan
from belvedere.epochs.rules import Rules as LedgerRules
from belvedere.errors import PipelineError, StoreError
from belvedere.operators import (
    aggregate,
    counts,
    errors,
    join,
    matching,
    select,
    set_operation,
    sinks,
    topk,
)
from belvedere.operators.aggregate import ordered
from belvedere.operators.grouping import Int128
from belvedere.readers import base_rows
from belvedere.sql.plan import membership, nodes
from belvedere.stores.memory import MemoryStore, Rules
from belvedere.stores.memory.base_tables import MemoryBase
from tests.laws import kept_cases, law, world
from tests.laws.cases import random_case
from tests.laws.script import Case
from tests.laws.trees.cases import random_shared_case, random_tree_case

Plant = Callable[[pytest.MonkeyPatch], None]
_ENOUGH = 500
# Where few cases have what a fault is about, the search begins a little before the first that does.
_FIRST_SEED = {
    "a_vanished_minimum_is_found_again": 12,
    "loading_reads_rows_as_they_are_now": 44,
    "the_carry_of_a_sum_is_lost": 40,
    "a_condition_that_is_null_holds": 14,
    "null_keys_match": 38,
    "an_anti_join_does_not_see_its_key_become_empty": 55,
    "a_top_is_not_filled_again": 94,
    "except_all_owes_copies": 37,
    "intersect_all_keeps_what_one_side_has": 395,
}


def a_vanished_minimum_is_found_again(m: pytest.MonkeyPatch) -> None:
    search = ordered.Ordered._search
    m.setattr(
        ordered.Ordered,
        "_search",
        lambda self, shard, key, gone, limit, reverse: search(
            self, shard, key, iter(()), limit, reverse
        ),
    )


def distinct_values_only_grow(m: pytest.MonkeyPatch) -> None:
    apply = ordered.Ordered.apply
    m.setattr(
        ordered.Ordered,
        "apply",
        lambda *args: (t := apply(*args)) and replace(t, distinct=np.maximum(t.distinct, 0)),
    )


def the_sum_of_nothing_is_zero(m: pytest.MonkeyPatch) -> None:
    added = aggregate.Aggregate._added

    def wrong(self: Any, old: Any, delta: Any, touched: Any) -> Any:
        state = added(self, old, delta, touched)
        counted = (replace(a, non_null=np.maximum(a.non_null, 1)) for a in state.arguments)
        return replace(state, arguments=tuple(counted))

    m.setattr(aggregate.Aggregate, "_added", wrong)


def a_global_aggregate_begins_without_a_row(m: pytest.MonkeyPatch) -> None:
    m.setattr(level.Level, "_first_rows", lambda self: [])


def a_loading_view_sees_all_changes(m: pytest.MonkeyPatch) -> None:
    marks = EpochPlan.marks
    m.setattr(
        EpochPlan, "marks", lambda self, node: [(group, None) for group, _ in marks(self, node)]
    )


def loading_reads_rows_as_they_are_now(m: pytest.MonkeyPatch) -> None:
    m.setattr(base_rows, "_later", lambda *args: None)


def the_history_shows_rows_as_they_are_now(m: pytest.MonkeyPatch) -> None:
    m.setattr(MemoryBase, "as_of", lambda self, vector: self.snapshot())


def the_first_before_image_is_forgotten(m: pytest.MonkeyPatch) -> None:
    operations = net.net_operations

    def wrong(keys: Any, values: Any, before: Any) -> net.NetChanges:
        return operations(
            keys, values, before if before is None else pa.nulls(len(before), pa.binary())
        )

    m.setattr(net, "net_operations", wrong)


def errors_stay_for_ever(m: pytest.MonkeyPatch) -> None:
    def only_new(shard: Any, table: int, rows: pa.Table) -> int:
        kept = rows.filter(pa.compute.greater(rows.column("_w"), 0))
        return errors.record_errors(shard, table, kept) if kept.num_rows else 0

    m.setattr(level, "record_errors", only_new)


def the_carry_of_a_sum_is_lost(m: pytest.MonkeyPatch) -> None:
    m.setattr(Int128, "__add__", lambda a, b: Int128(a.low + b.low, a.high + b.high))


def equal_rows_count_once(m: pytest.MonkeyPatch) -> None:
    counted = counts.counted
    m.setattr(sinks, "counted", lambda counts: counted(np.minimum(counts, 1)))


def a_retry_reads_its_own_writes(m: pytest.MonkeyPatch) -> None:
    m.setattr(
        world,
        "MemoryStore",
        lambda slots, streams, rows: MemoryStore(slots, streams, Rules(keep_before=False)),
    )


def an_open_intent_is_replaced(m: pytest.MonkeyPatch) -> None:
    m.setattr(world, "Coordinator", partial(Coordinator, rules=LedgerRules(one_intent=False)))


def a_condition_that_is_null_holds(m: pytest.MonkeyPatch) -> None:
    evaluate = select._evaluate

    def wrong(expressions: Any, changes: Any, numbers: Any, failures: Any) -> Any:
        values, rows = evaluate(expressions, changes, numbers, failures)
        return (
            [values[0].fill_null(True)]
            if expressions[0].type.name == "boolean" and numbers == [0]
            else values
        ), rows

    m.setattr(select, "_evaluate", wrong)


# ---------------------------------------------------------------- trees


def an_outer_join_is_bilinear(m: pytest.MonkeyPatch) -> None:
    """Rows that stay never gain or lose their NULLs."""
    m.setattr(join._Step, "_flipped", lambda *args: iter(()))


class _AsOfNow(manager._Recording):
    """Reads what this epoch has written already."""

    def __init__(self, shard: Any, attempt: Any) -> None:
        super().__init__(shard, attempt)
        self.get_many, self.scan_prefixes = self._get_many, self._scan_prefixes

    def _written(self, table: int) -> dict[bytes, bytes | None]:
        write = self._attempt.written.get((self.slot, table))
        return (
            {}
            if write is None
            else dict(zip(write.keys.to_pylist(), write.values.to_pylist(), strict=True))
        )

    def _get_many(self, table: int, keys: pa.BinaryArray) -> pa.BinaryArray:
        new, old = self._written(table), self._shard.get_many(table, keys).to_pylist()
        return pa.array(
            [new.get(k, v) for k, v in zip(keys.to_pylist(), old, strict=True)], pa.binary()
        )

    def _scan_prefixes(
        self, table: int, prefixes: pa.BinaryArray, limit: int | None = None, batch: int = 0
    ) -> Any:
        found: dict[bytes, bytes | None] = {}
        for _, keys, values in self._shard.scan_prefixes(table, prefixes):
            found |= zip(keys.to_pylist(), values.to_pylist(), strict=True)
        found |= self._written(table)
        for i, prefix in enumerate(prefixes.to_pylist()):
            part = [
                (k, v) for k, v in sorted(found.items()) if k.startswith(prefix) and v is not None
            ][:limit]
            if part:
                yield (
                    np.full(len(part), i),
                    *(pa.array(column, pa.binary()) for column in zip(*part, strict=True)),
                )


def a_join_reads_what_the_epoch_writes(m: pytest.MonkeyPatch) -> None:
    m.setattr(manager, "_Recording", _AsOfNow)


def null_keys_match(m: pytest.MonkeyPatch) -> None:
    plain = matching.Matching

    def wrong(found: join.Join, shard: Any, keys: Any) -> Any:
        return plain(replace(found, null_safe=tuple(True for _ in found.null_safe)), shard, keys)

    m.setattr(join, "Matching", wrong)


def every_sink_is_local(m: pytest.MonkeyPatch) -> None:
    add = nodes.Nodes.add
    m.setattr(
        nodes.Nodes,
        "add",
        lambda self, o, inputs=(), local=False: add(
            self, o, inputs, local or isinstance(o, sinks.KeyedSink)
        ),
    )


def an_anti_join_does_not_see_its_key_become_empty(m: pytest.MonkeyPatch) -> None:
    look_up = join._Step._look_up

    def wrong(self: Any) -> None:
        look_up(self)
        if self.join.kind == "anti":
            self.flips = [np.zeros_like(f) for f in self.flips]

    m.setattr(join._Step, "_look_up", wrong)


def a_top_is_not_filled_again(m: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, shard: Any, keys: Any, losing: Any, lost: Any) -> Any:
        return self._read(shard, keys, np.arange(len(keys)), self.limit, lost)

    m.setattr(topk.TopK, "_first", wrong)


def except_all_owes_copies(m: pytest.MonkeyPatch) -> None:
    present = set_operation.SetOperation._present

    def wrong(self: Any, counts: Any) -> Any:
        return (
            counts[:, 0] - counts[:, 1]
            if self.all and self.kind == "except"
            else present(self, counts)
        )

    m.setattr(set_operation.SetOperation, "_present", wrong)


def intersect_all_keeps_what_one_side_has(m: pytest.MonkeyPatch) -> None:
    present = set_operation.SetOperation._present

    def wrong(self: Any, counts: Any) -> Any:
        return (
            counts[:, 0] * (counts[:, 1] > 0)
            if self.all and self.kind == "intersect"
            else present(self, counts)
        )

    m.setattr(set_operation.SetOperation, "_present", wrong)


def loading_feeds_what_is_complete_once_more(m: pytest.MonkeyPatch) -> None:
    pass_on = level.Level._pass_on

    def wrong(self: Any, origin: Any, node: Any, changes: Any, audience: int) -> None:
        pass_on(self, origin, node, changes, audience)
        load = self.plan.intent.load
        if load is not None and load.origin == node.id and audience == load.group:
            pass_on(self, origin, node, changes, COMPLETE)

    m.setattr(level.Level, "_pass_on", wrong)


def branches_of_a_union_have_one_identity(m: pytest.MonkeyPatch) -> None:
    m.setattr(nodes, "Select", lambda *args: select.Select(*args[:4]))


def dropped_views_leave_their_tables(m: pytest.MonkeyPatch) -> None:
    m.setattr(garbage, "state_tables", lambda node: ())


def not_in_is_not_exists(m: pytest.MonkeyPatch) -> None:
    m.setattr(membership.Membership, "_nullable", lambda self, relation: False)


ONE_TABLE: list[Plant] = [
    a_vanished_minimum_is_found_again,
    distinct_values_only_grow,
    the_sum_of_nothing_is_zero,
    a_global_aggregate_begins_without_a_row,
    a_loading_view_sees_all_changes,
    loading_reads_rows_as_they_are_now,
    the_history_shows_rows_as_they_are_now,
    the_first_before_image_is_forgotten,
    errors_stay_for_ever,
    the_carry_of_a_sum_is_lost,
    equal_rows_count_once,
    a_retry_reads_its_own_writes,
    an_open_intent_is_replaced,
    a_condition_that_is_null_holds,
]
TREES: list[Plant] = [
    an_outer_join_is_bilinear,
    a_join_reads_what_the_epoch_writes,
    null_keys_match,
    every_sink_is_local,
    an_anti_join_does_not_see_its_key_become_empty,
    a_top_is_not_filled_again,
    except_all_owes_copies,
    intersect_all_keeps_what_one_side_has,
    branches_of_a_union_have_one_identity,
    not_in_is_not_exists,
]
SHARING: list[Plant] = [
    a_loading_view_sees_all_changes,
    loading_feeds_what_is_complete_once_more,
    a_retry_reads_its_own_writes,
    dropped_views_leave_their_tables,
]


def _is_found(
    fault: Plant, make: Callable[[int], Case], m: pytest.MonkeyPatch, folder: Path
) -> None:
    fault(m)
    m.setattr(law, "shrunk", lambda case, fails: case)
    m.setattr(law, "keep", partial(kept_cases.keep, folder=folder))
    with pytest.raises(AssertionError, match="run it again") as caught:
        law.hold_the_law(make, _FIRST_SEED.get(fault.__name__, 0), _ENOUGH)
    cause = caught.value.__cause__
    # A wrong view, a store that notices a wrong value before, an epoch that meets slots of others,
    # a row that is there less than no times; anything else would be a plant that does not work.
    assert isinstance(cause, AssertionError | StoreError | PipelineError) or "negative" in str(
        cause
    )
    (path,) = kept_cases.files(folder)
    assert type(law.error_of(kept_cases.read(path))) is type(cause), "its file fails as it did"


_FAULTS = {fault.__name__: fault for fault in (*ONE_TABLE, *TREES, *SHARING)}
_FOUND_SO = [path for path in kept_cases.files() if path.stem in _FAULTS]


@pytest.mark.parametrize("path", _FOUND_SO, ids=lambda path: path.stem)
def test_a_kept_case_that_has_the_name_of_a_fault_finds_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _FAULTS[path.stem](monkeypatch)
    assert law.error_of(kept_cases.read(path)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("fault", ONE_TABLE, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(
    fault: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _is_found(fault, random_case, monkeypatch, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", TREES, ids=lambda fault: fault.__name__)
def test_a_fault_planted_in_trees_is_found(
    fault: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _is_found(fault, random_tree_case, monkeypatch, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", SHARING, ids=lambda fault: fault.__name__)
def test_a_fault_planted_in_what_views_share_is_found(
    fault: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _is_found(fault, random_shared_case, monkeypatch, tmp_path)
