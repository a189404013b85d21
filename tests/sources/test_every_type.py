"""Views over a table with a column of every type, while random transactions change it and somebody
else alters other tables: each view is what the source itself answers.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.sources.base import Source
from belvedere.sources.servers import Server
from tests.sources.backends import Edges, ServerBackend, Writer, new_mariadb, new_postgres
from tests.sources.copies import rows_there

pytestmark = pytest.mark.sources

PATIENCE = 120.0
KEYS, ROUNDS, TRANSACTIONS = 8, 3, 15
BACKENDS: dict[str, Callable[[Server], ServerBackend]] = {
    "postgres": new_postgres,
    "mariadb": new_mariadb,
}
DDL = (
    "CREATE TABLE aside (id INT PRIMARY KEY, note VARCHAR(9))",
    "INSERT INTO aside VALUES (1, 'x')",
    "ALTER TABLE aside ADD COLUMN more INT",
    "CREATE INDEX by_note ON aside (note)",
    "UPDATE aside SET more = 7",
    "TRUNCATE TABLE aside",
    "ALTER TABLE aside DROP COLUMN note",
    "DROP TABLE aside",
)


@contextmanager
def altering(writer: Writer) -> Iterator[None]:
    """One statement after the other, until the end of the block."""
    stop = threading.Event()
    rounds = [0]

    def alter() -> None:
        while not stop.is_set() or not rounds[0]:
            writer.run(*DDL)
            rounds[0] += 1

    thread = threading.Thread(target=alter)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert rounds[0]


def random_transaction(chance: random.Random, types: Edges) -> list[str]:
    def value(kind: str) -> str:
        return "NULL" if chance.random() < 0.15 else chance.choice(types[kind])[0]

    statements = []
    for _ in range(chance.randrange(1, 5)):
        key = chance.randrange(KEYS)
        some = chance.sample(list(enumerate(types)), 3)
        changes = ", ".join(f"c{at} = {value(kind)}" for at, kind in some)
        row = f"INSERT INTO typed VALUES ({key}, {', '.join(map(value, types))})"
        remove = f"DELETE FROM typed WHERE id = {key}"
        statements += chance.choice(
            [
                [remove],
                [remove, row],
                [remove, row, remove],
                [f"UPDATE typed SET {changes} WHERE id <= {key}"],
                [
                    f"DELETE FROM typed WHERE id = {key + KEYS}",
                    f"UPDATE typed SET id = id + {KEYS} WHERE id = {key}",
                ],
            ]
        )
    return ["BEGIN", *statements, "ROLLBACK" if chance.random() < 0.1 else "COMMIT"]


def shown(db: Database, view: str) -> list[str]:
    return sorted(str(sorted(row.items())) for row in db.view(view).to_arrow().to_pylist())


def there(source: Source) -> list[str]:
    rows: list[dict[str, Any]] = list(rows_there(source, source.describe("typed")).values())
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("kind", BACKENDS)
def test_views_are_what_the_source_answers_whatever_its_types_and_its_neighbours(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(f"{kind}_server")
    backend: ServerBackend = BACKENDS[kind](server)
    types, writer, other = backend.types(), backend.writer(), backend.writer()
    columns = ", ".join(f"c{at} {column}" for at, column in enumerate(types))
    writer.run(*backend.declarations, f"CREATE TABLE typed (id INT PRIMARY KEY, {columns})")
    monkeypatch.setenv("OF_THE_TEST", server.address.password)
    address, source = server.address, backend.open()
    names = ", ".join(["id", *(f"c{at}" for at in range(len(types)))])
    with Database(str(tmp_path / "db"), slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql(
            f"CREATE SOURCE s TYPE {kind} OPTIONS (host = '{address.host}', port ="
            f" '{address.port}', user = '{address.user}', database ="
            f" '{backend.database}', password = env('OF_THE_TEST'))"
        )
        db.sql(f"CREATE MATERIALIZED VIEW copied AS SELECT {names} FROM s.typed")
        db.sql(
            "CREATE MATERIALIZED VIEW kept WITH (algorithm = 'asof') AS"
            f" SELECT {names} FROM s.typed"
        )
        chance = random.Random(5)
        with altering(other):
            for _ in range(ROUNDS):
                for _ in range(TRANSACTIONS):
                    writer.run(*random_transaction(chance, types))
                db.catch_up(timeout=PATIENCE)
                assert shown(db, "copied") == there(source)
                assert shown(db, "kept") == there(source)
        for view in ("copied", "kept"):
            db.sql(f"DROP MATERIALIZED VIEW {view}")
        db.sql("DROP SOURCE s")
    source.close()
    for each in (writer, other):
        each.close()
