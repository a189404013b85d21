"""How far a loading step goes: the state key up to which an origin has about so many rows.

Only keys are looked at. A step ends with a whole state key, so that the rows of a join key or a group are never divided.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.encoding.one_key import prefix_length
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.arrange import Arrange
from belvedere.operators.graph import Node, Operator, Source
from belvedere.operators.join import Join
from belvedere.operators.set_operation import SetOperation
from belvedere.operators.topk import TopK
from belvedere.stores.base import Store
from belvedere.types import Epoch, SqlType

_Kept = tuple[int, tuple[SqlType, ...]]  # a state table, and the types of the state key with which its records begin


def next_step(store: Store, origin: Node, epoch: Epoch, low: bytes, rows: int) -> tuple[bytes | None, int]:
    """The state key at which a step that begins at `low` should end (None: at the end), and about how many rows it has."""
    operator = origin.operator
    if isinstance(operator, Source):
        with store.base.snapshot() as snapshot:
            keys, _ = next(snapshot.scan(operator.table, low, None, rows), (None, None))
        return (None, len(keys or ())) if keys is None or len(keys) < rows else (bytes(keys[-1].as_py()), rows)
    each = max(1, rows // store.state.slots)
    ends = [_end(store, slot, kept, epoch, low, each) for kept in _kept(operator) for slot in range(store.state.slots)]
    return min((end for end, _ in ends if end is not None), default=None), sum(count for _, count in ends)


def _end(store: Store, slot: int, kept: _Kept, epoch: Epoch, low: bytes, rows: int) -> tuple[bytes | None, int]:
    """The state key of the last of so many records of one slot, or None if it has fewer; and how many were found."""
    table, types = kept
    reader = store.state.reader(slot, epoch)
    try:
        keys, _ = next(reader.scan(table, low, None, rows), (None, None))
    finally:
        reader.close()
    if keys is None or len(keys) < rows:
        return None, len(keys or ())
    last: bytes = keys[-1].as_py()
    return last[: prefix_length(last, types)], rows


def _kept(operator: Operator) -> Iterable[_Kept]:
    if isinstance(operator, Join):
        yield from {*_kept(operator.left), *_kept(operator.right)}
    elif isinstance(operator, TopK):
        yield from _kept(operator.rows)
    elif isinstance(operator, Arrange):
        yield operator.table, operator.types[: operator.key]
    elif isinstance(operator, Aggregate):
        yield operator.table, operator.groups
    elif isinstance(operator, SetOperation):
        yield operator.table, operator.types
