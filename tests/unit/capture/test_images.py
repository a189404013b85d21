"""What came in one piece is encoded as each change is by itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.capture.images import Encoder, Images
from belvedere.catalog.definitions import Followed, TableDefinition
from belvedere.errors import SchemaError
from belvedere.sources.base import Event, Quiet, RelationChange, SourceTransaction
from belvedere.types import BIGINT, STRING, Column, Schema

SCHEMAS = {
    "r": Schema((Column("id", STRING, False), Column("v", BIGINT), Column("s", STRING)), ("id",)),
    "s": Schema((Column("a", BIGINT, False), Column("b", STRING, False)), ("b", "a")),
}
LONGEST = 8

numbers = st.one_of(st.none(), st.integers(-5, 5))
texts = st.sampled_from(["", "a", "b\0", "long"])
rows = {
    "r": st.fixed_dictionaries({"id": texts, "v": numbers, "s": st.one_of(st.none(), texts)}),
    "s": st.fixed_dictionaries({"a": st.integers(-5, 5), "b": st.just("x")}),
}


@st.composite
def changes(draw: st.DrawFn) -> RelationChange:
    name = draw(st.sampled_from(sorted(SCHEMAS)))
    schema = SCHEMAS[name].arrow
    sides = [draw(st.lists(rows[name], max_size=3)) for _ in range(2)]
    if name == "r" and draw(st.integers(0, 9)) == 0:
        sides[1].append({"id": "a key that is too long", "v": 1, "s": None})
    before, after = (pa.Table.from_pylist(side, schema=schema) for side in sides)
    return RelationChange(name, before, after)


def transaction(number: int, found: list[RelationChange]) -> SourceTransaction:
    return SourceTransaction(str(number), str(number), 0.0, tuple(found))


def encoded(encoder: Encoder, table: TableDefinition, change: RelationChange) -> Any:
    try:
        found = encoder.images(table, change)
    except SchemaError as error:
        return str(error)
    columns = [getattr(found, name) for name in Images.__slots__]
    return [None if column is None else column.to_pylist() for column in columns]


@pytest.mark.parametrize("passes", [True, False])
@given(found=st.lists(st.lists(changes(), max_size=3), max_size=6))
def test_changes_are_encoded_together_as_each_by_itself(
    passes: bool, found: list[list[RelationChange]]
) -> None:
    tables = {
        name: TableDefinition(number, name, schema, followed=Followed("x", name, True, passes))
        for number, (name, schema) in enumerate(SCHEMAS.items(), 1)
    }
    events: list[Event] = [transaction(number, some) for number, some in enumerate(found)]
    together = Encoder([*events, Quiet("end")], LONGEST)
    for change in (change for some in found for change in some):
        table = tables[change.relation]
        alone = Encoder([transaction(0, [change])], LONGEST)
        assert encoded(together, table, change) == encoded(alone, table, change)
