"""Following a real MariaDB: whole transactions, in order, once; answers that say what they show."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from belvedere.errors import SourceError, SourceLost, SourceUnreachable
from belvedere.sources.base import Answer, Monitor, Part, Question, Quiet, Relation
from belvedere.sources.mariadb import MariaDBSource, Settings
from belvedere.sources.servers import Server
from belvedere.waiting import wait_until
from tests.sources.mariadb import (
    PATIENCE,
    Copy,
    Users,
    all_rows,
    database,
    follow_until,
    rows_of,
)

pytestmark = pytest.mark.sources


@pytest.fixture
def settings(mariadb_server: Server) -> Iterator[Settings]:
    with database(mariadb_server) as found:
        yield found


@pytest.fixture
def source(settings: Settings) -> MariaDBSource:
    return MariaDBSource(settings)


@pytest.fixture
def users(settings: Settings) -> Iterator[Users]:
    found = Users(settings)
    yield found
    found.close()


# ---------------------------------------------------------------- random transactions


def random_statements(choice: random.Random) -> list[str]:
    """A few statements over `t (a, k, v)`, whose key is (a, k); some of them find nothing."""
    return [random_statement(choice) for _ in range(choice.randint(0, 6))]


def random_statement(choice: random.Random) -> str:
    a, k = choice.randint(1, 4), choice.choice(["x", "X ", "é", "long" * 20])
    v = choice.choice(
        ["NULL", "1.5", "'text'", "'😀'", f"REPEAT('y', {choice.randint(1, 20_000)})"]
    )
    return choice.choice(
        [
            f"REPLACE INTO t VALUES ({a}, '{k}', {v})",
            f"INSERT IGNORE INTO t VALUES ({a}, '{k}', {v})",
            f"UPDATE t SET v = {v} WHERE a = {a}",
            f"UPDATE IGNORE t SET a = a + 1 WHERE k = '{k}' ORDER BY a DESC",
            f"DELETE FROM t WHERE a = {a}",
            "DELETE FROM t WHERE k = 'x'",
            f"INSERT IGNORE INTO u SELECT a, k FROM t WHERE a < {a}",
            "DELETE FROM u",
            "INSERT INTO log (n) VALUES (1)",
            "SAVEPOINT one",
            "ROLLBACK TO one",
        ]
    )


def run_random(users: Users, choice: random.Random, number: int) -> None:
    statements = random_statements(choice)
    if "ROLLBACK TO one" in statements:
        statements.insert(0, "SAVEPOINT one")
    how = choice.choice(
        ["commit", "commit", "rollback", "xa", "xa one phase", "xa rollback", "single"]
    )
    name = f"'g{number}'"
    if how == "single":
        users.run(f"REPLACE INTO t VALUES (1, 'x', '{number}')")
    elif how.startswith("xa"):
        users.run(f"XA START {name}", *(s for s in statements if "one" not in s), f"XA END {name}")
        if how == "xa one phase":
            users.run(f"XA COMMIT {name} ONE PHASE")
        else:
            users.run(f"XA PREPARE {name}")
            users.run(f"XA {'COMMIT' if how == 'xa' else 'ROLLBACK'} {name}")
    else:
        users.run("BEGIN", *statements, how.upper())


def make_tables(users: Users) -> None:
    users.run(
        "CREATE TABLE t (a INT, k VARCHAR(100), v MEDIUMTEXT, PRIMARY KEY (a, k))",
        "CREATE TABLE u (a INT, k VARCHAR(100) COLLATE utf8mb4_bin, PRIMARY KEY (k, a))",
        "CREATE TABLE late (id INT PRIMARY KEY)",
        # rows of an engine without transactions put savepoints into the log, with what they undo
        "CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, n INT) ENGINE = MyISAM",
        "SET sql_mode = ''",
    )


@pytest.mark.parametrize("seed", range(4))
def test_what_is_followed_is_what_was_committed(
    source: MariaDBSource, users: Users, seed: int
) -> None:
    """Rows before fit the copy, the copy is the table; and from any position on the rest comes."""
    choice = random.Random(seed)
    make_tables(users)
    relations = [source.describe(name) for name in ("t", "u", "late")]
    copy = Copy(relations)
    first = copy.position = source.prepare(relations)
    other = Users(source._settings)
    other.run("SET sql_mode = ''")
    for number in range(120):
        if number == 40:
            users.run("FLUSH BINARY LOGS")
        if number == 60:  # prepared for a while, and ended among others
            other.run("XA START 'late'", "INSERT INTO late VALUES (77)", "XA END 'late'")
            other.run("XA PREPARE 'late'")
        if number == 90:
            other.run("XA COMMIT 'late'")
        run_random(users, choice, number)
    other.close()
    end = source.position()
    follow_until(source, copy, end)
    assert copy.stopped == []
    for relation in relations:
        assert copy.rows[relation.name] == all_rows(source, relation)
    assert len(copy.transactions) > 40
    for at in choice.sample(range(len(copy.transactions)), 6):
        again = Copy(relations)
        again.position = copy.transactions[at].position
        again.apply = lambda transaction: None  # type: ignore[method-assign]  # only the order counts
        follow_until(source, again, end)
        assert again.transactions == copy.transactions[at + 1 :]
    assert source.covers(copy.position, first)
    assert not source.covers(first, end)


def test_a_large_transaction_comes_whole(source: MariaDBSource, users: Users) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))")
    relation = source.describe("t")
    copy = Copy([relation])
    copy.position = source.prepare([relation])
    users.transaction(
        "INSERT INTO t SELECT seq, CONCAT('v', seq) FROM seq_1_to_60000",
        "UPDATE t SET v = 'changed' WHERE id % 2 = 0",
        "DELETE FROM t WHERE id % 3 = 0",
    )
    follow_until(source, copy, source.position())
    (transaction,) = copy.transactions
    assert len(transaction.changes[0].before) == 0
    assert copy.rows["t"] == all_rows(source, relation)
    assert len(copy.rows["t"]) == 40_000


def test_savepoints_that_the_log_cannot_leave_out_are_undone(
    source: MariaDBSource, users: Users
) -> None:
    """A table of MyISAM in the transaction makes the server log the rows and their undoing."""
    make_tables(users)
    relation = source.describe("t")
    copy = Copy([relation])
    copy.position = source.prepare([relation])
    users.transaction(
        "INSERT INTO t VALUES (1, 'kept', '')",
        "SAVEPOINT `a b`",
        "INSERT INTO t VALUES (2, 'undone', '')",
        "INSERT INTO log (n) VALUES (1)",
        "ROLLBACK TO `a b`",
        "INSERT INTO t VALUES (3, 'kept', '')",
    )
    follow_until(source, copy, source.position())
    assert sorted(copy.rows["t"]) == [(1, "kept"), (3, "kept")]


def test_other_tables_and_databases_are_quiet(source: MariaDBSource, users: Users) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")
    relation = source.describe("t")
    position = source.prepare([relation])
    users.run("INSERT INTO other VALUES (1)")
    monitor = source.follow([relation], position)
    end = source.position()
    while not source.covers(position, end):
        (event,) = monitor.poll(PATIENCE)
        assert isinstance(event, Quiet)
        position = event.position
    assert monitor.poll(0.01) == []
    monitor.close()


def test_a_row_names_the_global_transaction(source: MariaDBSource, users: Users) -> None:
    users.run(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "CREATE TABLE belvedere_transactions (gid VARCHAR(50) PRIMARY KEY, sources TEXT)",
    )
    relation = source.describe("t")
    copy = Copy([relation])
    copy.position = source.prepare([relation])
    mark = "INSERT INTO belvedere_transactions VALUES ('g{}', 'shop, crm')"
    users.transaction("INSERT INTO t VALUES (1)", mark.format(1))
    users.run("INSERT INTO t VALUES (2)", mark.format(2))
    users.run("DELETE FROM belvedere_transactions")
    follow_until(source, copy, source.position())
    parts = [(t.part, len(t.changes)) for t in copy.transactions]
    both = ("shop", "crm")
    assert parts == [(Part("g1", both), 1), (None, 1), (Part("g2", both), 0)]


# ---------------------------------------------------------------- answers


def test_an_answer_with_keys_has_the_rows_that_agree(source: MariaDBSource, users: Users) -> None:
    """More keys than one statement takes, NULL among them, and texts that a collation mixes up."""
    key = "k VARCHAR(20) COLLATE utf8mb4_nopad_bin PRIMARY KEY"  # else 'k1' and 'k1 ' are one
    users.run(f"CREATE TABLE t ({key}, n INT, c VARCHAR(9))")
    users.run("INSERT INTO t SELECT CONCAT('k', seq), seq % 7, 'Abc' FROM seq_1_to_15000")
    users.run("INSERT INTO t VALUES ('K1', NULL, 'abc'), ('k1 ', 1, 'abc ')")
    relation = source.describe("t")
    keys = pa.table({"k": [f"k{i}" for i in range(5, 25_000)] + ["k1 ", None]})
    found = rows_of(relation, source.ask([Question(relation, ("k", "c"), keys)]).tables[0])
    assert sorted(found) == sorted([(f"k{i}",) for i in range(5, 15_001)] + [("k1 ",)])
    pairs = pa.table({"n": pa.array([1, None, 1], pa.int32()), "c": ["abc ", "abc", "Abc"]})
    found = rows_of(relation, source.ask([Question(relation, ("k", "n", "c"), pairs)]).tables[0])
    expected = {(f"k{i}",) for i in range(1, 15_001) if i % 7 == 1} | {("k1 ",)}
    assert set(found) == expected


def money(users: Users, accounts: int = 20) -> None:
    users.run("CREATE TABLE a (id INT PRIMARY KEY, m BIGINT)", "CREATE TABLE b LIKE a")
    for table in ("a", "b"):
        users.run(f"INSERT INTO {table} SELECT seq, 100 FROM seq_1_to_{accounts}")


def move_money(settings: Settings, seed: int, stop: threading.Event, done: list[int]) -> None:
    """Between the tables, the sum stays; some transactions in two phases, some are rolled back."""
    choice, users = random.Random(seed), Users(settings)
    while not stop.is_set():
        amount, one, two = choice.randint(1, 9), choice.randint(1, 20), choice.randint(1, 20)
        statements = (
            f"UPDATE a SET m = m - {amount} WHERE id = {one}",
            f"UPDATE b SET m = m + {amount} WHERE id = {two}",
        )
        name = f"'m{seed}-{len(done)}-{choice.random()}'"
        if choice.random() < 0.2:
            users.run(f"XA START {name}", *statements, f"XA END {name}", f"XA PREPARE {name}")
            users.run(f"XA COMMIT {name}")
        elif choice.random() < 0.1:
            users.run("BEGIN", *statements, "ROLLBACK")
        else:
            users.transaction(*statements)
        done.append(seed)
    users.close()


def test_answers_beside_writers_show_a_prefix_of_what_is_followed(
    settings: Settings, source: MariaDBSource, users: Users
) -> None:
    """Every state of the copy is balanced; the transactions that an answer shows make the answer."""
    money(users)
    relations = [source.describe("a"), source.describe("b")]
    copy = Copy(relations)
    copy.position = source.prepare(relations)
    start = source.ask([Question(r, r.schema.names) for r in relations])
    copy.rows = {
        r.name: rows_of(r, tables) for r, tables in zip(relations, start.tables, strict=True)
    }
    first = {name: dict(rows) for name, rows in copy.rows.items()}
    stop, done = threading.Event(), list[int]()
    writers = [
        threading.Thread(target=move_money, args=(settings, seed, stop, done)) for seed in range(3)
    ]
    for writer in writers:
        writer.start()
    answers: list[tuple[Answer, dict[str, Any]]] = []
    while len(answers) < 25:
        answer = source.ask([Question(r, r.schema.names) for r in relations])
        tables = zip(relations, answer.tables, strict=True)
        answers.append((answer, {r.name: rows_of(r, rows) for r, rows in tables}))
    stop.set()
    for writer in writers:
        writer.join()
    follow_until(source, copy, source.position())
    for answer, rows in answers:
        state = Copy(relations)
        state.rows = {name: dict(held) for name, held in first.items()}
        for transaction in copy.transactions:
            if source.shows(answer.marker, transaction.transaction) and not source.shows(
                start.marker, transaction.transaction
            ):
                state.apply(transaction)
        assert state.rows == rows
        assert sum(row["m"] for held in rows.values() for row in held.values()) == 4000
    assert len(copy.transactions) > 25


# ---------------------------------------------------------------- crashes


def count_up(
    settings: Settings, writer: int, stop: threading.Event, acknowledged: list[int]
) -> None:
    """Inserts of one row each, until told to stop; a server that is gone is waited for."""
    users: Users | None = None
    number = writer
    while not stop.is_set():
        try:
            users = users or Users(settings)
            users.run(f"INSERT INTO t VALUES ({number})")
            acknowledged.append(number)
        except pymysql.MySQLError:  # the server was killed: whether it was committed is not known
            users = None
            stop.wait(0.05)
        number += 3
    if users is not None:
        users.close()


def test_a_killed_server_loses_and_repeats_nothing(
    mariadb_server: Server, settings: Settings, source: MariaDBSource, users: Users
) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY)")
    relation = source.describe("t")
    copy = Copy([relation])
    copy.position = source.prepare([relation])
    stop, acknowledged = threading.Event(), [list[int](), list[int](), list[int]()]
    writers = [
        threading.Thread(target=count_up, args=(settings, i, stop, acknowledged[i]))
        for i in range(3)
    ]
    for writer in writers:
        writer.start()
    for _ in range(3):
        follow_some(source, copy, len(copy.transactions) + 150)
        mariadb_server.kill()
        mariadb_server.up()
    stop.set()
    for writer in writers:
        writer.join()
    follow_until(source, copy, source.position())
    found = [change["id"] for t in copy.transactions for change in t.changes[0].after.to_pylist()]
    assert len(found) == len(set(found))
    assert {(i,) for numbers in acknowledged for i in numbers} <= set(copy.rows["t"])
    assert copy.rows["t"] == all_rows(source, relation)


def follow_some(source: MariaDBSource, copy: Copy, count: int) -> None:
    monitor = source.follow(list(copy.relations.values()), copy.position)
    while len(copy.transactions) < count:
        copy.take(monitor.poll(1.0))
    monitor.close()


def poll_on(monitor: Monitor) -> None:
    for _ in range(100):
        monitor.poll(1.0)


def test_a_server_that_is_gone_is_said_and_found_again(
    mariadb_server: Server, source: MariaDBSource, users: Users
) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY)")
    relation = source.describe("t")
    copy = Copy([relation])
    copy.position = source.prepare([relation])
    monitor = source.follow([relation], copy.position)
    monitor.poll(0.1)
    mariadb_server.kill()
    with pytest.raises(SourceUnreachable):
        poll_on(monitor)
    monitor.close()
    with pytest.raises(SourceUnreachable):
        source.position()
    mariadb_server.up()
    Users(source._settings).run("INSERT INTO t VALUES (1)")
    follow_until(source, copy, source.position())
    assert copy.rows["t"] == {(1,): {"id": 1}}


# ---------------------------------------------------------------- gaps are errors


def test_a_purged_log_is_an_error(source: MariaDBSource, users: Users) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY)")
    relation = source.describe("t")
    position = source.prepare([relation])
    users.run("INSERT INTO t VALUES (1)", "FLUSH BINARY LOGS")
    users.run("SET GLOBAL slave_connections_needed_for_purge = 0")
    last = users.run("SHOW MASTER STATUS")[0][0]

    def purged() -> bool | None:
        """The server keeps what a follower that went away was reading, until it notices that."""
        users.run(f"PURGE BINARY LOGS TO '{last}'")
        return users.run("SHOW BINARY LOGS")[0][0] == last or None

    assert wait_until(purged, PATIENCE)
    with pytest.raises(SourceLost, match="purged"):
        source.follow([relation], position)


def test_a_log_that_was_reset_is_an_error_though_its_files_are_named_the_same(
    source: MariaDBSource, users: Users
) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY)")
    relation = source.describe("t")
    users.run("RESET MASTER", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    position = source.prepare([relation])
    users.run("RESET MASTER", "DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE id = 2")
    users.run(*(f"INSERT INTO t VALUES ({i})" for i in range(10)))
    with pytest.raises(SourceLost, match="reset"):
        source.follow([relation], position)


STATEMENTS: dict[str, Callable[[str], str]] = {
    "truncate": lambda t: f"TRUNCATE {t}",
    "alter": lambda t: f"ALTER TABLE {t} ADD COLUMN more INT",
    "rename": lambda t: f"RENAME TABLE {t} TO other_name",
    "drop": lambda t: f"DROP TABLE {t}",
    "replace": lambda t: f"CREATE OR REPLACE TABLE {t} (id INT PRIMARY KEY)",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_that_change_a_table_stop_it_and_nothing_else(
    source: MariaDBSource, users: Users, statement: str
) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    relations = [source.describe("t"), source.describe("u")]
    copy = Copy(relations)
    copy.position = source.prepare(relations)
    users.run("INSERT INTO t VALUES (1)", STATEMENTS[statement]("t"))
    users.run("CREATE INDEX i ON u (id)", "ANALYZE TABLE u", "INSERT INTO u VALUES (1)")
    follow_until(source, copy, source.position())
    assert [stopped.relation for stopped in copy.stopped] == ["t"]
    assert copy.rows == {"t": {(1,): {"id": 1}}, "u": {(1,): {"id": 1}}}


@pytest.mark.parametrize("setting", ["binlog_format = STATEMENT", "binlog_row_image = MINIMAL"])
def test_a_session_that_logs_less_than_rows_stops_the_relation(
    source: MariaDBSource, users: Users, setting: str
) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    relation = source.describe("t")
    copy = Copy([relation])
    copy.position = source.prepare([relation])
    users.run("INSERT INTO t VALUES (1, 1)", f"SET SESSION {setting}", "UPDATE t SET v = 2")
    follow_until(source, copy, source.position())
    assert [stopped.relation for stopped in copy.stopped] == ["t"]
    assert copy.rows == {"t": {(1,): {"id": 1, "v": 1}}}


REFUSED = {
    "no primary key": ("CREATE TABLE t (id INT)", "ADD PRIMARY KEY"),
    "prefix": ("CREATE TABLE t (k VARCHAR(50), PRIMARY KEY (k(5)))", "whole columns"),
    "myisam": ("CREATE TABLE t (id INT PRIMARY KEY) ENGINE = MyISAM", "InnoDB"),
    "aria": ("CREATE TABLE t (id INT PRIMARY KEY) ENGINE = Aria", "InnoDB"),
    "view": ("CREATE VIEW t AS SELECT 1 AS id", "is a view"),
    "versioned": ("CREATE TABLE t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING", "system versioned"),
    "cascade": (
        "CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE CASCADE)",
        "CASCADE",
    ),
    "set null": (
        "CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES p (id) ON UPDATE SET NULL)",
        "SET NULL",
    ),
    "not there": ("CREATE TABLE other (id INT PRIMARY KEY)", "no table 't'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_the_log_does_not_show_are_refused(
    source: MariaDBSource, users: Users, case: str
) -> None:
    users.run("CREATE TABLE p (id INT PRIMARY KEY)", REFUSED[case][0])
    with pytest.raises(SourceError, match=REFUSED[case][1]):
        source.describe("t")


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        ("binlog_format", "MIXED", "ROW"),
        ("binlog_row_image", "MINIMAL", "FULL"),
        ("binlog_row_metadata", "MINIMAL", "FULL"),
        ("sync_binlog", "0", "1"),
        ("log_bin_compress", "1", "0"),
        ("innodb_flush_log_at_trx_commit", "2", "1"),
    ],
)
def test_a_server_whose_log_has_gaps_is_refused(
    source: MariaDBSource, users: Users, setting: str, wrong: str, right: str
) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY)", f"SET GLOBAL {setting} = {wrong}")
    try:
        with pytest.raises(SourceError, match=f"{setting} = "):
            source.describe("t")
    finally:
        users.run(f"SET GLOBAL {setting} = {right}")
    assert isinstance(source.describe("t"), Relation)


def test_a_table_that_was_altered_since_it_was_described_is_not_prepared(
    source: MariaDBSource, users: Users
) -> None:
    users.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    relation = source.describe("t")
    users.run("ALTER TABLE t MODIFY v BIGINT")
    with pytest.raises(SourceError, match="altered"):
        source.prepare([relation])


def test_a_transaction_that_stays_prepared_is_named(
    source: MariaDBSource, users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.sources.mariadb.source._PREPARED_TRIES", 5)  # not ten seconds
    users.run("CREATE TABLE t (id INT PRIMARY KEY)")
    relation = source.describe("t")
    users.run(
        "XA START 'stays'", "INSERT INTO t VALUES (1)", "XA END 'stays'", "XA PREPARE 'stays'"
    )
    with pytest.raises(SourceError, match="stays"):
        source.prepare([relation])
    users.run("XA COMMIT 'stays'")
    assert source.prepare([relation])


def test_wrong_passwords_and_rights_are_said_without_the_password(settings: Settings) -> None:
    wrong = Settings(settings.host, settings.database, settings.user, "not it", settings.port)
    with pytest.raises(SourceError, match="REPLICATION SLAVE") as error:
        MariaDBSource(wrong).relations()
    assert "not it" not in str(error.value)
    assert "not it" not in repr(wrong)
