"""What docs/sources.md shows: its statements run against a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.sources.servers import Server
from tests.integration.test_docs import DOCS, blocks

pytestmark = pytest.mark.sources

PATIENCE = 180.0


def test_the_page_leads_to_a_live_view(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres_server.address
    monkeypatch.setenv("SHOP_PASSWORD", address.password)
    (text,) = [b.text for b in blocks(DOCS / "sources.md") if b.language == "sql"]
    statements = text.replace("'db1'", f"'{address.host}'").replace("'5432'", f"'{address.port}'")
    login = f"host={address.host} port={address.port} dbname={address.database}"
    users = psycopg.connect(
        f"{login} user={address.user} password={address.password}", autocommit=True
    )
    with users, Database(str(tmp_path / "db"), slots=2) as db:
        db._runner = LocalRunner(db.store)
        users.execute("DROP TABLE IF EXISTS orders, customers")
        users.execute("CREATE TABLE customers (id bigint PRIMARY KEY, name text)")
        users.execute("CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount bigint)")
        users.execute("INSERT INTO customers VALUES (1, 'ada')")
        users.execute("INSERT INTO orders VALUES (1, 1, 30), (2, 1, 5)")
        db.sql(statements)
        db.catch_up(timeout=PATIENCE)
        assert db.sql("SELECT * FROM spent").to_pylist() == [
            {"name": "ada", "total": 35, "orders": 2}
        ]
        pipeline = db.start()
        with db.session(PATIENCE) as mine:
            users.execute("DELETE FROM orders WHERE id = 2")
            mine.wrote()
            assert mine.sql("SELECT total FROM spent").to_pylist() == [{"total": 30}]
        pipeline.stop()
        db.sql("DROP MATERIALIZED VIEW spent")
        db.sql("DROP SOURCE shop")
        left = users.execute("SELECT count(*) FROM pg_replication_slots").fetchone()
        assert left == (0,)
