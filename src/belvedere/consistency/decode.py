"""States that tell which row versions they contain, so that nothing has to be searched.

The token of a row version is what the view shows in a record over this row alone.

    powers     a sum of distinct powers of two: the bits that are set are the versions in it
    elements   rows that are all different: an index, a selection
    minimum    values that are all different: the least one is in the record, smaller ones are not

Facts of different rows are independent, so each row is scanned once, with a lower bound.

That holds for views over one table in which no row has a say in what is shown of another. Others,
such as joins, are searched, whatever their history says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from belvedere.consistency.history import Key, State, Values, View
from belvedere.consistency.lattice import Point
from belvedere.consistency.recompute import Recomputation, content
from belvedere.consistency.sources import Source

_TRIED = 50  # states for which a decoder is tried
Allowed = tuple[frozenset[int], ...]  # of every row, the versions that a state can stand for


@dataclass(frozen=True, slots=True)
class Decoder:
    view: View
    column: str
    # of every row, the tokens of its versions; version 0: there is no such row
    tokens: tuple[tuple[Any, ...], ...]

    def allowed(self, rows: Sequence[Values]) -> Allowed | None:
        """Of what is shown in the record; None if it cannot be read as versions at all."""
        shown = self._shown(rows)
        if shown is None or not shown <= {t for row in self.tokens for t in row if t is not None}:
            return None
        if self.view.decode == "minimum":
            return tuple(self._not_below(row, min(shown, default=None)) for row in self.tokens)
        return tuple(_matching(row, shown) for row in self.tokens)

    def _shown(self, rows: Sequence[Values]) -> set[Any] | None:
        if self.view.decode == "elements":
            found = content(rows)
            return {row for row, _ in found} if all(n == 1 for _, n in found) else None
        if not rows:
            return set()
        value = rows[0].get(self.column)
        if not isinstance(value, int) or isinstance(value, bool) or len(rows) > 1:
            return None
        if self.view.decode == "minimum":
            return {value}
        if value <= 0:  # no sum of powers: a record of no versions is not there
            return None
        return {1 << bit for bit in range(value.bit_length()) if value >> bit & 1}

    @staticmethod
    def _not_below(row: tuple[Any, ...], least: Any) -> frozenset[int]:
        inside = {v for v, token in enumerate(row) if token == least and token is not None}
        if inside:
            return frozenset(inside)
        return frozenset(
            v
            for v, token in enumerate(row)
            if token is None or (least is not None and token > least)
        )


def _matching(row: tuple[Any, ...], shown: set[Any]) -> frozenset[int]:
    """None of them where two are shown: a row is at one version only."""
    inside = {v for v, token in enumerate(row) if token in shown}
    if len(inside) > 1:
        return frozenset()
    return frozenset(inside or {v for v, token in enumerate(row) if token is None})


def decoder(
    view: View, source: Source, record: Key, recompute: Recomputation, states: Sequence[State]
) -> Decoder | None:
    """None if this workload is not as its decoder needs it: then states are searched."""
    if view.decode is None or not recompute.reads_one_table(view):
        return None
    columns = {c for state in states for row in state.rows for c in row} - set(view.key)
    if view.decode != "elements" and len(columns) > 1:
        return None
    column = min(columns, default="")
    tokens = tuple(
        (None, *(_token(view, record, column, recompute, step[-1]) for step in line))
        for line in source.lines
    )
    inside = [token for row in tokens for token in row if token is not None]
    if len(set(inside)) != len(inside) or not all(_fits(view, token) for token in inside):
        return None
    found = Decoder(view, column, tokens)
    return found if _is_right(found, source, record, recompute) else None


def _is_right(decoder: Decoder, source: Source, record: Key, recompute: Recomputation) -> bool:
    """Whether it reads what the view shows of all states, or of some if there are many."""
    for point in _tried(source.last):
        facts = decoder.allowed(recompute.record(decoder.view, source.rows(point), record))
        if facts is None or not all(v in some for v, some in zip(point, facts, strict=True)):
            return False
    return True


def _tried(last: Point) -> Iterable[Point]:
    if math.prod(steps + 1 for steps in last) <= _TRIED:
        return product(*(range(steps + 1) for steps in last))
    # the last state, and rows at versions that are mixed
    some = range(min(max(last) + 1, _TRIED))
    mixed = [tuple((n + i) % (steps + 1) for i, steps in enumerate(last)) for n in some]
    return [last, *mixed]


def _fits(view: View, token: Any) -> bool:
    if view.decode == "powers":
        return isinstance(token, int) and token > 0 and token & (token - 1) == 0
    return view.decode == "elements" or (isinstance(token, int) and not isinstance(token, bool))


def _token(view: View, record: Key, column: str, recompute: Recomputation, operation: Any) -> Any:
    if operation.row is None:
        return None
    mine = recompute.record(view, {(operation.table, operation.key): operation.row}, record)
    if not mine:
        return None
    if view.decode == "elements":
        ((token, _),) = content(mine[:1])
        return token
    return mine[0].get(column)


def first_strange(allowed: Sequence[Allowed | None], first: Sequence[int]) -> int | None:
    """The first state that is not made of row versions since the view began (weak)."""
    for number, facts in enumerate(allowed):
        if facts is None:
            return number
        if any(max(versions, default=-1) < low for versions, low in zip(facts, first, strict=True)):
            return number
    return None


def first_backward(
    allowed: Sequence[Allowed | None], first: Sequence[int]
) -> tuple[int, int, int] | None:
    """The first state in which a row goes back, which row, and from which version (strong)."""
    bounds = list(first)
    for number, facts in enumerate(allowed):
        assert facts is not None  # weak holds
        for row, versions in enumerate(facts):
            above = [v for v in versions if v >= bounds[row]]
            if not above:
                return number, row, bounds[row]
            bounds[row] = min(above)
    return None
