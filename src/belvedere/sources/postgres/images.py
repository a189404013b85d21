"""Rows before and after of many transactions at once, net per key.

The images of rows that a transaction leaves in the log are a sequence: -row before, +row after.

    net(k) = (r, s)   r: the first image of key k, if it is one before, else none
                      s: its last image, if it is one after, else none

An update that changes the key is a deletion and an insertion, and an insertion that is deleted
again is nothing; both follow from the law. Keys of different transactions are different keys, so
many transactions cost as much as one of their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.libraries import np, pa
from belvedere.sources.base import Relation, RelationChange
from belvedere.sources.postgres.columns import Wire
from belvedere.sources.postgres.fields import (
    Buffer,
    Field,
    chosen,
    log_fields,
    new_buffer,
    or_else,
    to_binary,
)
from belvedere.sources.postgres.messages import DELETE, HEADER, INSERT, ROW, UPDATE, WHOLE_BEFORE
from belvedere.sources.postgres.texts import to_arrow

_TO_TUPLE = 1 + 4 + 1 + 2  # kind, relation, tag, number of columns
_TAG_AND_COUNT = 1 + 2
_PART_BYTES, _PART_ROWS = 16 << 20, 200_000


class NotHeld(ValueError):
    """A row in the log that the relation cannot have; the message says why."""


@dataclass(frozen=True, slots=True)
class Images:
    """Rows with the transaction each is of, and its place in the sequence of all images."""

    rows: pa.Table
    transactions: Any
    places: Any


@dataclass(frozen=True, slots=True)
class Wired:
    """A relation with the types that its columns have at the server."""

    relation: Relation
    wires: tuple[Wire, ...]


def net_changes(wired: Wired, parts: Sequence[Sequence[bytes]]) -> list[RelationChange | None]:
    """Per transaction what its messages about one relation come to; None: nothing."""
    messages = [message for part in parts for message in part]
    transactions = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    decoded = [
        _decode(wired, messages[low:high], transactions[low:high], low)
        for low, high in _split(messages)
    ]
    before, after = (_together([pair[side] for pair in decoded]) for side in (0, 1))
    before, after = _net(wired.relation, before, after)
    return _divide(wired.relation, before, after, len(parts))


def _split(messages: Sequence[bytes]) -> list[tuple[int, int]]:
    """Pieces of bounded size: decoding needs some times their bytes."""
    pieces, low, size = [], 0, 0
    for at, message in enumerate(messages):
        size += len(message)
        if size >= _PART_BYTES or at + 1 - low >= _PART_ROWS:
            pieces.append((low, at + 1))
            low, size = at + 1, 0
    if low < len(messages):
        pieces.append((low, len(messages)))
    return pieces


def _decode(
    wired: Wired, messages: Sequence[bytes], transactions: Any, first: int
) -> tuple[Images, Images]:
    buffer = new_buffer(messages)
    starts = _starts(messages)
    kinds, tags = buffer.bytes[starts], buffer.bytes[starts + 5]
    _check_tags(wired.relation, kinds, tags)
    numbers = np.arange(first, first + len(messages))
    old, new = np.flatnonzero(kinds != INSERT), np.flatnonzero(kinds == INSERT)
    before, ends = log_fields(buffer, starts[old] + _TO_TUPLE, len(wired.wires))
    updated = kinds[old] == UPDATE
    changed = _changed(buffer, before, updated, ends)
    inserted, _ = log_fields(buffer, starts[new] + _TO_TUPLE, len(wired.wires))
    after, later = _merged(inserted, new, changed, old[updated])
    return (
        _images(_table(wired, buffer, before), transactions, numbers, old, 0),
        _images(_table(wired, buffer, after), transactions, numbers, later, 1),
    )


def _starts(messages: Sequence[bytes]) -> Any:
    """Where the messages begin in the buffer, behind their headers."""
    sizes = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    return np.cumsum(sizes) - sizes + HEADER


def _merged(
    some: Sequence[Field], messages: Any, others: Sequence[Field], more: Any
) -> tuple[list[Field], Any]:
    """Rows of two kinds of messages, in the order of the messages."""
    together = np.concatenate([messages, more])
    order = np.argsort(together, kind="stable")
    rows = [_joined(a, b, order) for a, b in zip(some, others, strict=True)]
    return rows, together[order]


def _changed(buffer: Buffer, before: Sequence[Field], updated: Any, ends: Any) -> list[Field]:
    """The rows after of updates, which begin behind the rows before, a tag and a number."""
    changed, _ = log_fields(buffer, ends[updated] + _TAG_AND_COUNT, len(before))
    return [or_else(f, chosen(b, updated)) for f, b in zip(changed, before, strict=True)]


def _images(rows: pa.Table, transactions: Any, numbers: Any, messages: Any, side: int) -> Images:
    return Images(rows, transactions[messages], numbers[messages] * 2 + side)


def _check_tags(relation: Relation, kinds: Any, tags: Any) -> None:
    wanted = np.where(kinds == INSERT, ROW, WHOLE_BEFORE)
    known = (kinds == INSERT) | (kinds == UPDATE) | (kinds == DELETE)
    if not (known & (tags == wanted)).all():
        raise NotHeld(
            f"the log of PostgreSQL has no whole rows before of {relation.name}: run ALTER TABLE"
            f" {relation.name} REPLICA IDENTITY FULL, and load it again"
        )


def _joined(one: Field, other: Field, order: Any) -> Field:
    return Field(
        np.concatenate([one.starts, other.starts])[order],
        np.concatenate([one.lengths, other.lengths])[order],
        np.concatenate([one.nulls, other.nulls])[order],
        np.concatenate([one.unchanged, other.unchanged])[order],
    )


def _table(wired: Wired, buffer: Buffer, fields: Sequence[Field]) -> pa.Table:
    arrays = []
    columns = wired.relation.schema.columns
    for column, wire, field in zip(columns, wired.wires, fields, strict=True):
        if field.unchanged.any():
            raise NotHeld(f"the log does not tell a large value of {wired.relation.name}")
        arrays.append(read_column(wired.relation, column.name, wire, buffer, field))
    return pa.Table.from_arrays(arrays, schema=wired.relation.schema.arrow)


def read_column(
    relation: Relation, name: str, wire: Wire, buffer: Buffer, field: Field
) -> pa.Array:
    kind = relation.schema.column(name).type
    try:
        return to_arrow(to_binary(buffer, field), wire, kind)
    except (pa.ArrowException, ValueError) as error:
        raise NotHeld(
            f"column {name} of {relation.name} has a value that is no {str(kind).upper()} here:"
            f" {str(error).splitlines()[0]}. Change the value, and load the relation again"
        ) from error


def _together(parts: Sequence[Images]) -> Images:
    return Images(
        pa.concat_tables([part.rows for part in parts]).combine_chunks(),
        np.concatenate([part.transactions for part in parts]),
        np.concatenate([part.places for part in parts]),
    )


def _net(relation: Relation, before: Images, after: Images) -> tuple[Images, Images]:
    if not len(before.places) or not len(after.places):
        return before, after  # only inserted or only deleted: each key is there once
    transactions = np.concatenate([before.transactions, after.transactions])
    places = np.concatenate([before.places, after.places])
    keys = _number_keys(relation, before.rows, after.rows, transactions)
    order = np.lexsort((places, keys))
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    first, last = order[starts], order[np.r_[starts[1:], len(order)] - 1]
    split = len(before.places)
    return (
        _some(before, np.sort(first[first < split])),
        _some(after, np.sort(last[last >= split] - split)),
    )


def _some(images: Images, rows: Any) -> Images:
    if len(rows) == len(images.places):
        return images
    return Images(images.rows.take(rows), images.transactions[rows], images.places[rows])


def _number_keys(relation: Relation, before: pa.Table, after: pa.Table, transactions: Any) -> Any:
    """The same number for the same key of the same transaction."""
    numbers = transactions
    for name in relation.schema.key:
        both = pa.chunked_array([*before.column(name).chunks, *after.column(name).chunks])
        codes = both.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        pairs = numbers.astype(np.int64) * (int(codes.max()) + 1) + codes
        numbers = np.unique(pairs, return_inverse=True)[1]
    return numbers


def _divide(
    relation: Relation, before: Images, after: Images, count: int
) -> list[RelationChange | None]:
    """Slices per transaction: images stand in the order of transactions."""
    borders = np.arange(count + 1)
    lows, highs = (np.searchsorted(i.transactions, borders).tolist() for i in (before, after))
    changes: list[RelationChange | None] = []
    for at in range(count):
        old = before.rows.slice(lows[at], lows[at + 1] - lows[at])
        new = after.rows.slice(highs[at], highs[at + 1] - highs[at])
        some = old.num_rows or new.num_rows
        changes.append(RelationChange(relation.name, old, new) if some else None)
    return changes
