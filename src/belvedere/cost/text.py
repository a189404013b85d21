"""A cost as text: the new state, what each node keeps, what changed rows meet in joins, and what
was sampled.

    v: new state of about 1,020,000 records, 61.2 MiB; 3 levels, 3 exchanges per epoch (2 new)

    KeyedSink  one record per o.id          the view's table  about 1,000,000 records  42.0 MiB
               980,000 to 1,020,000
    Arrange    rows by o.customer: o.id     rows              ...
    Arrange    one row by c.id: c.name      shared with names: nothing new

    inner, o.customer = c.id
      one changed row of orders meets about 1 row of customers on average
      one changed row of customers meets about 10 rows of orders on average
      a change of one row of customers with c.id = 17 touches about 12,000 rows of orders
        next c.id = 99: 6,060; c.id = 4: 23

    estimated from samples: orders 62,431 of 1,000,000 rows, customers all 10,000 rows

Estimates are rounded to three digits, exact numbers are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from belvedere.cost.report import Cost, JoinCost, JoinSide, NodeCost, SampledTable

_FEW = 10  # pairs in the samples below which averages are guesses


def shown(cost: Cost) -> str:
    about = "" if cost.exact else "about "
    exchanges = f"{_plural(cost.exchanges, 'exchange')} per epoch"
    if cost.new_exchanges != cost.exchanges:
        exchanges += f" ({cost.new_exchanges} new)"
    state = (
        f"new state of {about}{_plural(cost.records, 'record', cost.exact)}, {_bytes(cost.bytes)}"
        if cost.records
        else "no new state"
    )
    lines = [f"{cost.view}: {state}; {_plural(cost.levels, 'level')}, {exchanges}"]
    if cost.errors:
        lines.append(
            f"{about}{_plural(cost.errors, 'row', cost.exact)} could not be evaluated: the view"
            " would be in error"
        )
    lines += ["", *_aligned([row for node in cost.nodes for row in _node(node, cost.exact)])]
    for join in cost.joins:
        lines += ["", *_join(join, cost.exact)]
    lines += ["", *_epochs(cost)]
    return "\n".join([*lines, _samples(cost)])


def _epochs(cost: Cost) -> Iterator[str]:
    """What epochs cost beyond their changes, if there is something to say."""
    if cost.is_complete:
        yield (
            "complete: every transaction is an epoch of its own, for all views of the database, and"
            " takes as long as one"
        )
    history = cost.history
    if history is None or not (history.kept or history.records is not None):
        return
    asked = f"{history.kept} are asked for" if history.kept else "none is asked for"
    found = f"history: {asked}, {_plural(history.epochs, 'epoch')} can be read"
    if history.records is not None and history.bytes is not None:
        wrote = _plural(history.records, "record", exact=False)
        found += f"; each holds what it wrote, lately about {wrote}, {_bytes(history.bytes)}"
    yield found + ", and the log behind it"


def _node(node: NodeCost, exact: bool) -> Iterator[tuple[str, ...]]:
    lead = node.operator, node.what
    if node.shared:
        yield *lead, f"shared with {', '.join(node.shared)}: nothing new"
        return
    for state in node.state:
        if exact or state.low == state.high:
            yield *lead, state.what, _plural(state.records, "record"), _bytes(state.bytes)
        elif not state.records:
            yield *lead, state.what, "none in the sample"
        else:
            bounds = f"{_rounded(state.low)} to {_rounded(state.high)}"
            yield (
                *lead,
                state.what,
                f"about {_plural(state.records, 'record', exact=False)}",
                _bytes(state.bytes),
                bounds,
            )
        lead = "", ""


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns as wide as their cells; the last cell of a row may be longer."""
    widths = [max((len(row[i]) for row in rows if len(row) > i + 1), default=0) for i in range(6)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]


def _join(join: JoinCost, exact: bool) -> Iterator[str]:
    yield join.what + (f" (shared with {', '.join(join.shared)})" if join.shared else "")
    about = "" if exact else "about "
    left, right = _name(join.left), _name(join.right)
    if left == right:  # say which is which
        left, right = (
            f"{left} by {', '.join(join.left.columns)}",
            f"{right} by {', '.join(join.right.columns)}",
        )
    sides = [(join.left, left, join.right, right), (join.right, right, join.left, left)]
    for side, name, _, other in sides if join.left != join.right else sides[:1]:
        yield (
            f"  one changed row of {name} meets {about}{_average(side.matches)} of {other} on"
            " average"
        )
    if not exact and join.seen < _FEW:
        yield f"  (a guess: only {_plural(join.seen, 'pair')} of the samples met)"
    for side, name, other_side, other in sides if join.left != join.right else sides[:1]:
        yield from _heaviest(side, name, other_side, other, exact)


def _heaviest(
    side: JoinSide, name: str, other: JoinSide, other_name: str, exact: bool
) -> Iterator[str]:
    """What a changed row of the other side meets at worst."""
    about = "" if exact else "about "
    keys = [
        " AND ".join(f"{c} = {_value(v)}" for c, v in zip(other.columns, heavy.key, strict=True))
        for heavy in side.heaviest
    ]
    for key, heavy in zip(keys[:1], side.heaviest, strict=False):
        touched = f"touches {about}{_plural(heavy.rows, 'row', exact)} of {name}"
        yield f"  a change of one row of {other_name}{' with ' + key if key else ''} {touched}"
    if len(keys) > 1:
        rest = (
            f"{key}: {heavy.rows if exact else _round(heavy.rows):,}"
            for key, heavy in zip(keys[1:], side.heaviest[1:], strict=True)
        )
        yield f"    next {'; '.join(rest)}"


def _samples(cost: Cost) -> str:
    if cost.exact:
        return "exact: every row was read: " + ", ".join(
            f"{t.name} {_plural(t.rows, 'row')}" for t in cost.tables
        )
    return "estimated from samples: " + ", ".join(map(_sample, cost.tables))


def _sample(table: SampledTable) -> str:
    if table.sampled == table.rows:
        return f"{table.name} all {_plural(table.rows, 'row')}"
    return f"{table.name} {table.sampled:,} of {_plural(table.rows, 'row')}"


def _name(side: JoinSide) -> str:
    return ", ".join(side.tables)


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    return (
        "'" + value.replace("'", "''") + "'"
        if isinstance(value, str)
        else value.hex()
        if isinstance(value, bytes)
        else str(value)
    )


def _average(matches: float) -> str:
    if matches >= 10 or matches == int(matches):
        return _plural(round(matches), "row", exact=False)
    return f"{matches:.1f} rows" if matches >= 0.05 else "less than 0.1 rows"


def _plural(number: int, noun: str, exact: bool = True) -> str:
    return f"{number if exact else _round(number):,} {noun}{'' if number == 1 else 's'}"


def _rounded(number: int) -> str:
    return f"{_round(number):,}"


def _round(number: int) -> int:
    """Three digits are more than an estimate knows."""
    return int(round(number, 3 - len(str(number)))) if number >= 1000 else number


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:,.0f} B" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1024
    return f"{number:,.1f} GiB"
