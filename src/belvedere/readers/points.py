"""Point reads of one view: everything that does not depend on the key is looked up once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.catalog.definitions import ViewDefinition
from belvedere.encoding import slot_of
from belvedere.errors import Damaged, SchemaError
from belvedere.input.values import OWN
from belvedere.readers.rows import ViewRows, in_view, key_tuple
from belvedere.stores.base import StateTables
from belvedere.types import Epoch, Key, Row

PointRead = Callable[[Key, Epoch], Row | None]
# what equals a value of these types is shown as it is
_AS_GIVEN = {"boolean", "int", "bigint", "string", "binary"}


def point_read(state: StateTables, view: ViewDefinition) -> PointRead:
    """A function that gives the row under a key as of a committed epoch; it raises Stale if that
    epoch is gone.
    """
    rows = ViewRows.of(view)
    encode, decode, get = (
        rows.keys.encode_one,
        rows.decode_one,
        state.getter(view.planned.sink.table),
    )
    slot_columns, slots = rows.slot_columns, state.slots
    whole_key, only_column = _whole_key(rows), _only_column(rows)
    stored_key = (
        None if all(kind.name in _AS_GIVEN for kind in rows.keys.types) else rows.keys.decode_one
    )

    def read(key: Key, epoch: Epoch) -> Row | None:
        values = (key,) if type(key) is only_column else whole_key(key)
        encoded = encode(values)
        owner = encode(values[:slot_columns]) if slot_columns else encoded
        try:
            value = get(slot_of(owner, slots), epoch, encoded)
            if value is None:
                return None
            return decode(values if stored_key is None else stored_key(encoded), value)
        except Damaged as error:
            raise in_view(rows.name, error) from error

    return _of_either_zero(read, rows) if rows.doubles else read


def _whole_key(rows: ViewRows) -> Callable[[Key], tuple[Any, ...]]:
    """A function from a key as it is given to its values, or an error."""
    columns, own = len(rows.schema.key), tuple(OWN[kind.name] for kind in rows.keys.types)

    def values_of(key: Key) -> tuple[Any, ...]:
        values = key_tuple(key)
        if len(values) != columns:
            raise SchemaError(_advice(rows, len(values)))
        return values if tuple(map(type, values)) == own else rows.plain(values)

    return values_of


def _only_column(rows: ViewRows) -> type | None:
    """Values of exactly this type are a whole key, and need no look."""
    kinds = rows.keys.types
    return OWN[kinds[0].name] if len(kinds) == 1 else None


def _of_either_zero(read: PointRead, rows: ViewRows) -> PointRead:
    def read_spelled(key: Key, epoch: Epoch) -> Row | None:
        for spelled in rows.spellings(key_tuple(key)):
            if (found := read(spelled, epoch)) is not None:
                return found
        return None

    return read_spelled


def _advice(rows: ViewRows, given: int) -> str:
    key = ", ".join(rows.schema.key) or "no columns"
    return (
        f"the key of view {rows.name} is ({key}): give {len(rows.schema.key)} value(s), not"
        f" {given}, or use scan(prefix=...)"
    )
