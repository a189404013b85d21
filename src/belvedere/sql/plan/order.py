"""In which order relations are joined: the written order, each as soon as something connects it
with those before.

Inner joins commute with each other and with the left, semi and anti joins whose conditions do not
need them, so only an equality, or the relations of an ON condition, decide when a relation can be
joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from belvedere.errors import Unsupported

Connects = Callable[[frozenset[int], int], bool]  # can this relation be joined to these?


def join_order(
    start: frozenset[int], waiting: Sequence[int], may_start: Sequence[int], connects: Connects
) -> list[int]:
    """The relations in the order in which they are joined, the first of them alone.

    `start` are joined already; if there are none, one of `may_start` is first.
    """
    if start:
        found = _continued(start, waiting, connects)
        return found if found is not None else _refuse()
    for first in may_start:
        found = _continued(frozenset([first]), [i for i in waiting if i != first], connects)
        if found is not None:
            return [first, *found]
    return _refuse()


def _continued(
    joined: frozenset[int], waiting: Sequence[int], connects: Connects
) -> list[int] | None:
    order: list[int] = []
    left = list(waiting)
    while left:
        ready = next((i for i in left if connects(joined, i)), None)
        if ready is None:
            return None
        order.append(ready)
        left.remove(ready)
        joined |= {ready}
    return order


def _refuse() -> list[int]:
    raise without_equality()


def without_equality() -> Unsupported:
    return Unsupported(
        "a join without an equality",
        "say with = which columns of the two relations belong together",
    )
