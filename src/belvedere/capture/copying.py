"""A copy of a relation: where the rows of an answer and those that we have differ, it is written.

So it does not matter what is there already: nothing, a part of a copy that a crash ended, or rows
of before the relation could not be followed any more. Keys of ours that the answer has not are
deleted; they are all that is remembered meanwhile, so a first copy remembers next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from belvedere.capture.images import encode_rows
from belvedere.capture.operations import Together, made
from belvedere.catalog.definitions import TableDefinition
from belvedere.libraries import pa, pc
from belvedere.stores.base import Store

BATCH = 50_000  # rows of one transaction of a copy


def copy_operations(
    store: Store, table: TableDefinition, answer: Iterable[pa.Table]
) -> Iterator[Together]:
    """Operations, in parts, after which the table has exactly the rows of an answer; nobody else
    may write it meanwhile.
    """
    ours = _keys(store, table)
    for rows in answer:
        for start in range(0, rows.num_rows, BATCH):
            part = rows.slice(start, BATCH)
            keys, values = encode_rows(table, part, store.capabilities.longest_key)
            if ours:
                ours.difference_update(keys.to_pylist())
                keys, values = _differing(store, table, keys, values)
            if len(keys):
                yield Together((made(table, keys, values),))
    gone = sorted(ours)
    for start in range(0, len(gone), BATCH):
        keys = pa.array(gone[start : start + BATCH], pa.binary())
        yield Together((made(table, keys, pa.nulls(len(keys), pa.binary())),))


def _keys(store: Store, table: TableDefinition) -> set[bytes]:
    with store.base.snapshot() as snapshot:
        return {key for keys, _ in snapshot.scan(table.id) for key in keys.to_pylist()}


def _differing(
    store: Store, table: TableDefinition, keys: pa.BinaryArray, values: pa.BinaryArray
) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    with store.base.snapshot() as snapshot:
        there = snapshot.get_many(table.id, keys)
    same = pc.fill_null(pc.equal(there, values), False)
    differs = pc.invert(same)
    return keys.filter(differs), values.filter(differs)
