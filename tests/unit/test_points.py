"""Point reads: under its key a row is what a scan shows, whatever the types, the shape of the view,
and how often it was read before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import belvedere
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.local import LocalRunner
from belvedere.errors import CatalogError, SchemaError, ViewInError

COLUMNS = (
    "id BIGINT, s STRING, b BINARY, d DATE, t TIMESTAMP, m DECIMAL(9,2), big DECIMAL(30,3), x"
    " DOUBLE, n INT, yes BOOLEAN"
)
VIEWS = {
    "rows": "SELECT x, s, id, b, d, t, m, big, n, yes FROM r WHERE n > -100",
    "bare": "SELECT id FROM r",
    "by_text": "SELECT s, count(*) AS n, max(t) AS last, sum(m) AS total FROM r GROUP BY s",
    "by_money": "SELECT m, yes, count(*) AS n, min(s) AS first FROM r GROUP BY m, yes",
    "by_time": "SELECT t, d, max(big) AS most FROM r GROUP BY t, d",
    "by_double": "SELECT x, count(*) AS n FROM r GROUP BY x",
    "whole": "SELECT count(*) AS n, avg(x) AS x FROM r",
}
KEYED = ("index", "s, id", "SELECT s, n, id, t FROM r")


@pytest.fixture(params=["memory", "embedded"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[belvedere.Database]:
    with belvedere.open(
        "memory:" if request.param == "memory" else tmp_path / "db", slots=3
    ) as opened:
        opened.sql(f"CREATE TABLE r ({COLUMNS}, PRIMARY KEY (id))")
        yield opened


def epochs(db: belvedere.Database) -> None:
    coordinator = Coordinator(db.store, LocalRunner(db.store))
    assert coordinator.acquire()
    while coordinator.step() is not None:
        pass
    coordinator.release()


def row(i: int) -> dict[str, Any]:
    """Every fifth column is NULL, and a text has a zero byte now and then."""
    values: dict[str, Any] = {
        "s": f"s{i % 4}" + "\0é" * (i % 3),
        "b": bytes([i % 2, 0]),
        "d": date(2026, 1, 1 + i % 9),
        "t": datetime(2026, 2, 3, 4, 5, i % 7, i, tzinfo=UTC),
        "m": Decimal(i % 6) / 4,
        "big": Decimal(10) ** 20 + Decimal(i) / 8,
        "x": (i % 5) / 2,
        "n": i,
        "yes": i % 2 == 0,
    }
    return {"id": i} | {
        name: None if (i + place) % 5 == 0 else value
        for place, (name, value) in enumerate(values.items())
    }


def exact(found: dict[str, Any]) -> list[tuple[str, type, Any]]:
    """Names in order, and values that are not only equal: 5 is not Decimal("5.00")."""
    return [
        (name, type(value), str(value) if isinstance(value, Decimal) else value)
        for name, value in found.items()
    ]


def test_a_row_under_its_key_is_what_a_scan_shows(db: belvedere.Database) -> None:
    for name, select in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {select}")
    name, key, select = KEYED
    db.sql(f"CREATE MATERIALIZED VIEW {name} WITH (key = '{key}') AS {select}")
    views = {name: db.view(name) for name in (*VIEWS, name)}
    for first in (0, 20, 40):  # the same objects read again after more commits
        db.table("r").put_many([row(i) for i in range(first, first + 30)])
        db.table("r").delete_many(range(first, first + 3))
        epochs(db)
        for view in views.values():
            rows = view.to_arrow().to_pylist()
            assert rows
            for wanted in rows:
                own = tuple(wanted[name] for name in view.schema.key)
                for given in (own, list(own), *own[: len(own) == 1]):
                    found = view.get(given)
                    assert found is not None
                    assert exact(found) == exact(wanted)
    for i in range(70):
        wanted = [exact(found) for found in db.table("r").scan() if found["id"] == i]
        assert [exact(found) for found in [db.table("r").get(i)] if found is not None] == wanted


def test_keys_that_are_equal_but_look_different_find_the_row_as_it_is_stored(
    db: belvedere.Database,
) -> None:
    db.sql("CREATE MATERIALIZED VIEW by_money AS SELECT m, count(*) AS n FROM r GROUP BY m")
    db.sql("CREATE MATERIALIZED VIEW by_time AS SELECT t, count(*) AS n FROM r GROUP BY t")
    db.table("r").put({"id": 1, "m": Decimal("5.00"), "t": datetime(2026, 1, 1, 12)})
    epochs(db)
    assert repr(db.view("by_money").get(5)) == "{'m': Decimal('5.00'), 'n': 1}"
    assert db.view("by_time").get(datetime(2026, 1, 1, 12)) == {
        "t": datetime(2026, 1, 1, 12, tzinfo=UTC),
        "n": 1,
    }


def test_what_cannot_be_read_is_told_at_every_read(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW shares AS SELECT id, 10 DIV n AS share FROM r")
    view = db.view("shares")
    db.table("r").put({"id": 1, "n": 5})
    epochs(db)
    assert view.get(1) == {"id": 1, "share": 2}
    with pytest.raises(SchemaError, match=r"the key of view shares is \(id\): give 1"):
        view.get((1, 2))
    db.table("r").put({"id": 2, "n": 0})
    epochs(db)
    with pytest.raises(ViewInError):
        view.get(1)
    db.table("r").delete(2)
    epochs(db)
    assert view.get(1) == {"id": 1, "share": 2}
    db.sql("DROP MATERIALIZED VIEW shares")
    with pytest.raises(CatalogError, match="no view shares"):
        view.get(1)


KEYS: dict[str, Any] = {
    "BOOLEAN": True,
    "INT": 1,
    "BIGINT": 2**53 + 1,
    "DOUBLE": 0.0,
    "DECIMAL(10,2)": Decimal("1.50"),
    "STRING": "1",
    "BINARY": b"1",
    "DATE": date(2024, 1, 1),
    "TIMESTAMP": datetime(2024, 1, 1, tzinfo=UTC),
}
GIVEN: list[Any] = [
    *KEYS.values(),
    *(1.0, -0.0, math.nan, 2**80, 10**400, Decimal("1.505"), Decimal("NaN"), "", "\ud800"),
    *(np.int64(1), np.uint8(1), np.float32(0.0), np.float64(1.0), np.bool_(True), np.str_("1")),
    *(memoryview(b"1"), datetime(2024, 1, 1), np.datetime64("2024-01-01")),
    *({}, set[int](), object(), np.array([1])),
]


@pytest.mark.parametrize("kind", KEYS)
def test_a_view_takes_the_keys_that_its_table_takes(kind: str, tmp_path: Path) -> None:
    """Where one finds a row so do all ways to read it; what one refuses no other answers."""
    with belvedere.open(tmp_path / "db", slots=2) as db:
        db.sql(f"CREATE TABLE r (k {kind}, n INT, PRIMARY KEY (k))")
        db.sql("CREATE MATERIALIZED VIEW rows AS SELECT * FROM r")
        db.sql("CREATE MATERIALIZED VIEW counted AS SELECT k, max(n) AS n FROM r GROUP BY k")
        db.table("r").put({"k": KEYS[kind], "n": 7})
        epochs(db)
        table, views = db.table("r"), [db.view("rows"), db.view("counted")]
        ways: list[Callable[[Any], Any]] = [
            table.get,
            lambda key: next(table.scan(prefix=key), None),
            *(view.get for view in views),
            *(lambda key, v=view: v.get(key, as_of=db.status().epoch) for view in views),
            *(lambda key, v=view: next(v.scan(prefix=key), None) for view in views),
            *(lambda key, v=view: v.why(key).row for view in views),
        ]
        for given in GIVEN:
            answers = [_found(way, given) for way in ways]
            assert len(set(answers)) == 1, f"{kind}: {given!r} finds {answers}"


def _found(way: Callable[[Any], Any], key: Any) -> str:
    try:
        found = way(key)
    except SchemaError:
        return "refused"
    return "nothing" if found is None else str(found["n"])
