"""Reads of the past: what an epoch showed, or a clear error, never other rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import belvedere
from belvedere.catalog.history import (
    Keep,
    epoch_at,
    held_by_history,
    note_commit,
    oldest_wanted,
)
from belvedere.cli.app import app
from belvedere.epochs.local import LocalRunner
from belvedere.errors import CatalogError, HistoryGone, SchemaError, SqlError, ViewInError
from belvedere.stores.memory import RowRules
from belvedere.types import Vector


@pytest.fixture(params=["rows", "directory"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[belvedere.Database]:
    """On the rules of stores whose rows are atomic, as in HBase, and on the embedded store."""
    url, options = str(tmp_path / "shop"), {}
    if request.param == "rows":
        url, options = "memory:", {"rows": RowRules()}
    with belvedere.open(url, **options) as opened:
        opened._runner = LocalRunner(opened.store)
        opened.keep_history(epochs=100)
        opened.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
        opened.sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        opened.sql("CREATE MATERIALIZED VIEW bag AS SELECT a FROM t")
        opened.catch_up()
        yield opened


def put(db: belvedere.Database, number: int, a: int) -> int:
    db.table("t").put({"id": number, "a": a})
    db.catch_up()
    return db.status().epoch


def sorted_rows(table: Any) -> list[Any]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_every_kept_epoch_shows_what_it_showed(db: belvedere.Database) -> None:
    shown = {}
    for i in range(30):
        epoch = put(db, i % 7, i % 3)
        shown[epoch] = [sorted_rows(db.view(n).to_arrow()) for n in ("v", "bag")] + [
            sorted_rows(db.table("t").to_arrow())
        ]
    db.sql("DELETE FROM t")
    db.catch_up()
    for epoch, (v, bag, t) in shown.items():
        assert sorted_rows(db.view("v").to_arrow(as_of=epoch)) == v
        assert [tuple(r.values()) for r in db.view("v").scan(as_of=epoch)] == v
        assert sorted_rows(db.view("bag").to_arrow(as_of=epoch)) == bag
        assert [tuple(r.values()) for r in db.table("t").scan(as_of=epoch)] == t
        assert db.view("v").get(1, as_of=epoch) == next(
            ({"a": a, "n": n} for a, n in v if a == 1), None
        )
        assert db.table("t").get(3, as_of=epoch) == next(
            ({"id": i, "a": a} for i, a in t if i == 3), None
        )
        both = db.sql(
            f"SELECT t.id, v.n FROM t VERSION AS OF {epoch}"
            f" JOIN v VERSION AS OF {epoch} ON t.a = v.a"
        )
        counts = dict(v)
        assert sorted_rows(both.to_arrow()) == sorted((i, counts[a]) for i, a in t)
        assert sorted_rows(db.sql("SELECT * FROM v", as_of=epoch).to_arrow()) == v
        assert len(repr(db.sql("SELECT * FROM v", as_of=epoch)).splitlines()) == 1 + len(v)


def test_a_moment_shows_the_epoch_that_was_current(db: belvedere.Database) -> None:
    moments = []
    for i in range(6):
        put(db, i, 1)
        moments.append(datetime.now(UTC))
    for count, moment in enumerate(moments, 1):
        text = moment.isoformat()
        assert db.sql(f"SELECT n FROM v TIMESTAMP AS OF '{text}'").to_pylist() == [{"n": count}]
        assert db.view("v").get(1, as_of=moment.replace(tzinfo=None)) == {"a": 1, "n": count}
    with pytest.raises(HistoryGone, match="oldest epoch that can is"):
        db.view("v").get(1, as_of=moments[0] - timedelta(days=1))
    with pytest.raises(SchemaError, match="in the future"):
        db.view("v").get(1, as_of=datetime.now(UTC) + timedelta(days=1))


def test_epochs_are_in_the_order_of_their_times_if_the_clock_is_set_back(
    db: belvedere.Database,
) -> None:
    """Else the search for a moment would find any of them."""
    head = put(db, 0, 1)

    def body(t: Any) -> list[float]:
        for epoch, time in ((1, 4e9), (2, 3.9e9), (3, 5e9), (4, 4.9e9)):
            note_commit(t, head + epoch, Vector(), time)
        return [epoch_at(t, moment, head + 1, head + 4) for moment in (3.95e9, 4.1e9, 4.95e9, 6e9)]

    assert db.store.catalog.transact(body) == [head, head + 2, head + 2, head + 4]


def test_relations_that_were_not_there_are_refused(db: belvedere.Database) -> None:
    before = put(db, 1, 1)
    db.sql("DROP MATERIALIZED VIEW v")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, sum(id) AS n FROM t GROUP BY a")
    db.sql("DROP MATERIALIZED VIEW bag")
    put(db, 2, 1)
    with pytest.raises(HistoryGone, match="created, replaced or built again"):
        db.view("v").to_arrow(as_of=before)
    with pytest.raises(HistoryGone, match="created, replaced or built again"):
        list(db.view("v").changes(since=before))
    with pytest.raises(CatalogError):
        db.sql(f"SELECT * FROM bag VERSION AS OF {before}")
    db.sql("DROP MATERIALIZED VIEW v")
    db.sql("DROP TABLE t")
    db.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
    with pytest.raises(HistoryGone, match="created after epoch"):
        db.table("t").to_arrow(as_of=before)
    with pytest.raises(HistoryGone, match="created after epoch"):
        db.sql(f"SELECT * FROM t VERSION AS OF {before}").to_arrow()


def test_errors_of_the_past_are_errors_of_the_past(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW q AS SELECT id, 6 / a AS q FROM t")
    good = put(db, 1, 2)
    wrong = put(db, 2, 0)
    with pytest.raises(ViewInError):
        list(db.view("q").changes(since=good))
    put(db, 3, 0)
    put(db, 3, 3)
    again = put(db, 2, 1)
    with pytest.raises(ViewInError):
        db.view("q").get(1, as_of=wrong)
    assert db.view("q").get(1, as_of=good) == {"id": 1, "q": 3.0}
    (changes,) = db.view("q").changes(since=good)  # what came while nobody could read it
    assert set(changes.column("_epoch").to_pylist()) == {again}
    assert sorted(changes.column("id").to_pylist()) == [2, 3]
    for epoch in (wrong, wrong + 1):  # of which nobody can have all rows
        with pytest.raises(ViewInError):
            list(db.view("q").changes(since=epoch))


def test_beyond_what_is_kept_is_a_clear_error(db: belvedere.Database) -> None:
    db.keep_history()
    for i in range(30):
        put(db, i, 1)
    with pytest.raises(HistoryGone, match=r"oldest one that can is \d+: keep more") as error:
        db.view("v").to_arrow(as_of=3)
    oldest = error.value.oldest
    assert oldest is not None
    assert db.status().oldest_epoch == oldest > 20
    assert db.view("v").get(1, as_of=oldest) is not None
    with pytest.raises(HistoryGone, match="since=0"):
        list(db.view("v").changes(since=3))


@pytest.mark.parametrize("wrong", ["x", -1, True, 1.5, None.__class__])
def test_what_is_no_version_is_refused(db: belvedere.Database, wrong: Any) -> None:
    with pytest.raises(SchemaError, match="a version is"):
        db.view("v").get(1, as_of=wrong)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM v VERSION AS OF 1 JOIN t ON true", "same AS OF after each"),
        ("SELECT * FROM v VERSION AS OF 1 JOIN t VERSION AS OF 2 ON true", "there are several"),
        ("SELECT * FROM v VERSION AS OF 1 + 1", "literal"),
        ("SELECT * FROM v VERSION AS OF '2020-01-01'", "not an epoch"),
        ("SELECT * FROM v TIMESTAMP AS OF 'yesterday'", "neither an epoch nor a moment"),
        ("WITH w AS (SELECT * FROM v) SELECT * FROM w VERSION AS OF 1", "a query of WITH"),
        ("CREATE MATERIALIZED VIEW z AS SELECT * FROM v VERSION AS OF 1", "VERSION AS OF"),
        ("INSERT INTO t SELECT a, 1 FROM v VERSION AS OF 1", "VERSION AS OF"),
    ],
)
def test_versions_that_are_refused(db: belvedere.Database, query: str, words: str) -> None:
    with pytest.raises(SqlError, match=words):
        db.sql(query).to_arrow()


def test_as_of_is_for_queries(db: belvedere.Database) -> None:
    with pytest.raises(SqlError, match="as_of is for queries"):
        db.sql("INSERT INTO t VALUES (1, 1)", as_of=1)
    with pytest.raises(SqlError, match="leave as_of out"):
        db.sql("SELECT * FROM v VERSION AS OF 1", as_of=1)


def test_how_much_is_kept_by_epochs_and_by_time(db: belvedere.Database) -> None:
    db.keep_history()
    for i in range(8):
        put(db, i, 1)
    head = db.status().epoch

    def body(t: Any) -> None:
        times = {e: 1000.0 + 10 * e for e in range(head - 3, head + 1)}
        for epoch, time in times.items():
            t.put(
                f"epoch/{epoch:020}",
                json.dumps({"time": time, "vector": {}, "errors": {}}).encode(),
            )
        low = head - 3
        assert epoch_at(t, times[head - 1] + 5, low, head) == head - 1
        assert epoch_at(t, times[low] - 1, low, head) == low - 1
        now = times[head] + 1
        assert oldest_wanted(t, Keep(epochs=2), head, now) == head - 2
        assert oldest_wanted(t, Keep(seconds=12), head, now) == head - 2
        assert oldest_wanted(t, Keep(epochs=1, seconds=12), head, now) == head - 2
        assert held_by_history(t, head, now) == head

    db.store.catalog.transact(body)


@pytest.mark.parametrize(
    "wrong", [{"epochs": -1}, {"epochs": 1.5}, {"seconds": "1h"}, {"epochs": 10**9}]
)
def test_what_is_no_history_is_refused(db: belvedere.Database, wrong: Any) -> None:
    with pytest.raises(SchemaError, match="history in"):
        db.keep_history(**wrong)


# ---------------------------------------------------------------- consumers


def test_a_consumer_keeps_what_it_needs_and_goes_on_where_it_was(db: belvedere.Database) -> None:
    db.keep_history()
    put(db, 0, 1)
    with db.view("v").changes(consumer="billing") as feed:
        assert [sorted_rows(t) for t in feed] == [[(1, 1, feed.epoch, 1)]]
        feed.acknowledge()
    last = [put(db, i, 1) for i in range(1, 30)][-1]
    tables = list(db.view("v").changes(consumer="billing"))
    assert [t.column("_epoch")[0].as_py() for t in tables] == list(range(last - 28, last + 1))
    assert all(sorted(t.column("_weight").to_pylist()) == [-1, 1] for t in tables)
    assert [c.name for c in db.consumers()] == ["billing"]
    with pytest.raises(CatalogError, match="follows another view"):
        db.view("bag").changes(consumer="billing")
    db.drop_consumer("billing")
    for i in range(30, 40):
        put(db, i, 1)
    with pytest.raises(HistoryGone):
        list(db.view("v").changes(since=last - 20))


def test_a_consumer_that_is_too_far_behind_is_told_how_to_start_again(
    db: belvedere.Database,
) -> None:
    db.keep_history()
    put(db, 0, 1)
    with db.view("v").changes(consumer="slow", keep_epochs=5) as feed:
        list(feed)
        feed.acknowledge()
    for i in range(1, 30):
        put(db, i, 1)
    with pytest.raises(HistoryGone, match=r"slow has fallen behind.*drop_consumer\('slow'\)"):
        list(db.view("v").changes(consumer="slow"))


def test_a_feed_follows_until_nothing_comes(db: belvedere.Database) -> None:
    epoch = put(db, 1, 1)
    with db.view("v").changes(since=epoch, follow=True, timeout=30.0) as feed:
        for i in range(2, 5):
            put(db, i, 1)
            assert sorted_rows(next(feed))[0][:2] == (1, i - 1)
    assert list(db.view("v").changes(since=feed.epoch, follow=True, timeout=0.0)) == []


def test_a_feed_ends_when_its_view_does_not_change_however_many_epochs_there_are(
    db: belvedere.Database,
) -> None:
    epoch = put(db, 1, 1)
    db.sql("CREATE TABLE other (id INT PRIMARY KEY)")
    db.sql("CREATE MATERIALIZED VIEW others AS SELECT id FROM other")
    db.catch_up()
    ended = threading.Event()

    def go_on() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            db.table("other").put({"id": number})
            db.catch_up()

    busy = threading.Thread(target=go_on)
    busy.start()
    try:
        assert list(db.view("v").changes(since=epoch, follow=True, timeout=0.1)) == []
    finally:
        ended.set()
        busy.join()


WRONG_NAMES = ("", "a/b", "two\nlines", "a\0", "\ud800", "é" * 101, 5)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"since": -1}, "since is the number"),
        ({"since": "x"}, "since is the number"),
        ({"since": 10**6}, "not committed yet"),
        *(({"consumer": name}, "name of a consumer") for name in WRONG_NAMES),
        ({"keep_epochs": 3}, "give consumer="),
        ({"consumer": "c", "keep_epochs": -3}, "history in epochs"),
    ],
)
def test_feeds_that_are_refused(db: belvedere.Database, wrong: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        list(db.view("v").changes(**wrong))


def test_a_view_with_a_column_of_the_feed_has_none(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT id, a AS _weight FROM t")
    db.catch_up()
    with pytest.raises(SchemaError, match="give it another name"):
        list(db.view("w").changes())
    with pytest.raises(CatalogError, match="no consumer"):
        db.view("v").changes().acknowledge()


# ---------------------------------------------------------------- the command line


def test_commands_read_the_past_and_print_changes(tmp_path: Path) -> None:
    path = str(tmp_path / "shop")
    with belvedere.open(path) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        db.catch_up()
        first = put(db, 1, 1)
        put(db, 2, 1)

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["--db", path, *arguments])
        assert done.exit_code == code, done.output
        return done.output

    past = ["--as-of", str(first)]
    assert json.loads(run("get", "v", "1", "--json", *past)) == {"a": 1, "n": 1}
    assert json.loads(run("scan", "t", "--json", *past)) == {"id": 1, "a": 1}
    assert json.loads(run("sql", "SELECT n FROM v", "--json", *past)) == {"n": 1}
    assert json.loads(run("export", "v", "-", "--format", "jsonl", *past)) == {"a": 1, "n": 1}
    lines = [json.loads(line) for line in run("changes", "v", "--since", str(first)).splitlines()]
    assert [(line["n"], line["_weight"]) for line in lines] == [(1, -1), (2, 1)]
    assert len(run("changes", "v", "--consumer", "c").splitlines()) == 1
    assert run("changes", "v", "--consumer", "c") == ""
    assert run("changes", "v", "--consumer", "c", "--keep-epochs", "7") == ""
    with belvedere.open(path) as db:
        (consumer,) = db.consumers()
        assert consumer.keep == Keep(epochs=7)
    assert "--consumer" in run("changes", "v", "--keep-seconds", "7", code=2)
    assert "forgotten" in run("changes", "v", "--consumer", "c", "--drop")
    assert "10 epochs and 60 seconds" in run("history", "--epochs", "10", "--seconds", "60")
    assert json.loads(run("history", "--json"))["history"] == "10 epochs and 60 seconds"
