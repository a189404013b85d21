"""What differs from one snapshot to the next.

    before(r) : r in the old one, and not the same in the new one
    after(r)  : r in the new one, and not the same in the old one

by a full join on the key. It is a function of two files that nobody changes, so the same pair gives
the same transaction however often it is asked for.
"""

from __future__ import annotations

from belvedere.errors import SourceLost
from belvedere.libraries import pa, pc
from belvedere.sources.base import RelationChange, SourceTransaction
from belvedere.sources.files.reading import connect, literal, quoted
from belvedere.sources.files.snapshots import Snapshot
from belvedere.types import Schema


def difference(relation: str, old: Snapshot, new: Snapshot) -> SourceTransaction:
    if old.schema != new.schema:
        raise SourceLost(
            f"the columns of {relation} were changed with snapshot {new.number}: load it again"
        )
    schema = new.schema
    with connect() as connection:
        joined = connection.sql(_query(schema, old, new)).to_arrow_table()
    change = RelationChange(relation, _side(joined, schema, "old"), _side(joined, schema, "new"))
    number = str(new.number)
    return SourceTransaction(number, number, new.time, (change,))


def _query(schema: Schema, old: Snapshot, new: Snapshot) -> str:
    sides = ", ".join(
        f"{side}.{quoted(name)} AS {quoted(f'{side}.{name}')}"
        for side in ("old", "new")
        for name in schema.names
    )
    on = " AND ".join(f"old.{quoted(name)} = new.{quoted(name)}" for name in schema.key)
    first = quoted(schema.key[0])
    differs = [f"old.{first} IS NULL", f"new.{first} IS NULL"]
    differs += [
        f"old.{quoted(column.name)} IS DISTINCT FROM new.{quoted(column.name)}"
        for column in schema.value_columns
    ]
    key = ", ".join(f"coalesce(old.{quoted(n)}, new.{quoted(n)})" for n in schema.key)
    return (
        f"SELECT {sides} FROM read_parquet({literal(str(old.path))}) AS old"
        f" FULL JOIN read_parquet({literal(str(new.path))}) AS new ON {on}"
        f" WHERE {' OR '.join(differs)} ORDER BY {key}"
    )


def _side(joined: pa.Table, schema: Schema, side: str) -> pa.Table:
    """No part of a key is NULL: where it is, the side has no row."""
    there = joined.filter(pc.is_valid(joined.column(f"{side}.{schema.key[0]}")))
    found = there.select([f"{side}.{name}" for name in schema.names])
    return found.rename_columns(list(schema.names)).cast(schema.arrow)
