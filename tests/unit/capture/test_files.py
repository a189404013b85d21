"""Files of others in a view, beside a table of ours."""

from __future__ import annotations

from pathlib import Path

from belvedere.database import Database
from belvedere.epochs.local import LocalRunner

PATIENCE = 60.0


def write(path: Path, text: str) -> None:
    """As whoever owns the file should: it appears as a whole."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def test_a_view_follows_files_beside_a_table_of_ours(
    tmp_path: Path,
) -> None:
    prices = tmp_path / "prices.csv"
    write(prices, "item,price\n1,10\n2,20\n")
    with Database(str(tmp_path / "db"), slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE sold (id BIGINT, item BIGINT, PRIMARY KEY (id))")
        db.table("sold").put_many([{"id": i, "item": i % 2 + 1} for i in range(4)])
        db.sql(
            f"CREATE SOURCE lists TYPE files OPTIONS (path = '{prices}', key = 'item', every ="
            f" '50 ms', kept = '{tmp_path / 'kept'}')"
        )
        db.sql(
            "CREATE MATERIALIZED VIEW worth AS SELECT sum(p.price) AS total FROM sold s JOIN"
            " lists.prices p ON s.item = p.item"
        )
        db.catch_up(timeout=PATIENCE)
        assert db.sql("SELECT total FROM worth").to_pylist() == [{"total": 60}]
        write(prices, "item,price\n1,11\n")
        db.catch_up(timeout=PATIENCE)
        assert db.sql("SELECT total FROM worth").to_pylist() == [{"total": 22}]
        assert db.sql("SELECT item, price FROM lists.prices").to_pylist() == [
            {"item": 1, "price": 11}
        ]
        db.sql("DROP MATERIALIZED VIEW worth")
        db.sql("DROP SOURCE lists")
        assert not list((tmp_path / "kept").glob("*.parquet"))
