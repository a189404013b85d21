"""Corrections: the records that a repair writes, as its intent finds them in the catalog.

Of a view they are written as they are. Of the picture of a foreign table they are changes like
those of the log: the views take part.
"""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.catalog import layout
from belvedere.changes.net import NetChanges
from belvedere.encoding import slots_of
from belvedere.errors import Stale
from belvedere.libraries import np, pa, pc
from belvedere.operators.counts import counted, counts_of
from belvedere.stores.base import Shard, Store, Write

CORRECTIONS = pa.schema(
    [
        ("table", pa.int64()),
        ("owner", pa.binary()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("add", pa.int64()),
    ]
)  # `owner` decides the slot
MENDED = pa.schema([("table", pa.int64()), ("key", pa.binary()), ("record", pa.binary())])


def apply_corrections(store: Store, name: str, shard: Shard) -> None:
    """Write the corrections that fall into the slot of this shard."""
    rows = _read(store, name)
    owners = rows.column("owner").combine_chunks()
    mine = rows.filter(pa.array(slots_of(owners, store.state.slots) == shard.slot))
    if not mine.num_rows:
        return
    mine = mine.take(pc.sort_indices(mine.column("key")))
    keys, table = mine.column("key").combine_chunks(), mine.column("table")[0].as_py()
    before = shard.get_many(table, keys)
    add = mine.column("add").to_numpy()
    after = counted(counts_of(before) + add) if add.any() else mine.column("value").combine_chunks()
    shard.write(Write(table, keys, after, before))


def mended_rows(store: Store, name: str, slots: Sequence[int]) -> dict[int, NetChanges]:
    """The new records of delta views, by base table, that fall into these slots."""
    rows = _read(store, name)
    keys = rows.column("key").combine_chunks()
    mine = rows.filter(pa.array(np.isin(slots_of(keys, store.state.slots), slots)))
    mine = mine.take(pc.sort_indices(mine.column("key")))
    if not mine.num_rows:
        return {}
    keys, records = (mine.column(name).combine_chunks() for name in ("key", "record"))
    return {mine.column("table")[0].as_py(): NetChanges(keys, None, records)}


def to_bytes(rows: pa.Table) -> bytes:
    """Corrections as the catalog keeps them."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _read(store: Store, name: str) -> pa.Table:
    data = store.catalog.get_one(layout.REPAIRS.key(name))
    if data is None:
        raise Stale(f"the corrections {name} are gone, so their epoch is over")
    return pa.ipc.open_stream(data).read_all()
