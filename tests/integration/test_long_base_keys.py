"""Rows under keys of any length: written, read, scanned, deleted, and seen by views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import ViewInError

SIZES = (504, 600, 5_000, 100_000, 1_000_000)


@pytest.fixture(params=[True, False], ids=["images", "delta"])
def db(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """With and without before-images: the latter needs a delta view under the same keys."""
    images = str(request.param).lower()
    with belvedere.open(tmp_path / "long") as opened:
        opened._runner = LocalRunner(opened.store)
        opened.sql(
            "CREATE TABLE t (k STRING, j STRING, n INT, PRIMARY KEY (k, j)) WITH (before_images ="
            f" {images})"
        )
        yield opened


def key(size: int, number: int) -> tuple[str, str]:
    """Such keys are alike but for the end of one of their columns."""
    return f"{number // 2:0>{size}}", f"{number:0>{size}}"


def row(size: int, number: int, n: int) -> dict[str, object]:
    k, j = key(size, number)
    return {"k": k, "j": j, "n": n}


@pytest.mark.parametrize("size", SIZES)
def test_a_row_is_found_under_a_key_of_any_length(db: Database, size: int) -> None:
    table = db.table("t")
    table.put(row(size, 0, 0))
    table.put_many([row(size, number, number) for number in range(1, 5)])
    assert table.get(key(size, 3)) == row(size, 3, 3)
    assert table.get(key(size, 7)) is None
    assert list(table.scan()) == [row(size, number, number) for number in range(5)]
    assert list(table.scan(prefix=key(size, 2)[:1])) == [row(size, n, n) for n in (2, 3)]
    table.put(row(size, 3, 33))
    table.delete(key(size, 0))
    table.delete_many([key(size, 1), key(size, 7)])
    assert list(table.scan()) == [row(size, 2, 2), row(size, 3, 33), row(size, 4, 4)]
    found = db.sql("SELECT n FROM t WHERE k = ? AND j = ?", [*key(size, 3)])
    assert found.to_arrow().to_pylist() == [{"n": 33}]
    db.sql("UPDATE t SET n = n + 1; DELETE FROM t WHERE n = 5")
    assert [each["n"] for each in table.scan()] == [3, 34]


@pytest.mark.parametrize("size", SIZES)
def test_views_follow_rows_under_keys_of_any_length(db: Database, size: int) -> None:
    selects = {
        "kept": "SELECT * FROM t WHERE n > 1",
        "by_n": "SELECT n, k, j FROM t",
        "least": "SELECT k, min(n) AS least, max(j) AS last FROM t GROUP BY k",
        "pairs": "SELECT a.k, a.j, b.j AS other FROM t a JOIN t b ON a.k = b.k AND a.n < b.n",
    }
    for name, select in selects.items():
        options = " WITH (key = 'n')" if name == "by_n" else ""
        db.sql(f"CREATE MATERIALIZED VIEW {name}{options} AS {select}")
    table = db.table("t")
    for step in range(3):
        if step < 2:
            rows = [row(size, i, 9 * step - i) for i in range(2 * step, 2 * step + 5)]
            table.put_many(rows)
        else:
            table.delete_many([key(size, 0), key(size, 3)])
        db.catch_up()
        for name, select in selects.items():
            expected = db.sql(select).to_arrow()
            order = [(column, "ascending") for column in expected.column_names]
            shown = db.view(name).to_arrow().select(expected.column_names)
            assert shown.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist(), name


@pytest.mark.parametrize("size", SIZES)
def test_a_view_is_loaded_from_rows_under_keys_of_any_length(db: Database, size: int) -> None:
    """What was written before the view, and what is written after a restart."""
    table = db.table("t")
    table.put_many([row(size, number, number) for number in range(5)])
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS c FROM t GROUP BY k")
    db.catch_up()
    path = Path(db.store.url.removeprefix("belvedere:"))
    db.close()
    with belvedere.open(path) as again:
        again._runner = LocalRunner(again.store)
        again.table("t").put(row(size, 5, 5))
        again.catch_up()
        assert [each["c"] for each in again.view("v").scan()] == [2, 2, 2]
        assert again.table("t").get(key(size, 4)) == row(size, 4, 4)


def test_a_row_in_error_is_named_by_its_whole_key(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, j, 1 / n AS q FROM t")
    db.table("t").put(row(600, 1, 0))
    db.catch_up()
    with pytest.raises(ViewInError) as raised:
        db.view("v").get(key(600, 1))
    k, j = key(600, 1)
    assert raised.value.rows == [{"k": k, "j": j, "expression": "1 / n"}]
    db.table("t").put(row(600, 1, 4))
    db.catch_up()
    assert db.view("v").get(key(600, 1)) == {"k": k, "j": j, "q": 0.25}
