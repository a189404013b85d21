"""How many rows an operator emits, given what it is fed: one rule per law.

    a source        its table
    stateless       a share of its input: what is left of the sample
    one input       as many as its input has; what it keeps as `sizes` says
    Aggregate       one per group: scaled as its groups are
    TopK            of every group the first ones
    Join            pairs, and rows without a match (`joins`)
    SetOperation    rows on both sides (`sets`)

Every rule runs the real operator over the samples (`trial`). An operator without a rule of its own
gets that of its role; one from outside adds a rule with `emit.register`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np
import pyarrow as pa

from belvedere.cost.distinct import Distinct, distinct, frequencies
from belvedere.cost.joins import Meeting
from belvedere.cost.relation import Relation, union
from belvedere.cost.sets import compare
from belvedere.cost.sizes import Kept, kept, sized
from belvedere.cost.trial import Trial, records
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.base import Operator, Stateful, Stateless
from belvedere.operators.grouping import group
from belvedere.operators.join import Join
from belvedere.operators.select import Select
from belvedere.operators.set_operation import SetOperation
from belvedere.operators.sides import LEFT, RIGHT
from belvedere.operators.topk import TopK


@dataclass(frozen=True, slots=True)
class Fed:
    """What a node gets: a relation per port; the words for its state tables, one each; and a number
    by which chance is different in every node.
    """

    ports: tuple[Relation, ...]
    words: tuple[str, ...]
    salt: int

    @property
    def first(self) -> Relation:
        return self.ports[0]

    @property
    def samples(self) -> list[tuple[pa.Table, ...]]:
        return [port.sample for port in self.ports]


@dataclass(frozen=True, slots=True)
class Result:
    """What an operator emits, and keeps but for errors; a join also whom it brought together."""

    relation: Relation
    state: tuple[Kept, ...] = ()
    meeting: Meeting | None = None
    pairs: float = 0.0


@singledispatch
def emit(operator: Operator, trial: Trial, fed: Fed) -> Result:
    """The rule of an operator; a source passes on its table."""
    return Result(fed.first)


@emit.register
def emit_stateless(operator: Stateless, trial: Trial, fed: Fed) -> Result:
    return Result(fed.first.share(trial.apply(operator, fed.first.sample)))


@emit.register
def emit_select(operator: Select, trial: Trial, fed: Fed) -> Result:
    result = emit_stateless(operator, trial, fed).relation
    if operator.tag >= 0:  # identities are no longer those of the base table
        result = replace(result, origin=0)
    return Result(result)


@emit.register
def emit_stateful(operator: Stateful, trial: Trial, fed: Fed) -> Result:
    """As many rows as are fed, if it emits any: an arrangement; a sink emits nothing."""
    emitted, state = _step(operator, trial, fed)
    rows = fed.first.rows if emitted else 0.0
    return Result(replace(fed.first, sample=emitted, rows=rows), state)


@emit.register
def emit_groups(operator: Aggregate, trial: Trial, fed: Fed) -> Result:
    emitted, state = _step(operator, trial, fed)
    groups, rows = state[0], fed.first
    error = math.hypot(rows.error, groups.error)
    found = _seen(emitted) * groups.scale
    return Result(Relation(emitted, found, rows.exact, error, 0, rows.tables), state)


@emit.register
def emit_first(operator: TopK, trial: Trial, fed: Fed) -> Result:
    emitted, state = _step(operator, trial, fed)
    rows = fed.first
    found, error = (float(_seen(emitted)), 0.0) if rows.exact else _first(operator, rows)
    return Result(Relation(emitted, found, rows.exact, error, rows.origin, rows.tables), state)


@emit.register
def emit_compared(operator: SetOperation, trial: Trial, fed: Fed) -> Result:
    emitted = tuple(trial.step(operator, fed.samples))
    keys, values = records(trial.written.pop(operator.table, []))
    found = compare(operator, fed.ports, values, _seen(emitted))
    state = sized(fed.words[0], keys, values, found.records)
    error = math.hypot(state.error, *(f.error for f in fed.ports))
    exact = all(f.exact for f in fed.ports)
    return Result(Relation(emitted, found.rows, exact, error, 0, union(fed.ports).tables), (state,))


@emit.register
def emit_joined(join: Join, trial: Trial, fed: Fed) -> Result:
    left, right = fed.ports
    meeting = Meeting(join, left, right)
    pairs, alone = meeting.pairs(), meeting.alone()
    unmatched = [alone[i] if i in join.outer else None for i in (LEFT, RIGHT)]
    ports = meeting.thinned(fed.salt, unmatched, pairs)
    emitted = tuple(trial.step(join, [port.sample for port in ports]))
    if join.condition is not None:
        pairs = _satisfying(join, trial, meeting, ports, pairs)
        alone = _without_partner(meeting, alone, pairs)
    exact, matched = all(port.exact for port in ports), left.rows - alone[LEFT]
    rows = float(_seen(emitted)) if exact else _rows_of(join, pairs, matched, alone)
    error = 0.0 if exact else meeting.error(rows, matched)
    origin = {"left": left.origin, "right": right.origin}.get(join.identity, 0)
    relation = Relation(emitted, rows, exact, error, origin, union([left, right]).tables)
    return Result(relation, (), meeting, pairs)


def _step(
    operator: Stateful, trial: Trial, fed: Fed
) -> tuple[tuple[pa.Table, ...], tuple[Kept, ...]]:
    """What a trial emits, and what it leaves in the operator's tables but that of errors."""
    emitted = tuple(trial.step(operator, fed.samples))
    tables = zip(operator.tables(), fed.words, strict=True)
    state = tuple(
        kept(what, operator, table, trial.written.pop(table.id, []), fed.first)
        for table, what in tables
        if table.id != operator.error_table()
    )
    return emitted, state


def _satisfying(
    join: Join, trial: Trial, meeting: Meeting, ports: Sequence[Relation], pairs: float
) -> float:
    """Of the pairs that agree on the key, those that satisfy the condition."""
    inner = replace(join, kind="inner", identity="both")
    emitted = trial.step(inner, [port.sample for port in ports])
    return meeting.satisfying(pairs, Meeting(inner, *ports), emitted)


def _rows_of(join: Join, pairs: float, matched: float, alone: Sequence[float]) -> float:
    if join.filters:
        return matched if join.kind == "semi" else alone[LEFT]
    return pairs + sum(alone[side] for side in join.outer)


def _without_partner(meeting: Meeting, alone: Sequence[float], pairs: float) -> list[float]:
    sides = zip(meeting.sides, alone, strict=True)
    return [_without_any(side.relation.rows, a, pairs) for side, a in sides]


def _without_any(rows: float, alone: float, pairs: float) -> float:
    """Rows without a pair that satisfies a condition: those without any pair, and of the others as
    many as get none by chance.
    """
    able = rows - alone
    return alone + able * math.exp(-pairs / able) if able else alone


def _first(operator: TopK, fed: Relation) -> tuple[float, float]:
    """The first rows of every group: as many as the group has, at most `limit`; groups that the
    sample missed have one at least.
    """
    counts = np.bincount(group(fed.keys)[1])
    groups = distinct(counts, fed.rows) if operator.rows.key else Distinct(1, 1, 1)
    each = np.minimum(frequencies(counts, fed.rows, groups.value), operator.limit)
    rows = min(fed.rows, float(each.sum()) + groups.value - len(counts))
    return rows, math.hypot(fed.error, groups.error)


def _seen(emitted: Sequence[pa.Table]) -> int:
    return sum(table.num_rows for table in emitted)
