"""A database in memory whose epochs wait until a test lets them go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from tests.unit.epochs.held import MANY, Held


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def held_db(held: Held) -> Iterator[Database]:
    with Database("memory:", runner=held) as found:
        held.inner = LocalRunner(found.store)
        found.sql(
            "CREATE TABLE t (id BIGINT, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT"
            " count(*) AS n FROM t"
        )
        found.table("t").put_many([{"id": i} for i in range(10)])
        yield found
        held.let_go.release(MANY)
