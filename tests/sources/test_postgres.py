"""What can go wrong with a PostgreSQL that is followed: refused, or said, and never passed over."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from belvedere.errors import SourceError, SourceLost
from belvedere.sources.base import Part, Source
from belvedere.sources.postgres import open_source
from belvedere.sources.servers import Server
from tests.sources.backends import PostgresBackend, PostgresWriter, new_postgres
from tests.sources.copies import Copy, catch_up, rows_there, same_rows

pytestmark = pytest.mark.sources


@pytest.fixture
def backend(postgres_server: Server) -> PostgresBackend:
    return new_postgres(postgres_server)


@pytest.fixture
def source(backend: PostgresBackend) -> Iterator[Source]:
    made = backend.open()
    yield made
    made.remove()
    made.close()


@pytest.fixture
def writer(backend: PostgresBackend) -> Iterator[PostgresWriter]:
    made = backend.writer()
    yield made
    made.close()


def start(source: Source, *names: str) -> Copy:
    relations = [source.describe(name) for name in names]
    return Copy(relations, source.prepare(relations))


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ("CREATE TABLE t (a int)", "ADD PRIMARY KEY"),
        ("CREATE TABLE t (a int PRIMARY KEY, b numeric)", "give it a size"),
        ("CREATE TABLE t (a int PRIMARY KEY, b numeric(40, 2))", "numeric\\(40,2\\)"),
        ("CREATE TABLE t (a int PRIMARY KEY, b interval)", "store seconds"),
        ("CREATE TABLE t (a int PRIMARY KEY, b int[])", "JSONB"),
        (
            "CREATE TABLE t (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a + 1) STORED)",
            "generated",
        ),
        ("CREATE TABLE t (a int PRIMARY KEY) PARTITION BY HASH (a)", "Follow the partitions"),
        ("CREATE VIEW t AS SELECT 1 AS a", "is a view"),
        ("CREATE UNLOGGED TABLE t (a int PRIMARY KEY)", "SET LOGGED"),
        ("CREATE TABLE t (a int PRIMARY KEY DEFERRABLE)", "NOT DEFERRABLE"),
        ("CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE c () INHERITS (t)", "inherit"),
        ("SELECT 1", "there is no table"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_advice(
    source: Source, writer: PostgresWriter, statements: str, said: str
) -> None:
    writer.run(statements)
    with pytest.raises(SourceError, match=said):
        source.describe("t")


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("TRUNCATE orders", "truncated"),
        ("ALTER TABLE orders ADD b int", "altered"),
        ("ALTER TABLE orders ALTER a TYPE bigint", "altered"),
        ("ALTER TABLE orders RENAME TO old", "renamed"),
        ("ALTER TABLE orders REPLICA IDENTITY DEFAULT", "REPLICA IDENTITY FULL"),
        ("UPDATE orders SET day = 'infinity'", "no DATE here"),
    ],
)
def test_what_the_log_cannot_tell_stops_the_relation_and_no_other(
    source: Source, writer: PostgresWriter, statement: str, why: str
) -> None:
    writer.run("CREATE TABLE orders (id int PRIMARY KEY, a int, day date)")
    writer.run("CREATE TABLE other (id int PRIMARY KEY)")
    copy = start(source, "orders", "other")
    writer.run("INSERT INTO orders VALUES (1, 2)", "INSERT INTO other VALUES (1)")
    catch_up(source, copy)
    monitor = source.follow(list(copy.relations.values()), copy.position)
    end = copy.position
    for number, each in enumerate(
        [statement, "UPDATE old SET a = 3" if "old" in statement else "UPDATE orders SET a = 3"]
    ):
        writer.run(each, f"INSERT INTO other VALUES ({number + 2})")
        end = source.position()
        while not source.covers(copy.position, end):
            copy.take(monitor.poll(1.0))
    monitor.close()
    (stopped,) = copy.stopped
    assert stopped.relation == "orders"
    assert why in stopped.reason
    assert copy.rows["orders"] == {(1,): {"id": 1, "a": 2, "day": None}}
    assert len(copy.rows["other"]) == 3


def test_a_table_that_was_made_anew_is_not_taken_for_the_old_one(
    source: Source, writer: PostgresWriter
) -> None:
    writer.run("CREATE TABLE orders (id int PRIMARY KEY)")
    copy = start(source, "orders")
    writer.run("DROP TABLE orders", "CREATE TABLE orders (id int PRIMARY KEY)")
    writer.run("INSERT INTO orders VALUES (1)")
    catch_up(source, copy)
    assert [s.relation for s in copy.stopped] == ["orders"]


def test_large_values_that_did_not_change(source: Source, writer: PostgresWriter) -> None:
    writer.run("CREATE TABLE t (id int PRIMARY KEY, large text, n int)")
    writer.run("ALTER TABLE t ALTER large SET STORAGE EXTERNAL")
    copy = start(source, "t")
    writer.run("INSERT INTO t SELECT g, repeat('x' || g, 5000), 0 FROM generate_series(1, 3) g")
    writer.run("UPDATE t SET n = 1", "UPDATE t SET id = id + 10, n = 2")
    catch_up(source, copy)
    assert same_rows(copy.rows["t"], rows_there(source, copy.relations["t"]))


def test_names_with_a_schema_and_names_that_need_quotes(
    source: Source, writer: PostgresWriter
) -> None:
    writer.run("CREATE SCHEMA sales", 'CREATE TABLE sales.orders ("Id" int PRIMARY KEY)')
    writer.run('CREATE TABLE "Odd ""name" (id int PRIMARY KEY, "it\'s" text)')
    names = ["sales.orders", 'Odd "name']
    assert sorted(source.relations()) == sorted(names)
    copy = start(source, *names)
    writer.run(
        "INSERT INTO sales.orders VALUES (1)", """INSERT INTO "Odd ""name" VALUES (2, 'x')"""
    )
    catch_up(source, copy)
    for name in names:
        assert len(copy.rows[name]) == 1
        assert same_rows(copy.rows[name], rows_there(source, copy.relations[name]))


def test_a_lost_slot_is_said_and_prepare_makes_another(
    source: Source, writer: PostgresWriter, backend: PostgresBackend
) -> None:
    writer.run("CREATE TABLE t (id int PRIMARY KEY)")
    copy = start(source, "t")
    writer.run(f"SELECT pg_drop_replication_slot('belvedere_{backend.database}')")
    with pytest.raises(SourceLost, match="Load its relations again"):
        source.follow(list(copy.relations.values()), copy.position)
    copy.position = source.prepare(list(copy.relations.values()))
    writer.run("INSERT INTO t VALUES (1)")
    catch_up(source, copy)
    assert list(copy.rows["t"]) == [(1,)]


def test_a_position_before_what_was_confirmed_is_lost(
    source: Source, writer: PostgresWriter
) -> None:
    writer.run("CREATE TABLE t (id int PRIMARY KEY)")
    copy = start(source, "t")
    begin = copy.position
    writer.run("INSERT INTO t VALUES (1)")
    catch_up(source, copy)
    with pytest.raises(SourceLost, match="told that all before"):
        source.follow(list(copy.relations.values()), begin)


def test_a_relation_that_is_added_while_somebody_writes_it_is_followed_whole(
    source: Source, writer: PostgresWriter, backend: PostgresBackend
) -> None:
    """`prepare` waits for the transaction: what it wrote before would not be told."""
    writer.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    writer.run("ALTER TABLE u REPLICA IDENTITY FULL")
    copy = start(source, "t")
    other = backend.writer()
    writer.run("BEGIN", "INSERT INTO u VALUES (1)")
    relations = [*copy.relations.values(), source.describe("u")]
    prepared: list[str] = []
    thread = threading.Thread(target=lambda: prepared.append(source.prepare(relations)))
    thread.start()
    while not other.rows("SELECT 1 FROM pg_publication_tables WHERE tablename = 'u'"):
        assert thread.is_alive()
    before = source.position()
    writer.run("COMMIT")
    thread.join()
    assert source.covers(prepared[0], before)
    assert len(rows_there(source, relations[1])) == 1
    other.close()


def test_parts_of_global_transactions(source: Source, writer: PostgresWriter) -> None:
    writer.run("CREATE TABLE t (id int PRIMARY KEY)")
    writer.run("CREATE TABLE belvedere_transactions (gid text PRIMARY KEY, sources text)")
    copy = start(source, "t")
    writer.run(
        "BEGIN",
        "INSERT INTO belvedere_transactions VALUES ('g7', 'shop, crm')",
        "INSERT INTO t VALUES (1)",
        "COMMIT",
        "DELETE FROM belvedere_transactions",
        "INSERT INTO t VALUES (2)",
    )
    catch_up(source, copy)
    assert [t.part for t in copy.transactions] == [Part("g7", ("shop", "crm")), None]


def test_a_user_without_rights_is_told_what_to_run(
    backend: PostgresBackend, writer: PostgresWriter, source: Source
) -> None:
    name = f"u_{backend.database}"
    writer.run("CREATE TABLE t (id int PRIMARY KEY)", f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    guest = open_source("guest", {**backend.options(), "user": name, "password": "x"})
    with pytest.raises(SourceError, match="GRANT SELECT"):
        guest.describe("t")
    writer.run(f"GRANT SELECT ON t TO {name}")
    with pytest.raises(SourceError, match="REPLICA IDENTITY FULL"):
        guest.describe("t")
    writer.run("ALTER TABLE t REPLICA IDENTITY FULL")
    relation = guest.describe("t")
    with pytest.raises(SourceError, match="CREATE PUBLICATION"):
        guest.prepare([relation])
    writer.run("CREATE PUBLICATION belvedere_guest FOR TABLE t")
    with pytest.raises(SourceError, match="REPLICATION"):
        guest.prepare([relation])
    writer.run(f"ALTER ROLE {name} REPLICATION")
    copy = Copy([relation], guest.prepare([relation]))
    writer.run("INSERT INTO t VALUES (1)")
    catch_up(guest, copy)
    assert len(copy.rows["t"]) == 1
    guest.remove()
    guest.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "h"}, "needs the options database, user"),
        ({"host": "h", "database": "d", "user": "u", "prot": "1"}, "no option prot"),
        ({"host": "h", "database": "d", "user": "u", "port": "x"}, "no port"),
        ({"host": "h", "database": "d", "user": "u", "slot": "A"}, "no name of a slot"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        open_source("shop", options)


def test_nothing_is_left_behind(source: Source, writer: PostgresWriter) -> None:
    writer.run("CREATE TABLE t (id int PRIMARY KEY)")
    start(source, "t")
    source.remove()
    source.remove()
    assert writer.rows("SELECT 1 FROM pg_publication") == []
    assert (
        writer.rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database()") == []
    )
