"""Work that creating a view takes does not grow with the views that are there; joining reads each
node once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.graph import binding
from belvedere.operators.base import Operator
from belvedere.stores.memory import catalog as memory


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as found:
        found.sql("CREATE TABLE t (id BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (id))")
        found.sql("CREATE MATERIALIZED VIEW below AS SELECT g, sum(x) AS s FROM t GROUP BY g")
        yield found


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of catalog entries that transactions read."""
    found: list[str] = []
    get, scan = memory._Transaction.get, memory._Transaction.scan

    def noted_get(t: memory._Transaction, key: str) -> bytes | None:
        found.append(key)
        return get(t, key)

    def noted_scan(t: memory._Transaction, prefix: str) -> list[tuple[str, bytes]]:
        entries = scan(t, prefix)
        found.extend(key for key, _ in entries)
        return entries

    monkeypatch.setattr(memory._Transaction, "get", noted_get)
    monkeypatch.setattr(memory._Transaction, "scan", noted_scan)
    return found


def create(db: belvedere.Database, number: int) -> None:
    db.sql(
        f"CREATE MATERIALIZED VIEW v{number} AS SELECT a.g, sum(a.x + {number}) AS s FROM t a JOIN"
        " below b ON a.g = b.g GROUP BY a.g"
    )


def test_creating_the_hundredth_view_reads_no_more_than_the_first(
    db: belvedere.Database, read: list[str]
) -> None:
    amounts = []
    for number in range(100):
        db.state()  # what the statement needs of it is cached, as for any client that goes on
        read.clear()
        create(db, number)
        amounts.append(len(read))
    assert amounts[99] == amounts[0]


def test_views_that_join_look_at_each_node_once(
    db: belvedere.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    shape = binding.shape

    def counted(operator: Operator) -> str:
        nonlocal looked
        looked += 1
        return shape(operator)

    monkeypatch.setattr(binding, "shape", counted)
    per_lot = []
    for lot in range(4):
        for number in range(lot * 20, lot * 20 + 20):
            create(db, number)
        looked = 0
        db.catch_up()
        per_lot.append(looked)
    nodes = {n.id for v in db.state().definitions() for n in v.nodes}
    assert per_lot[3] <= len(nodes) + 20 * 10 + per_lot[0]
