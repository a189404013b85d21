"""The history of a world, as `belvedere check` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from belvedere.warehouse.machine import INSERT, Transaction, Update
from belvedere.warehouse.rows import Shape
from tests.warehouse.reference import Content
from tests.warehouse.world import World


def lines(world: World) -> Iterator[dict[str, Any]]:
    """The rows at the begin are operations before the view's."""
    shape = world.shape
    for member in shape.members:
        types = dict.fromkeys(member.columns, "BIGINT")
        key = [member.columns[i] for i in member.key]
        yield {"table": member.name, "key": key, "columns": types}
    numbers = dict.fromkeys(shape.sources, 0)
    for n, rows in world.initial.items():
        for row in rows.values():
            yield _operation(shape, numbers, Update(INSERT, n, row), "load")
    yield {"view": "v", "select": select(shape), "from": dict(numbers)}
    for transaction in world.transactions:
        yield from _operations(shape, numbers, transaction)
    for state in world.states:
        yield {"whole": "v", "rows": list(_rows(shape, state))}
    yield {"final": "v"}


def select(shape: Shape) -> str:
    columns = [f"m{m}.{shape.members[m].columns[c]} AS {_name(m, c)}" for m, c in shape.shown]
    tables = [f"{m.name} m{n}" for n, m in enumerate(shape.members)]
    joins = [
        f"m{e.left}.{shape.members[e.left].columns[e.left_column]}"
        f" = m{e.right}.{shape.members[e.right].columns[e.right_column]}"
        for e in shape.equalities
    ]
    return f"SELECT {', '.join(columns)} FROM {', '.join(tables)} WHERE {' AND '.join(joins)}"


def _operations(
    shape: Shape, numbers: dict[str, int], transaction: Transaction
) -> Iterator[dict[str, Any]]:
    for update in transaction.updates:
        yield _operation(shape, numbers, update, transaction.id)


def _operation(shape: Shape, numbers: dict[str, int], update: Update, tx: str) -> dict[str, Any]:
    member = shape.members[update.member]
    number = numbers[member.source]
    numbers[member.source] += 1
    line = {"op": number, "stream": member.source, "tx": tx, "table": member.name}
    if update.sign == INSERT:
        return line | {"row": dict(zip(member.columns, update.row, strict=True))}
    return line | {"key": list(member.key_of(update.row)), "row": None}


def _rows(shape: Shape, state: Content) -> Iterator[dict[str, Any]]:
    names = [_name(m, c) for m, c in shape.shown]
    for row, number in state:
        yield from [dict(zip(names, row, strict=True))] * number


def _name(member: int, column: int) -> str:
    return f"c{member}_{column}"
