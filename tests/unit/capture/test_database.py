"""Sources in SQL, in a running database, in status and in backups, with a source that is scripted."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.capture.follower import Follower
from belvedere.cli.followed import followed
from belvedere.cli.tables import console
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import (
    BelvedereError,
    CatalogError,
    HistoryError,
    HistoryGone,
    NotKept,
    SourceError,
    SqlError,
    Timeout,
    ViewNotReady,
)
from belvedere.holding import rows_held
from belvedere.readers.base_rows import rows_at
from belvedere.readers.cut import open_cut
from belvedere.recording import Recording
from belvedere.salvage import salvage
from belvedere.sources.registry import register
from belvedere.status import prometheus
from belvedere.stores.embedded import run_lists, settling
from belvedere.stores.embedded.runs import is_small
from belvedere.stores.embedded.store import EmbeddedStore
from belvedere.waiting import wait_until
from tests.unit.capture.scripted import ScriptedSource, Server
from tests.unit.capture.test_follower import SCHEMAS

LONG = 60.0
_servers: dict[str, Server] = {}
CREATE = "CREATE SOURCE {0} TYPE scripted OPTIONS (server = '{0}')"
KEEP = "CREATE SOURCE {0} TYPE scripted OPTIONS (server = '{0}', copy = '*')"
VIEW = (
    "CREATE MATERIALIZED VIEW v AS SELECT accounts.id, t.note, b.accounts.amount FROM b.accounts"
    " JOIN t USING (id)"
)


class Prompt(ScriptedSource):
    """What is committed can be followed at once."""

    def position(self) -> str:
        self.server.show()
        self.server.deliver()
        return super().position()


register("scripted", lambda name, options: Prompt(_servers[options["server"]]))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    for name in ("b", "c"):
        _servers[name] = Server(dict(SCHEMAS))
        _servers[name].commit({"accounts": {1: account(1, 10), 2: account(2, 20)}})
    with opened(tmp_path / "db") as found:
        found.sql("CREATE TABLE t (id BIGINT, note STRING, PRIMARY KEY (id))")
        found.table("t").put_many([{"id": i, "note": f"n{i}"} for i in range(1, 4)])
        yield found


def opened(path: Path) -> Database:
    found = Database(str(path), slots=2)
    found._runner = LocalRunner(found.store)
    return found


def account(number: int, amount: int) -> dict[str, Any]:
    return {"id": number, "amount": amount}


def rows(db: Database, view: str = "v") -> list[dict[str, Any]]:
    return sorted(db.view(view).to_arrow().to_pylist(), key=lambda row: str(row["id"]))


def amounts(db: Database) -> dict[int, int]:
    return {row["id"]: row["amount"] for row in rows(db)}


def test_a_view_over_a_source_and_a_table_of_ours(db: Database) -> None:
    db.sql(KEEP.format("b"))
    db.sql(VIEW)
    with pytest.raises(ViewNotReady, match="still being copied"):
        db.sql("SELECT * FROM b.accounts")
    with pytest.raises(CatalogError, match="write to it there"):
        db.sql("INSERT INTO b.accounts VALUES (9, 9)")
    db.catch_up(timeout=LONG)
    assert amounts(db) == {1: 10, 2: 20}
    _servers["b"].commit({"accounts": {1: None, 3: account(3, 30)}})
    db.table("t").put({"id": 2, "note": "other"})
    db.catch_up(timeout=LONG)
    assert amounts(db) == {2: 20, 3: 30}
    text = "SELECT accounts.amount, b.accounts.id FROM b.accounts WHERE accounts.id = 3"
    assert db.sql(text).to_pylist() == [{"amount": 30, "id": 3}]
    assert db.sql("SELECT a.id FROM `b`.Accounts a").to_pylist() == [{"id": 2}, {"id": 3}]


def test_a_running_pipeline_follows_sources_that_come_later(db: Database) -> None:
    pipeline = db.start()
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    assert wait_until(lambda: db.status().views[0].is_live or None, LONG)
    with db.session(LONG) as mine:
        for amount in range(20, 30):
            _servers["b"].commit({"accounts": {1: account(1, amount)}})
            mine.wrote()
            assert amounts(mine)[1] == amount
    pipeline.stop()
    (source,) = db.status().sources
    assert (source.state, source.lag_transactions) == ("following", 0)


def test_lag_is_the_age_of_the_oldest_transaction_that_no_view_has(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    (first, *_) = [
        _servers["b"].commit({"accounts": {1: account(1, amount)}}) for amount in range(11, 14)
    ]
    _servers["b"].deliver()
    follower = Follower(db.store, db.state().source("b"), Prompt(_servers["b"]))
    follower.step(0)
    committed = 1000.0 + first.number  # as the script says
    low = time.time() - committed
    (source,) = db.status().sources
    assert source.lag_transactions == 3
    assert low <= source.lag_seconds <= time.time() - committed
    follower.close()
    db.catch_up(timeout=LONG)
    (source,) = db.status().sources
    assert (source.lag_transactions, source.lag_seconds) == (0, 0.0)


def test_available_now_brings_what_sources_have_by_now(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    assert db.start("available_now").await_termination(LONG)
    assert amounts(db) == {1: 10, 2: 20}


def test_a_source_that_is_down_stops_neither_the_others_nor_our_tables(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "belvedere")
    for name in ("b", "c"):
        db.sql(CREATE.format(name))
    db.sql(VIEW)
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT id, amount FROM c.accounts")
    db.catch_up(timeout=LONG)
    _servers["b"].is_down = True
    _servers["c"].commit({"accounts": {1: account(1, 11)}})
    db.table("t").put({"id": 2, "note": "other"})
    with pytest.raises(SourceError, match="script is down"):
        db.catch_up(timeout=LONG)
    assert rows(db, "w")[0] == account(1, 11)
    assert {row["note"] for row in rows(db)} == {"n1", "other"}

    pipeline = db.start()

    def state() -> str:
        return {s.name: s.state for s in db.status().sources}["b"]

    def warnings() -> int:
        return sum("script is down" in message for message in caplog.messages)

    assert wait_until(lambda: state() == "unreachable" or None, LONG)
    assert wait_until(lambda: warnings() == 2 or None, LONG), "of catch_up and of the pipeline"
    status = db.status()
    assert "the server of the script is down" in status.sources[0].advice
    assert 'belvedere_source_following{source="b"} 0.0' in prometheus(status)
    out = console()
    with out.capture() as shown:
        for part in followed(status.sources):
            out.print(part)
    (line,) = (line for line in shown.get().splitlines() if "unreachable" in line)
    assert line.split()[-2:] == ["-", "-"], "nobody knows what the server keeps for us now"
    assert "all is well again" not in caplog.text
    _servers["b"].is_down = False
    _servers["b"].commit({"accounts": {1: account(1, 99)}})
    _servers["b"].deliver()
    assert wait_until(lambda: amounts(db)[1] == 99 or None, LONG)
    assert wait_until(lambda: state() == "following" or None, LONG)
    assert caplog.messages[-1] == "source b: all is well again"
    pipeline.stop()


def test_a_view_over_a_source_that_is_down_from_the_beginning_is_waited_for_by_nobody(
    db: Database,
) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    _servers["b"].is_down = True
    with pytest.raises(SourceError, match="is down"):
        db.catch_up(timeout=LONG)
    _servers["b"].is_down = False
    with db.session(0.1) as mine:
        mine.wrote()
        with pytest.raises(Timeout):
            mine.view("v").to_arrow()


def test_a_relation_that_cannot_be_copied_is_an_error_and_not_waited_for(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql("ALTER SOURCE b COPY accounts, savings")
    schema = _servers["b"].schemas.pop("savings")
    with pytest.raises(SourceError, match=r"b\.savings cannot be followed: there is no relation"):
        db.catch_up(timeout=LONG)
    assert [r["id"] for r in db.sql("SELECT id FROM b.accounts")] == [1, 2]
    _servers["b"].schemas["savings"] = schema
    db.sql("ALTER SOURCE b RELOAD savings")
    db.catch_up(timeout=LONG)
    assert db.sql("SELECT * FROM b.savings").to_pylist() == []


def test_a_stopped_relation_says_why_and_is_loaded_again(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    _servers["b"].truncate("accounts")
    _servers["b"].commit({"accounts": {3: account(3, 30)}})
    db.catch_up(timeout=LONG)
    assert amounts(db) == {1: 10, 2: 20}
    assert "ALTER SOURCE b RELOAD accounts" in db.status().sources[0].advice
    db.sql("ALTER SOURCE b RELOAD accounts")
    db.catch_up(timeout=LONG)
    assert amounts(db) == {3: 30}
    assert not db.status().sources[0].advice


def test_dropping_a_source_removes_everything(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    with pytest.raises(CatalogError, match="used by v"):
        db.sql("DROP SOURCE b")
    db.sql("DROP MATERIALIZED VIEW v")
    assert "dropped" in str(db.sql("DROP SOURCE b"))
    assert _servers["b"].is_removed
    assert not db.state().sources
    assert list(db.state().tables) == ["t"]
    db.catch_up(timeout=LONG)

    db.sql(CREATE.format("b"))
    db.sql("ALTER SOURCE b COPY accounts, savings")
    db.catch_up(timeout=LONG)
    _servers["b"].is_down = True
    with pytest.raises(SourceError, match="FORCE"):
        db.sql("DROP SOURCE b")
    assert "was not told" in str(db.sql("DROP SOURCE b FORCE"))
    assert not db.state().sources
    db.catch_up(timeout=LONG)


def test_a_restored_backup_goes_on_or_says_that_it_has_to_be_loaded(
    db: Database, tmp_path: Path
) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    _servers["b"].commit({"accounts": {1: account(1, 11)}})
    db.catch_up(timeout=LONG)
    db.backup(tmp_path / "copy")
    forgotten = _servers["b"].forgotten
    _servers["b"].commit({"accounts": {1: account(1, 12)}})
    db.catch_up(timeout=LONG)
    for name, is_kept in (("kept", True), ("lost", False)):
        if is_kept:
            _servers["b"].forgotten = forgotten
        belvedere.restore(tmp_path / "copy", tmp_path / name)
        with opened(tmp_path / name) as again:
            assert amounts(again)[1] == 11
            if not is_kept:
                _servers["b"].forgotten = len(_servers["b"].log)
                with pytest.raises(SourceError, match="forgotten"):
                    again.catch_up(timeout=LONG)
                assert again.status().sources[0].state == "lost"
                again.sql("ALTER SOURCE b RELOAD")
            again.catch_up(timeout=LONG)
            assert amounts(again)[1] == 12


def test_time_travel_feeds_and_the_past_of_a_relation(db: Database) -> None:
    db.keep_history(epochs=50)
    db.sql(KEEP.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    epoch = db.status().epoch
    _servers["b"].commit({"accounts": {1: account(1, 11)}})
    db.catch_up(timeout=LONG)
    now = db.sql("SELECT amount FROM b.accounts WHERE id = 1").to_pylist()
    past = db.sql(f"SELECT amount FROM b.accounts VERSION AS OF {epoch} WHERE id = 1").to_pylist()
    assert (now, past) == ([{"amount": 11}], [{"amount": 10}])


def test_secrets_are_kept_by_reference_only(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "correct-horse"
    with pytest.raises(SqlError, match=r"password = env\('VARIABLE'\)"):
        db.sql(f"CREATE SOURCE b TYPE scripted OPTIONS (server = 'b', password = '{secret}')")
    text = "CREATE SOURCE b TYPE scripted OPTIONS (server = 'b', password = env('OF_TEST'))"
    with pytest.raises(SourceError, match="OF_TEST"):
        db.sql(text)
    monkeypatch.setenv("OF_TEST", secret)
    db.sql(text)
    file = tmp_path / "secret"
    with pytest.raises(SourceError, match="cannot be read"):
        db.sql(f"CREATE SOURCE c TYPE scripted OPTIONS (server = 'c', password_file = '{file}')")
    file.write_text(secret + "\n")
    db.sql(f"CREATE SOURCE c TYPE scripted OPTIONS (server = 'c', password_file = '{file}')")
    assert str(db.sql("SHOW CREATE SOURCE b")) == text
    shown = str(db.sql("SHOW SOURCES").to_pylist()) + str(db.sql("SHOW CREATE SOURCE c"))
    kept = db.store.catalog.read(lambda t: t.scan(""))
    assert secret not in shown
    assert secret.encode() not in b"".join(value for _, value in kept)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("CREATE SOURCE", SqlError, "a name is expected"),
        ("CREATE SOURCE x", SqlError, "TYPE is expected"),
        ("CREATE SOURCE x TYPE nothing", SourceError, "no source of type nothing"),
        ("CREATE SOURCE b TYPE scripted OPTIONS (server = 'b')", CatalogError, "exists already"),
        ("CREATE SOURCE x TYPE scripted OPTIONS (server 'b')", SqlError, "= is expected"),
        ("CREATE SOURCE x TYPE scripted OPTIONS (a = 'b', a = 'c')", SqlError, "twice"),
        ("ALTER SOURCE x COPY t", CatalogError, "no source x"),
        ("ALTER SOURCE b COPY nothing", SourceError, "no relation nothing"),
        ("ALTER SOURCE b FORGET accounts", SqlError, "RELOAD is expected"),
        ("DROP SOURCE x", CatalogError, "no source x"),
        ("DROP SOURCE b NOW", SqlError, "the end is expected"),
        ("SELECT * FROM x.t", CatalogError, "no relation x.t"),
        ("SELECT * FROM b.savings", CatalogError, "ALTER SOURCE b COPY savings"),
        ("INSERT INTO b.accounts VALUES (1, 2)", CatalogError, "write to it there"),
        ("UPDATE b.accounts SET amount = 1", CatalogError, "write to it there"),
        ("DELETE FROM b.accounts", CatalogError, "write to it there"),
        ("CREATE TABLE b.x (id INT, PRIMARY KEY (id))", SqlError, "no database in front"),
        ("CREATE TABLE `b.x` (id INT, PRIMARY KEY (id))", CatalogError, "is of source b"),
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM b.x", SourceError, "no relation x"),
    ],
)
def test_what_is_wrong_is_said_with_the_way_out(
    db: Database, text: str, error: type[BelvedereError], said: str
) -> None:
    db.sql(CREATE.format("b"))
    db.sql("ALTER SOURCE b COPY accounts")
    db.catch_up(timeout=LONG)
    with pytest.raises(error, match=said):
        db.sql(text)


def test_what_there_is(db: Database) -> None:
    db.sql(CREATE.format("b"))
    assert "already" in str(db.sql("CREATE SOURCE IF NOT EXISTS b TYPE scripted"))
    assert "kept from now on" in str(db.sql("ALTER SOURCE b COPY accounts"))
    assert "already" in str(db.sql("ALTER SOURCE b COPY accounts"))
    assert db.sql("SHOW TABLES IN b").to_pylist() == [
        {"name": "accounts", "state": "followed, kept"},
        {"name": "savings", "state": ""},
    ]
    assert db.sql("SHOW TABLES").to_pylist()[0] == {"name": "b.accounts", "kind": "relation of b"}
    assert [r["column"] for r in db.sql("DESCRIBE b.accounts")] == ["id", "amount"]
    assert [r["column"] for r in db.sql("DESCRIBE b.savings")] == ["owner", "id", "amount"]
    assert [t.name for t in db.state().relations_of("b")] == ["b.accounts"]  # no other since
    with pytest.raises(SourceError, match="no relation nothing"):
        db.sql("DESCRIBE b.nothing")
    assert str(db.sql("SHOW CREATE TABLE b.accounts")) == "ALTER SOURCE b COPY accounts"
    db.catch_up(timeout=LONG)
    db.sql("DROP TABLE b.accounts")
    db.catch_up(timeout=LONG)
    assert not db.state().relations_of("b")


def test_a_relation_that_is_not_kept_is_refused_until_it_is(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    assert db.sql("SHOW TABLES").to_pylist()[0]["kind"] == "relation of b, not kept"
    assert db.sql("SHOW TABLES IN b").to_pylist()[0]["state"] == "followed"
    assert "not kept" in str(db.sql("SHOW CREATE TABLE b.accounts"))
    (source,) = db.status().sources
    assert [relation.is_kept for relation in source.relations] == [False]
    epoch = db.status().epoch
    for text in (
        "SELECT * FROM b.accounts",
        "SELECT amount FROM b.accounts WHERE id = 1",
        f"SELECT * FROM b.accounts VERSION AS OF {epoch}",
        "SELECT v.id FROM v JOIN b.accounts a ON a.id = v.id",
        "EXPLAIN COST SELECT amount, count(*) AS n FROM b.accounts GROUP BY amount",
        "EXPLAIN WHY v WHERE id = 1",
        "SELECT * FROM b.accounts LIMIT 1",
    ):
        with pytest.raises(NotKept, match="ALTER SOURCE b COPY accounts"):
            print(db.sql(text))
    for read in (lambda: db.table("b.accounts"), lambda: db.verify_base("b.accounts")):
        with pytest.raises(NotKept):
            read()

    assert "kept from now on" in str(db.sql("ALTER SOURCE b COPY accounts"))
    assert "already" in str(db.sql("ALTER SOURCE b COPY accounts"))
    with pytest.raises(ViewNotReady, match="still being copied"):
        db.sql("SELECT * FROM b.accounts")
    _servers["b"].commit({"accounts": {1: account(1, 11)}})
    db.catch_up(timeout=LONG)
    _servers["b"].commit({"accounts": {2: None, 3: account(3, 30)}})
    db.catch_up(timeout=LONG)
    there = [account(1, 11), account(3, 30)]
    assert db.sql("SELECT * FROM b.accounts").to_pylist() == there
    assert db.sql("SELECT amount FROM b.accounts WHERE id = 3").to_pylist() == [{"amount": 30}]
    assert list(db.table("b.accounts").scan()) == there
    assert db.table("b.accounts").get(1) == account(1, 11)
    assert str(db.sql("EXPLAIN COST SELECT amount, count(*) AS n FROM b.accounts GROUP BY amount"))
    assert "b.accounts" in str(db.sql("EXPLAIN WHY v WHERE id = 1"))
    assert db.verify_base("b.accounts").ok
    assert str(db.sql("SHOW CREATE TABLE b.accounts")) == "ALTER SOURCE b COPY accounts"
    with pytest.raises(HistoryGone, match="was created after"):
        db.sql(f"SELECT * FROM b.accounts VERSION AS OF {epoch}").to_arrow()
    with pytest.raises(CatalogError, match="write to it there"):
        db.sql("DELETE FROM b.accounts")
    db.sql("DROP MATERIALIZED VIEW v")
    db.sql("DROP TABLE b.accounts")
    db.catch_up(timeout=LONG)
    assert db.state().filled == {}


def test_a_recording_over_a_relation_that_is_not_kept_is_refused(
    db: Database, tmp_path: Path
) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    with pytest.raises(HistoryError, match=r"copy = '\*'"):
        Recording(db.store, tmp_path / "history")()


def test_the_option_copy_names_relations(db: Database) -> None:
    db.sql("CREATE SOURCE b TYPE scripted OPTIONS (server = 'b', copy = 'savings, accounts')")
    db.sql("CREATE SOURCE c TYPE scripted OPTIONS (server = 'c', copy = 'savings')")
    for name in ("b", "c"):
        db.sql(f"CREATE MATERIALIZED VIEW {name}_all AS SELECT * FROM {name}.accounts")
    db.catch_up(timeout=LONG)
    assert len(db.sql("SELECT * FROM b.accounts").to_pylist()) == 2
    with pytest.raises(NotKept):
        db.sql("SELECT * FROM c.accounts")
    assert "copy = 'savings'" in str(db.sql("SHOW CREATE SOURCE c"))


@pytest.mark.parametrize("copy", ["", "nothing", "savings, nothing", "savings,,accounts"])
def test_the_option_copy_names_no_others(db: Database, copy: str) -> None:
    with pytest.raises(SqlError, match=r"no relation '(nothing)?' that can be followed"):
        db.sql(f"CREATE SOURCE b TYPE scripted OPTIONS (server = 'b', copy = '{copy}')")
    assert db.sql("SHOW SOURCES").to_pylist() == []


def test_a_store_that_lets_nothing_pass_keeps_relations(db: Database) -> None:
    able: Any = db.store
    able.capabilities = replace(db.store.capabilities, passing=False)
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    assert len(db.sql("SELECT * FROM b.accounts").to_pylist()) == 2


def test_rows_are_held_for_a_verification_and_let_go(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    table = db.state().table("b.accounts")
    with rows_held(db, "v"):
        with open_cut(db.store) as cut:
            readable = cut.state.readable(table)
            (rows,) = rows_at(db.store, readable, cut.epoch, cut.vector)
            assert rows.to_pylist() == [account(1, 10), account(2, 20)]
        with pytest.raises(NotKept):
            db.sql("SELECT * FROM b.accounts")
        with rows_held(db, "v"):
            pass
        db.table("t").put({"id": 9, "note": "an epoch"})
        db.catch_up(timeout=LONG)
        assert db.state().filled
    db.table("t").put({"id": 9, "note": "another one"})
    db.catch_up(timeout=LONG)
    assert db.state().filled == {}


def test_a_view_that_is_rebuilt_has_its_relations_copied(db: Database) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    _servers["b"].commit({"accounts": {1: account(1, 11)}})
    assert db.rebuild("v") == ("v",)
    db.catch_up(timeout=LONG)
    assert amounts(db) == {1: 11, 2: 20}
    db.sql(VIEW.replace("CREATE", "CREATE OR REPLACE"))
    _servers["b"].commit({"accounts": {1: account(1, 12)}})
    db.catch_up(timeout=LONG)
    assert amounts(db) == {1: 12, 2: 20}
    assert db.state().filled == {}


def test_damaged_rows_of_a_relation_are_copied_once_more(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "FEW", 1)
    monkeypatch.setattr(settling, "SMALL_BYTES", 0)
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    db.sql("ALTER SOURCE b COPY accounts")
    many = {number: account(number, number) for number in range(500)}
    _servers["b"].commit({"accounts": {**many}})
    db.catch_up(timeout=LONG)
    db.store.base.trim("log", db.store.base.end()["log"])
    rows_in = db.state().filled[db.state().table("b.accounts").id].table
    db.close()
    damage(tmp_path / "db", rows_in)
    told = salvage(tmp_path / "db", really=True)
    assert {each.table for each in told.lost} == {"table b.accounts"}
    assert told.views == ("v",)
    with opened(tmp_path / "db") as again:
        again.catch_up(timeout=LONG)
        assert again.sql("SELECT * FROM b.accounts").to_pylist() == list(many.values())
        assert amounts(again) == {1: 1, 2: 2, 3: 3}
        assert again.state().filled[again.state().table("b.accounts").id].table != rows_in


def damage(path: Path, table: int) -> None:
    """A byte of a section with rows of a table."""
    with EmbeddedStore.open(str(path)) as store:
        (base, *_) = store.places
        listed = base.environment.read(lambda t: list(run_lists.every(t)))
        found = [run_lists.decode(d, "") for o, _, d in listed if run_lists.table_of(o) == table]
    ref = next(ref for runs in found for run in runs for ref in run if not is_small(ref.file))
    file = path / "base" / ref.file
    data = bytearray(file.read_bytes())
    data[ref.offset + ref.size // 2] ^= 1
    file.write_bytes(data)


def test_a_view_over_a_relation_that_has_stopped_is_an_error_and_not_waited_for(
    db: Database,
) -> None:
    db.sql(CREATE.format("b"))
    db.sql(VIEW)
    db.catch_up(timeout=LONG)
    _servers["b"].truncate("accounts")
    _servers["b"].commit({"accounts": {3: account(3, 30)}})
    db.catch_up(timeout=LONG)
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT id, amount FROM b.accounts")
    with pytest.raises(SourceError, match="ALTER SOURCE b RELOAD accounts builds its views anew"):
        db.catch_up(timeout=LONG)
    assert amounts(db) == {1: 10, 2: 20}, "as it was"
    db.sql("ALTER SOURCE b RELOAD accounts")
    with pytest.raises(ViewNotReady):
        rows(db)
    db.catch_up(timeout=LONG)
    assert (amounts(db), rows(db, "w")) == ({3: 30}, [account(3, 30)])
