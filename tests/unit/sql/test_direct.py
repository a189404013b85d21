"""A SELECT that only reads is answered without DuckDB, and so is one that was planned before: the
answers, their names and types, and the errors are those of the long way.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import BelvedereError, CatalogError, SqlError, Timeout, ViewInError
from belvedere.types import DATE, INT, STRING, SqlType
from tests.unit.counting import counted
from tests.unit.sql.test_keyed import CONSTANTS, KEYS, VALUES, literal

KINDS = list(VALUES)
RELATIONS = ["t", "rows", "by_value", "bag"]


def rows_of(kinds: tuple[SqlType, ...]) -> list[dict[str, Any]]:
    """A row for every key, with values of all types, and NULLs among them."""
    found: list[tuple[Any, ...]] = [()]
    for kind in kinds:
        found = [(*row, v) for row in found for v in VALUES[kind]]
    return [
        {f"k{i}": value for i, value in enumerate(key)}
        | {f"v{i}": pick(VALUES[kind], number, i) for i, kind in enumerate(KINDS)}
        for number, key in enumerate(found)
    ]


def pick(values: list[Any], number: int, place: int) -> Any:
    return None if (number + place) % 4 == 0 else values[(number + place) % len(values)]


@pytest.fixture(
    scope="module", params=[KEYS[1], *KEYS[3:6], *KEYS[10:]], ids=lambda k: "-".join(map(str, k))
)
def keyed(request: pytest.FixtureRequest) -> Iterator[tuple[Database, tuple[SqlType, ...]]]:
    kinds: tuple[SqlType, ...] = request.param
    names = ", ".join(f"k{i}" for i in range(len(kinds)))
    columns = ", ".join(
        [f"k{i} {kind}" for i, kind in enumerate(kinds)]
        + [f"v{i} {kind}" for i, kind in enumerate(KINDS)]
    )
    with belvedere.open("memory:", slots=3) as db:
        db.sql(f"CREATE TABLE t ({columns}, PRIMARY KEY ({names}))")
        db.sql("CREATE MATERIALIZED VIEW rows AS SELECT * FROM t")
        db.sql("CREATE MATERIALIZED VIEW by_value WITH (key = 'v4') AS SELECT * FROM t")
        db.sql("CREATE MATERIALIZED VIEW bag AS SELECT k0, v1, v4 FROM t")
        db.table("t").put_many(rows_of(kinds))
        db.catch_up()
        yield db, kinds


@st.composite
def projections(draw: st.DrawFn, columns: list[str]) -> str:
    """Plain columns under their own and other names, and now and then something to compute."""
    name = st.sampled_from(columns)
    item = st.one_of(
        name,
        name.map(str.upper),
        name.map(lambda n: f"`{n}`"),
        name.map(lambda n: f"x.{n}"),
        name.map(lambda n: f"{n} AS Renamed"),
        name.map(lambda n: f"{n} AS {columns[0]}"),
        st.sampled_from(["*", "x.*", "* EXCEPT (v1)", "1 AS one", "nothing", "count(*)", "(v1)"]),
    )
    return ", ".join(draw(st.lists(item, min_size=1, max_size=4)))


@st.composite
def statements(draw: st.DrawFn, relation: str, key: list[tuple[str, SqlType]]) -> Any:
    """A statement, and its parameters if it has any."""
    params: list[Any] = []

    def constant(kind: SqlType) -> str:
        if draw(st.booleans()):
            value = draw(st.sampled_from(VALUES[kind]))
            if draw(st.booleans()):
                params.append(draw(st.sampled_from([value, value, value, None, 7, "7", 0.0])))
                return "?"
            return literal(value, kind)
        return draw(st.sampled_from(CONSTANTS))

    def term(name: str, kind: SqlType) -> str:
        forms = ["{n} = {a}"] * 4 + ["{a} = {n}", "{n} IN ({a}, {b})", "{n} <=> {a}"]
        forms += ["({n} = {a} OR {n} = {b})", "{n} BETWEEN {a} AND {b}", "{n} IS NULL", "{n} > {a}"]
        form = draw(st.sampled_from(forms))
        values = {part: constant(kind) for part in "ab" if f"{{{part}}}" in form}
        return form.format(n=name, **values)

    def condition() -> str:
        terms = [term(name, kind) for name, kind in key]
        extra = draw(st.sampled_from(["", "", "", "", "v1 > 0", "1 = 1"]))
        return " AND ".join([*terms, *([extra] if extra else [])])

    where = condition()
    if draw(st.integers(0, 4)) == 0:
        where = f"({where}) OR ({condition()})"
    columns = [name for name, _ in key] + ["v1", "v4"]
    limit = draw(st.sampled_from(["", "", "", " LIMIT 1", " LIMIT 0", " LIMIT 100", " LIMIT ALL"]))
    items = draw(projections(columns))
    return f"SELECT {items} FROM {relation} AS x WHERE {where}{limit}", params


def outcome(db: Database, statement: str, params: list[Any]) -> Any:
    """Names, types and rows, or what is wrong."""
    try:
        table = db.sql(statement, params or None).to_arrow()
    except BelvedereError as error:
        return type(error), str(error)
    columns = [column.to_pylist() for column in table.columns]
    rows = sorted(map(repr, zip(*columns, strict=True)))
    return table.schema, rows


def the_long_way(patch: pytest.MonkeyPatch, db: Database) -> None:
    patch.setattr("belvedere.sql.query.direct", lambda *_: None)
    db.prepared.clear()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_what_only_reads_answers_as_the_long_way_does(
    keyed: tuple[Database, tuple[SqlType, ...]], data: st.DataObject
) -> None:
    db, _ = keyed
    relation = data.draw(st.sampled_from(RELATIONS))
    schema = db.state().relation(relation).schema
    key = [(column.name, column.type) for column in schema.key_columns]
    statement, params = data.draw(statements(relation, key[: data.draw(st.integers(1, len(key)))]))
    found = [outcome(db, statement, params) for _ in range(3)]  # planned once at most
    with pytest.MonkeyPatch.context() as patch:
        the_long_way(patch, db)
        wanted = outcome(db, statement, params)
    assert found == [wanted] * 3


# ---------------------------------------------------------------- that DuckDB is not asked


@pytest.fixture(params=["memory", "embedded"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    place = "memory:" if request.param == "memory" else tmp_path / "db"
    with belvedere.open(place, slots=3) as opened:
        opened._runner = LocalRunner(opened.store)
        opened.sql("CREATE TABLE t (id INT, day DATE, s STRING, n INT, PRIMARY KEY (id, day))")
        opened.sql("CREATE MATERIALIZED VIEW v AS SELECT day, id, s, 10 DIV n AS n FROM t")
        opened.table("t").put_many([row(i) for i in range(30)])
        opened.catch_up()
        yield opened


def row(i: int) -> dict[str, Any]:
    return {"id": i, "day": date(2026, 1, 1 + i % 3), "s": f"s{i}", "n": 5}


@pytest.fixture
def no_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("DuckDB is asked")

    monkeypatch.setattr("belvedere.sql.query.run", refuse)
    monkeypatch.setattr("belvedere.sql.query.bounds.shared", refuse)


@pytest.mark.usefixtures("no_duckdb")
@pytest.mark.parametrize("relation", ["t", "v"])
def test_a_row_by_its_key_is_read_and_nothing_else(db: Database, relation: str) -> None:
    statement = f"SELECT s, id AS number FROM {relation} WHERE id = 4 AND day = DATE '2026-01-02'"
    with counted(db) as counter:
        assert db.sql(statement).to_pylist() == [{"s": "s4", "number": 4}]
    assert counter.rows == 1
    assert db.sql(statement.replace("= 4", "= 5")).to_pylist() == []


@pytest.mark.usefixtures("no_duckdb")
@pytest.mark.parametrize("relation", ["t", "v"])
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("id IN (1, 4) AND day = DATE '2026-01-02'", [1, 4]),
        ("day = DATE '2026-01-02' AND (id = 1 OR id = 4 OR id = 5)", [1, 4]),
        ("(id = 1 AND day = DATE '2026-01-02') OR (id = 2 AND day = DATE '2026-01-03')", [1, 2]),
    ],
)
def test_several_keys_are_looked_up(
    db: Database, relation: str, where: str, ids: list[int]
) -> None:
    with counted(db) as counter:
        rows = db.sql(f"SELECT id FROM {relation} WHERE {where}").to_pylist()
    assert sorted(row["id"] for row in rows) == ids
    assert counter.rows == len(ids)


@pytest.mark.usefixtures("no_duckdb")
def test_a_range_of_a_key_is_read(db: Database) -> None:
    rows = db.sql("SELECT id FROM t WHERE id BETWEEN 3 AND 6 LIMIT 2").to_pylist()
    assert rows == [{"id": 3}, {"id": 4}]


# ---------------------------------------------------------------- statements that were planned

BY_KEY = "SELECT s FROM {} WHERE id = ? AND day = ?"


@pytest.mark.usefixtures("no_duckdb")
@pytest.mark.parametrize("relation", ["t", "v"])
def test_a_statement_is_planned_once_whatever_the_values(
    db: Database, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BY_KEY.format(relation)
    assert db.sql(text, [1, date(2026, 1, 2)]).to_pylist() == [{"s": "s1"}]
    with monkeypatch.context() as patch:
        patch.setattr("belvedere.statements.parse", lambda _: pytest.fail("it is parsed again"))
        assert db.sql(f"\n {text}\n", (4, date(2026, 1, 2))).to_pylist() == [{"s": "s4"}]
        assert db.sql(text, [4, date(2026, 1, 1)]).to_pylist() == []
    assert db.sql(text, [2**40, date(2026, 1, 1)]).to_pylist() == []


def test_parameters_with_names_are_found_by_them(db: Database) -> None:
    text = "SELECT id, s FROM t WHERE day = :day AND id = :id"
    for i in (1, 4, 7):
        params = {"id": i, "day": date(2026, 1, 2)}
        assert db.sql(text, params).to_pylist() == [{"id": i, "s": f"s{i}"}]
    with pytest.raises(SqlError, match="there is no parameter :more"):
        db.sql(text, {"id": 1, "more": 2})
    with pytest.raises(SqlError, match="so their values are a dict"):
        db.sql(text, [1, date(2026, 1, 2)])


def test_a_constant_beside_a_parameter_stays(db: Database) -> None:
    text = "SELECT s FROM t WHERE id = ? AND day = DATE '2026-01-02'"
    found = [db.sql(text, [i]).to_pylist() for i in (1, 4, 5)]
    assert found == [[{"s": "s1"}], [{"s": "s4"}], []]


def test_wrong_parameters_are_told_every_time(db: Database) -> None:
    text = BY_KEY.format("t")
    assert db.sql(text, [1, date(2026, 1, 2)]).to_pylist()
    with pytest.raises(SqlError, match="2 parameter"):
        db.sql(text, [1])
    with pytest.raises(SqlError, match="has parameters"):
        db.sql(text)
    with pytest.raises(SqlError, match="which SQL does not know"):
        db.sql(text, [object(), date(2026, 1, 2)])
    with pytest.raises(SqlError, match="not Unicode"):
        db.sql("SELECT s FROM t WHERE s = ?", ["\ud800"])


def test_values_are_those_of_the_call(db: Database) -> None:
    text, params = BY_KEY.format("v"), [1, date(2026, 1, 2)]
    db.sql(text, params).to_arrow()
    later = db.sql(text, params)
    params[0] = 4
    assert later.to_pylist() == [{"s": "s1"}]
    assert "s1" in repr(later)


def test_a_statement_sees_what_is_written_and_committed_after_it_was_planned(db: Database) -> None:
    now, then = BY_KEY.format("t"), BY_KEY.format("v")
    params = [1, date(2026, 1, 2)]
    for word in ("one", "two", "three"):
        before = db.sql(then, params).to_pylist()
        db.table("t").put({**row(1), "s": word})
        assert db.sql(now, params).to_pylist() == [{"s": word}]
        assert db.sql(then, params).to_pylist() == before
        db.catch_up()
        assert db.sql(then, params).to_pylist() == [{"s": word}]


def test_a_statement_is_planned_again_when_definitions_change(db: Database) -> None:
    params = [1, date(2026, 1, 2)]
    now, then = BY_KEY.format("t"), BY_KEY.format("v")
    earlier = [
        db.sql(text, params)
        for text in (now, then)
        for _ in range(2)
        if db.sql(text, params).to_pylist()
    ]
    db.table("t").put({**row(1), "n": 0})
    db.catch_up()
    with pytest.raises(ViewInError):
        db.sql(then, params).to_arrow()
    with pytest.raises(ViewInError):
        earlier[-1].to_arrow()
    db.sql("DROP MATERIALIZED VIEW v")
    with pytest.raises(CatalogError, match="no table or view v"):
        db.sql(then, params)
    db.sql("DROP TABLE t")
    db.sql("CREATE TABLE t (id BIGINT, day STRING, s INT, PRIMARY KEY (day, id))")
    db.table("t").put({"id": 1, "day": "2026-01-02", "s": 9})
    assert db.sql(now, [1, "2026-01-02"]).to_pylist() == [{"s": 9}]
    assert earlier[0].to_pylist() == [{"s": 9}]


def test_a_session_waits_for_its_writes_before_it_looks_up(db: Database) -> None:
    text, params = BY_KEY.format("v"), [1, date(2026, 1, 2)]
    db.sql(text, params).to_arrow()
    with db.session(timeout=0) as session:
        assert session.sql(text, params).to_pylist() == [{"s": "s1"}]
        session.table("t").put({**row(1), "s": "mine"})
        with pytest.raises(Timeout):
            session.sql(text, params).to_arrow()
        assert db.sql(text, params).to_pylist() == [{"s": "s1"}]
        db.catch_up()
        assert session.sql(text, params).to_pylist() == [{"s": "mine"}]


@pytest.mark.parametrize(
    ("kind", "value", "other"),
    [
        (STRING, "a\0b", "a"),
        (DATE, date(2024, 2, 29), datetime(2024, 2, 29, tzinfo=UTC)),
        (INT, 7, Decimal("7.0")),
        (SqlType("double"), -0.0, 0),
        (SqlType("double"), float("nan"), float("nan")),
        (SqlType("timestamp"), datetime(2024, 2, 29, 12), date(2024, 2, 29)),
        (SqlType("binary"), b"\0\xff", bytearray(b"\0\xff")),
        (SqlType("boolean"), True, "true"),
        (SqlType("decimal", 9, 2), Decimal("1.50"), 1.5),
    ],
    ids=str,
)
def test_values_of_other_types_are_compared_as_sql_does(
    kind: SqlType, value: Any, other: Any
) -> None:
    with belvedere.open("memory:") as db:
        db.sql(f"CREATE TABLE t (k {kind}, n INT, PRIMARY KEY (k))")
        db.table("t").put({"k": value, "n": 1})
        for given_value in (value, other, value, other):
            found = outcome(db, "SELECT n FROM t WHERE k = ?", [given_value])
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("belvedere.sql.query.direct", lambda *_: None)
                patch.setattr("belvedere.statements.repeat", lambda *_: None)
                assert outcome(db, "SELECT n FROM t WHERE k = ?", [given_value]) == found
