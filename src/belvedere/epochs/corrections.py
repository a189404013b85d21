"""Corrections: the records that a repair writes, as its intent finds them in the catalog."""

from __future__ import annotations

from belvedere.catalog import layout
from belvedere.encoding import slots_of
from belvedere.errors import Stale
from belvedere.libraries import pa, pc
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


def apply_corrections(store: Store, name: str, shard: Shard) -> None:
    """Write the corrections that fall into the slot of this shard."""
    data = store.catalog.get_one(layout.REPAIRS.key(name))
    if data is None:
        raise Stale(f"the corrections {name} are gone, so their epoch is over")
    rows = pa.ipc.open_stream(data).read_all()
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
