"""What every source promises, on a real server: the laws of sources/base.py."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from belvedere.errors import SourceUnreachable
from belvedere.sources.base import Answer, Question, Relation, Source, SourceTransaction
from belvedere.sources.servers import Server
from tests.sources.backends import Backend, ServerBackend, Writer, new_mariadb, new_postgres
from tests.sources.copies import (
    Copy,
    Rows,
    by_key,
    catch_up,
    poll_until,
    rows_there,
    same_rows,
)
from tests.sources.file_writers import FilesBackend

pytestmark = pytest.mark.sources

SERVERS: dict[str, Callable[[Server], ServerBackend]] = {
    "postgres": new_postgres,
    "mariadb": new_mariadb,
}

ITEMS = "CREATE TABLE items (id INT, part INT, name VARCHAR(100), amount DECIMAL(12, 2), PRIMARY KEY (id, part))"
NAMES = "CREATE TABLE names (name VARCHAR(20) PRIMARY KEY, item INT)"
ACCOUNTS = "CREATE TABLE accounts (id INT PRIMARY KEY, amount INT NOT NULL)"


@pytest.fixture(params=[*SERVERS, "files"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "files":
        return FilesBackend(tmp_path)
    return SERVERS[request.param](request.getfixturevalue(f"{request.param}_server"))


# Where a test is about types of a server, about its process, or about writers that never pause.
of_servers = pytest.mark.parametrize("backend", SERVERS, indirect=True)
# The relation of a test, where the source has one only; `items` if it does not say.
of_accounts = pytest.mark.parametrize("source", ["accounts"], indirect=True, ids=["-"])


@pytest.fixture
def source(backend: Backend, request: pytest.FixtureRequest) -> Iterator[Source]:
    made = backend.open(getattr(request, "param", "items"))
    yield made
    made.remove()
    made.close()


@pytest.fixture
def writer(backend: Backend) -> Iterator[Writer]:
    made = backend.writer()
    yield made
    made.close()


def start(source: Source, *names: str) -> Copy:
    """A copy of relations that are empty."""
    relations = [source.describe(name) for name in names]
    return Copy(relations, source.prepare(relations))


def assert_same(source: Source, copy: Copy) -> None:
    for name, relation in copy.relations.items():
        assert same_rows(copy.rows[name], rows_there(source, relation)), name


# ---------------------------------------------------------------- transactions


def random_statement(chance: random.Random) -> str:
    one, two, part = chance.randrange(6), chance.randrange(6), chance.randrange(2)
    text = chance.choice(["NULL", "''", "'ä'", "'x'"])
    return chance.choice(
        [
            f"DELETE FROM items WHERE id = {one}",
            f"DELETE FROM names WHERE item = {one}",
            f"UPDATE items SET amount = amount + 1, name = {text} WHERE id <= {one}",
            f"UPDATE items SET id = id + 10 * {two + 1} WHERE id = {one}",
            f"UPDATE items SET part = 1 - part + 2 * {part} WHERE id = {one} AND part = {part}",
            f"UPDATE names SET item = {two} WHERE item = {one}",
            f"INSERT INTO names VALUES ('n{chance.randrange(1 << 40)}', {one})",
            f"DELETE FROM items WHERE id = {one} AND part = {part}",
        ]
    )


def random_insert(chance: random.Random) -> tuple[str, str]:
    """In place of what is there: a deletion and an insertion of the same key."""
    one, part = chance.randrange(6), chance.randrange(2)
    return (
        f"DELETE FROM items WHERE id = {one} AND part = {part}",
        f"INSERT INTO items VALUES ({one}, {part}, 'n{chance.randrange(9)}', {chance.randrange(99)}.5)",
    )


def random_transaction(chance: random.Random) -> list[str]:
    statements = ["BEGIN"]
    for _ in range(chance.randrange(6)):
        if chance.random() < 0.2:
            inside = [random_statement(chance), *random_insert(chance)]
            undone = chance.random() < 0.5
            end = "ROLLBACK TO SAVEPOINT s" if undone else "RELEASE SAVEPOINT s"
            statements += ["SAVEPOINT s", *inside, end]
        elif chance.random() < 0.5:
            statements += random_insert(chance)
        else:
            statements.append(random_statement(chance))
    return [*statements, "ROLLBACK" if chance.random() < 0.1 else "COMMIT"]


def run_whole(writer: Writer, statements: list[str]) -> None:
    """A statement that hits a key that is there fails, and with it the transaction."""
    try:
        writer.run(*statements)
    except Exception:  # of whatever client: the server refused, and nothing of it may be followed
        writer.run("ROLLBACK")


def followed(backend: Backend) -> tuple[str, ...]:
    return ("items", "names") if backend.has_transactions else ("items",)


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_that_is_followed_is_the_table(
    backend: Backend, source: Source, writer: Writer, seed: int
) -> None:
    chance = random.Random(seed)
    writer.run(ITEMS, NAMES)
    copy = start(source, *followed(backend))
    for _ in range(3):
        for _ in range(40):
            run_whole(writer, random_transaction(chance))
        catch_up(source, copy)
        assert_same(source, copy)
    least = 40 if backend.has_transactions else 2
    assert len({t.transaction for t in copy.transactions}) == len(copy.transactions) > least
    assert all(t.changes for t in copy.transactions)


def test_transactions_are_the_same_whenever_they_are_followed(
    backend: Backend, source: Source, writer: Writer
) -> None:
    chance = random.Random(7)
    writer.run(ITEMS, NAMES)
    copy = start(source, *followed(backend))
    relations, begin = list(copy.relations.values()), copy.position
    for _ in range(25):
        run_whole(writer, random_transaction(chance))
        end = source.position()
    monitor = source.follow(relations, begin)
    first: list[SourceTransaction] = []
    position = begin
    while not source.covers(position, end):
        for event in monitor.poll(1.0):
            position = event.position
            first += [event] if isinstance(event, SourceTransaction) else []
    monitor.close()  # nothing was confirmed
    assert len(first) > 10
    for at in (0, len(first) // 2, len(first) - 1):
        again = Copy(relations, first[at].position)
        again.rows = {r.name: _applied(r, first[: at + 1]) for r in relations}
        monitor = source.follow(relations, again.position)
        while not source.covers(again.position, end):
            again.take(monitor.poll(1.0))
        monitor.close()
        assert [t.transaction for t in again.transactions] == [
            t.transaction for t in first[at + 1 :]
        ]
        assert_same(source, again)


def _applied(relation: Relation, transactions: list[SourceTransaction]) -> Rows:
    copy = Copy([relation], "")
    for transaction in transactions:
        own = tuple(c for c in transaction.changes if c.relation == relation.name)
        copy.take([SourceTransaction("", "", 0.0, own)])
    return copy.rows[relation.name]


@of_servers
def test_values_at_the_edges_of_their_types(
    backend: ServerBackend, source: Source, writer: Writer
) -> None:
    types = backend.types()
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(types))
    writer.run(*backend.declarations)
    writer.run(f"CREATE TABLE typed (id INT PRIMARY KEY, {columns})")
    copy = start(source, "typed")
    longest = max(map(len, types.values()))
    expected: dict[int, list[Any]] = {0: [None] * len(types)}
    writer.run("INSERT INTO typed (id) VALUES (0)")
    for row in range(1, longest + 1):
        chosen = [edges[row % len(edges)] for edges in types.values()]
        writer.run(f"INSERT INTO typed VALUES ({row}, {', '.join(text for text, _ in chosen)})")
        expected[row] = [value for _, value in chosen]
    catch_up(source, copy)
    assert_same(source, copy)
    for (row,), found in copy.rows["typed"].items():
        assert repr(_plain(list(found.values())[1:])) == repr(_plain(expected[row]))
    writer.run("UPDATE typed SET id = id + 100", "DELETE FROM typed WHERE id > 102")
    catch_up(source, copy)
    assert_same(source, copy)


def _plain(values: list[Any]) -> list[Any]:
    """Moments of one zone."""
    return [v.timestamp() if hasattr(v, "timestamp") else v for v in values]


@of_servers
def test_values_are_found_by_any_column(
    backend: ServerBackend, source: Source, writer: Writer
) -> None:
    types = backend.types()
    writer.run(*backend.declarations)
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(types))
    writer.run(
        f"CREATE TABLE typed (id INT PRIMARY KEY, {columns})", "INSERT INTO typed (id) VALUES (0)"
    )
    chosen = ", ".join(edges[-1][0] for edges in types.values())
    writer.run(f"INSERT INTO typed VALUES (1, {chosen})")
    relation = source.describe("typed")
    row = rows_there(source, relation)[(1,)]
    for column in relation.schema.columns:
        wanted = pa.table({column.name: pa.array([row[column.name], None], column.type.arrow)})
        answer = source.ask([Question(relation, ("id",), wanted)])
        assert list(by_key(relation, answer.tables[0])) == [(1,)], column


def test_rows_are_found_by_several_columns_at_once(source: Source, writer: Writer) -> None:
    writer.run(ITEMS)
    writer.run("INSERT INTO items VALUES (1, 1, 'it''s', 1), (1, 2, 'b\\', 2), (2, 1, '\"', 3)")
    relation = source.describe("items")
    source.prepare([relation])
    keys = pa.table(
        {"name": ["it's", "b\\", '"', "nobody"], "part": pa.array([1, 1, 1, 1], pa.int32())}
    )
    question = Question(relation, ("amount",), keys)
    none = Question(relation, ("name",), keys.slice(0, 0))
    answer = source.ask([question, none])
    tables = [list(each) for each in answer.tables]
    assert sorted(by_key(relation, iter(tables[0]))) == [(1, 1), (2, 1)]
    assert tables[0][0].column_names == ["id", "part", "amount"]
    assert sum(table.num_rows for table in tables[1]) == 0


@of_accounts
def test_a_large_transaction_comes_as_one(source: Source, writer: Writer) -> None:
    count = 60_000
    writer.run(ACCOUNTS)
    copy = start(source, "accounts")
    rows = ", ".join(f"({at}, {at % 7})" for at in range(count))
    writer.run("BEGIN", f"INSERT INTO accounts VALUES {rows}")
    writer.run(
        "UPDATE accounts SET amount = 1", "UPDATE accounts SET amount = 2 WHERE id > 5", "COMMIT"
    )
    catch_up(source, copy)
    (transaction,) = copy.transactions
    assert transaction.changes[0].before.num_rows == 0
    assert transaction.changes[0].after.num_rows == count
    assert_same(source, copy)


@of_accounts
def test_a_quiet_source_comes_to_its_end(source: Source, writer: Writer) -> None:
    """Also after what leaves nothing to follow: a rollback, other tables, nothing at all."""
    writer.run(ACCOUNTS, ITEMS)
    copy = start(source, "accounts")
    for statements in (
        ["BEGIN", "INSERT INTO accounts VALUES (1, 1)", "ROLLBACK"],
        ["INSERT INTO items VALUES (1, 1, 'a', 1)"],
        [],
        ["BEGIN", "INSERT INTO accounts VALUES (1, 1)", "DELETE FROM accounts", "COMMIT"],
    ):
        writer.run(*statements)
        catch_up(source, copy)
    assert copy.transactions == []
    assert source.lag(copy.position).bytes < 1 << 20


# ---------------------------------------------------------------- answers


class Movers:
    """Writers that move amounts between accounts, which keep their sum."""

    def __init__(self, backend: Backend, writers: int, accounts: int) -> None:
        self._backend, self._accounts = backend, accounts
        self._stop = threading.Event()
        self.failed: list[BaseException] = []
        self._threads = [threading.Thread(target=self._move, args=(at,)) for at in range(writers)]

    def __enter__(self) -> Movers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self.failed == []

    def _move(self, seed: int) -> None:
        chance = random.Random(seed)
        try:
            writer = self._backend.writer()
            try:
                self._move_until_stopped(writer, chance)
            finally:
                writer.close()
        except BaseException as error:  # told to the test at the end
            self.failed.append(error)

    def _move_until_stopped(self, writer: Writer, chance: random.Random) -> None:
        while not self._stop.is_set():
            one, two = sorted(chance.sample(range(self._accounts), 2))  # in one order: no deadlock
            writer.run(
                "BEGIN",
                f"UPDATE accounts SET amount = amount - 1 WHERE id = {one}",
                f"UPDATE accounts SET amount = amount + 1 WHERE id = {two}",
                "COMMIT",
            )


def take_back(rows: Rows, relation: Relation, later: list[SourceTransaction]) -> Rows:
    """Rows of an answer without what some transactions did: per key the row before the first."""
    first: dict[Any, dict[str, Any] | None] = {}
    for transaction in later:
        copy_before = {}
        for change in transaction.changes:
            copy_before.update(by_key(relation, iter([change.before])))
            for key in (*copy_before, *by_key(relation, iter([change.after]))):
                first.setdefault(key, copy_before.get(key))
    kept = {key: row for key, row in rows.items() if key not in first}
    return kept | {key: row for key, row in first.items() if row is not None}


@of_servers
def test_answers_agree_with_the_log(backend: Backend, source: Source, writer: Writer) -> None:
    """Asked again until it shows what was followed, and used when all that it shows was followed,
    an answer can be taken back to the copy at any place in between.
    """
    writer.run(ACCOUNTS)
    copy = start(source, "accounts")
    relation = copy.relations["accounts"]
    writer.run(f"INSERT INTO accounts VALUES {', '.join(f'({at}, 100)' for at in range(8))}")
    catch_up(source, copy)
    monitor = source.follow([relation], copy.position)
    taken_back = 0
    with Movers(backend, writers=3, accounts=8):
        for _ in range(25):
            copy.take(monitor.poll(1.0))
            before = {k: dict(row) for k, row in copy.rows["accounts"].items()}
            received = len(copy.transactions)
            answer, rows = fresh_answer(source, relation, copy)
            poll_until(source, monitor, copy, answer.end)
            later = copy.transactions[received:]
            shown = [t for t in later if source.shows(answer.marker, t.transaction)]
            assert sum(row["amount"] for row in rows.values()) == 800
            assert take_back(rows, relation, shown) == before
            taken_back += len(shown)
    monitor.close()
    assert taken_back > 0
    catch_up(source, copy)
    assert_same(source, copy)


def fresh_answer(source: Source, relation: Relation, copy: Copy) -> tuple[Answer, Rows]:
    while True:
        answer = source.ask([Question(relation, relation.schema.names)])
        rows = by_key(relation, answer.tables[0])
        if all(source.shows(answer.marker, t.transaction) for t in copy.transactions[-1000:]):
            return answer, rows


# ---------------------------------------------------------------- crashes


@of_servers
def test_what_was_acknowledged_is_followed_once_across_crashes(
    backend: ServerBackend, source: Source, writer: Writer
) -> None:
    """The server is killed under writers; a commit whose answer was lost may be there, or not."""
    writer.run("CREATE TABLE events (id INT PRIMARY KEY, writer INT NOT NULL)")
    copy = start(source, "events")
    acknowledged: list[int] = []
    tried = 0
    for crash in range(3):
        begin, done = len(acknowledged), threading.Event()
        threads = [
            threading.Thread(target=_write_events, args=(writer, number, acknowledged, done))
            for number, writer in enumerate([backend.writer() for _ in range(3)], 10 * crash)
        ]
        for thread in threads:
            thread.start()
        monitor = source.follow(list(copy.relations.values()), copy.position)
        try:
            while len(acknowledged) < begin + 100:
                copy.take(monitor.poll(0.2))
                monitor.confirm(copy.position)
            backend.server.kill()
            done.set()
            while True:
                copy.take(monitor.poll(0.2))
        except SourceUnreachable:
            tried += 1
        monitor.close()
        for thread in threads:
            thread.join()
        backend.server.up()
    catch_up(source, copy)
    followed = [
        row["id"] for t in copy.transactions for c in t.changes for row in c.after.to_pylist()
    ]
    assert len(set(followed)) == len(followed)
    assert set(acknowledged) <= set(followed)
    assert len(followed) <= len(acknowledged) + 3 * tried
    assert_same(source, copy)
    assert tried == 3


def _write_events(
    writer: Writer, writer_number: int, acknowledged: list[int], done: threading.Event
) -> None:
    number = writer_number * 1_000_000
    try:
        while not done.is_set():
            number += 1
            writer.run(f"INSERT INTO events VALUES ({number}, {writer_number})")
            acknowledged.append(number)
    except Exception:  # of whatever client: the server is gone, as it should be
        return
    finally:
        writer.close()
