"""Showing a result: a few rows if they are cheap, never an exception, never the whole answer for
twenty rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere import preview
from belvedere.epochs.local import LocalRunner
from belvedere.sql import query
from belvedere.sql.query.translation import Translated

MANY = 120_000


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path_factory.mktemp("preview") / "d", slots=2) as opened:
        opened._runner = LocalRunner(opened.store)
        opened.sql(
            "CREATE TABLE large (id INT, v INT, s STRING, PRIMARY KEY (id)); CREATE TABLE small (id"
            " INT, PRIMARY KEY (id))"
        )
        opened.sql(
            "CREATE MATERIALIZED VIEW same AS SELECT id, v FROM large; CREATE TABLE empty (id INT,"
            " PRIMARY KEY (id))"
        )
        opened.table("large").put_many([{"id": i, "v": i % 7, "s": f"s{i}"} for i in range(MANY)])
        opened.table("small").put_many([{"id": i} for i in range(30)])
        opened.catch_up()
        yield opened


@pytest.fixture
def looked_at(db: belvedere.Database, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each query was given."""
    seen: list[int] = []
    run = query.run

    def counted(translated: Translated, tables: Any) -> Any:
        seen.append(sum(table.num_rows for table in tables.values()))
        return run(translated, tables)

    monkeypatch.setattr(query, "run", counted)
    return seen


@pytest.mark.parametrize("name", ["large", "same"])
def test_the_first_rows_of_a_large_relation_are_shown_without_the_others(
    db: belvedere.Database, looked_at: list[int], name: str
) -> None:
    text = repr(db.sql(f"SELECT id, v + 1 AS w FROM {name} WHERE v > 0"))
    lines = text.splitlines()
    assert lines[0].split() == ["id", "w"]
    assert all(int(line.split()[0]) % 7 + 1 == int(line.split()[1]) for line in lines[1:21])
    assert lines[21] == "(the first 20 rows: to_pylist(), to_arrow() and to_spark() give all)"
    assert looked_at == [10_001]


def test_what_needs_all_rows_of_a_large_relation_shows_its_columns(
    db: belvedere.Database, looked_at: list[int]
) -> None:
    for text in (
        "SELECT count(*) AS n FROM large",
        "SELECT v, max(s) AS m FROM large GROUP BY v",
        "SELECT id FROM large ORDER BY id DESC",
        "SELECT DISTINCT v FROM same",
        "SELECT a.id FROM large a JOIN small b ON a.id = b.id",
        "SELECT id FROM large UNION ALL SELECT id FROM same",
        "SELECT id FROM large WHERE id IN (SELECT id FROM small)",
        "WITH c AS (SELECT * FROM large) SELECT id FROM c",
    ):
        shown = repr(db.sql(text))
        assert ": columns " in shown, text
        assert "not computed yet: to_pylist()" in shown
    assert looked_at == []


@pytest.mark.parametrize("name", ["large", "same"])
def test_a_row_of_a_large_relation_is_found_by_its_key(
    db: belvedere.Database, looked_at: list[int], name: str
) -> None:
    text = repr(db.sql(f"SELECT id FROM {name} WHERE id = {MANY - 1}"))
    assert text.split() == ["id", str(MANY - 1)]
    assert looked_at == [1]


def test_few_hits_in_a_large_table_are_not_taken_for_all(db: belvedere.Database) -> None:
    assert (
        repr(db.sql(f"SELECT id FROM large WHERE id + 0 = {MANY - 1}"))
        .splitlines()[-1]
        .startswith("(after a look at 10,000 rows: ")
    )


def test_small_relations_are_answered_whole(db: belvedere.Database) -> None:
    assert repr(db.sql("SELECT count(*) AS n FROM small")) == "n\n30"
    assert repr(db.sql("SELECT id FROM empty")) == "id"
    assert repr(db.sql("SELECT id FROM small ORDER BY id DESC LIMIT 2")) == "id\n29\n28"
    assert repr(db.sql("SELECT id FROM small")).endswith(
        "(the first 20 rows: to_pylist(), to_arrow() and to_spark() give all)"
    )


def test_to_show_a_result_never_raises(db: belvedere.Database, tmp_path: Path) -> None:
    assert "DIVIDE_BY_ZERO" in repr(db.sql("SELECT 1 / (id - id) AS x FROM small"))
    query = db.sql("SELECT id FROM small")
    db.sql("CREATE TABLE gone (id INT, PRIMARY KEY (id))")
    gone = db.sql("SELECT id FROM gone")
    db.sql("DROP TABLE gone")
    assert "gone" in repr(gone)
    with belvedere.open(tmp_path / "other") as other:
        other.sql(
            "CREATE TABLE t (id INT, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT id"
            " FROM t"
        )
        closed = other.sql("SELECT id FROM t")
        assert "has not been started" in repr(other.sql("SELECT id FROM v"))
    assert "is closed: open the store again" in repr(closed)
    assert len(query.to_pylist()) == 30


def test_to_show_a_result_does_not_take_long(
    db: belvedere.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of pairs of pairs of 30 rows, grouped: 30 to the ninth."""
    monkeypatch.setattr(preview, "_SECONDS", 0.05)
    relations = ", ".join(f"small x{i}" for i in range(9))
    text = repr(db.sql(f"SELECT sum(x0.id * x8.id) AS n FROM {relations}"))
    assert "not computed yet" in text
    assert db.sql("SELECT count(*) AS n FROM small").to_pylist() == [{"n": 30}]


def test_in_a_session_a_result_does_not_wait(db: belvedere.Database) -> None:
    with db.session(timeout=600) as session:
        session.table("small").put({"id": 5})
        assert "not computed yet" in repr(session.sql("SELECT id FROM same"))
    db.catch_up()


def test_shown_rows_are_rows_of_the_answer(db: belvedere.Database) -> None:
    random_ = random.Random(7)
    for _ in range(30):
        name, least = random_.choice(["large", "same", "small"]), random_.randrange(40)
        columns = random_.choice(
            ["id", "id, id * 2 AS twice", "id, CASE WHEN id > 9 THEN 'x' ELSE NULL END AS c"]
        )
        limit = random_.choice(["", " LIMIT 7"])
        result = db.sql(f"SELECT {columns} FROM {name} WHERE id % 41 >= {least}{limit}")
        rows = None if limit else {"  ".join(map(str, row.values())) for row in result.to_pylist()}
        lines = [
            " ".join(line.split())
            for line in repr(result).splitlines()[1:]
            if not line.startswith("(")
        ]
        assert len(lines) <= 20
        if rows is not None:
            assert set(lines) <= {" ".join(row.split()) for row in rows}
