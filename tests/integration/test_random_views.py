"""Random trees of views through real Spark, held against Spark's own answer to the same text by
`verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import belvedere
from belvedere.errors import Unsupported
from tests.laws.script import Base, Case, Create, Write
from tests.laws.trees.cases import random_tree_case
from tests.laws.trees.scope import RAISING

pytestmark = [pytest.mark.spark, pytest.mark.slow]
_CASES = 10


@pytest.mark.parametrize("seed", range(_CASES))
def test_a_random_view_is_what_spark_answers(db: belvedere.Database, seed: int) -> None:
    case = random_tree_case(Random(seed).randrange(10**9))
    for base in case.tables:
        db.sql(_declared(base))
    writes = [a for a in case.script if isinstance(a, Write)]
    half = len(writes) // 2
    _write(db, case, writes[:half])
    names = list(_created(db, case))
    for part in (writes[half:-1], writes[-1:]):
        _write(db, case, part)
        db.catch_up(timeout=120)
    for name in names:
        found = db.verify(name)
        select = db.state().view(name).select
        assert found.ok or (found.problem and RAISING in select), (select, found)


def _declared(base: Base) -> str:
    schema = base.table.schema
    columns = ", ".join(
        f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in schema.columns
    )
    images = str(base.before_images).lower()
    return (
        f"CREATE TABLE {base.name} ({columns}, PRIMARY KEY ({', '.join(schema.key)})) WITH"
        f" (before_images = {images})"
    )


def _created(db: belvedere.Database, case: Case) -> Iterator[str]:
    """Create the views of a case under names that are free; one that is refused is left out, and so
    is what reads it.
    """
    for create in (a for a in case.script if isinstance(a, Create) and not a.replace):
        key = f" WITH (key = '{', '.join(create.view.key)}')" if create.view.key else ""
        try:
            db.sql(f"CREATE MATERIALIZED VIEW {create.name}{key} AS {create.view.select}")
        except Unsupported:
            return
        yield create.name


def _write(db: belvedere.Database, case: Case, writes: list[Write]) -> None:
    for write in writes:
        base = case.tables[write.table]
        table, names = db.table(base.name), base.table.schema.names
        for key, row in write.operations:
            if row is None:
                table.delete(_key(key))
            else:
                table.put(dict(zip(names, row, strict=True)))


def _key(key: tuple[Any, ...]) -> Any:
    return key[0] if len(key) == 1 else key
