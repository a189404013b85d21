"""Epochs, loading steps, batches and transactions are bounded in bytes as well as in rows: large
rows are no problem.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import belvedere
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.intent import LOAD, Intent
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack
from belvedere.epochs.settings import Settings
from belvedere.errors import SqlError
from belvedere.stores.base import LogBlock, Store

MAX_BYTES = 20_000
MEGABYTE = 1 << 20
VIEWS = {
    "whole": "SELECT id, s, g FROM t",
    "counts": "SELECT g, count(*) AS n, sum(length(s)) AS total FROM t GROUP BY g",
}
OVERHEAD = 1.5  # offsets and headers of what is stored


class Measuring(LocalRunner):
    """Notes how many bytes every epoch reads, and whether it could have been smaller."""

    def run(self, intent: Intent) -> list[Ack]:
        if intent.load is not None and intent.kind == LOAD:
            low, high = intent.load.range
            with self.store.base.snapshot() as snapshot:
                batches = list(snapshot.scan(intent.tables[0], low, high))
            rows = [
                pair
                for keys, values in batches
                for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)
            ]
            assert sum(len(key) + len(value) for key, value in rows[:-1]) <= MAX_BYTES
        else:
            blocks = [
                b
                for s, high in intent.high.items()
                for b in self.store.base.read_log(s, intent.low.get(s, 0), high)
            ]
            assert len(blocks) == 1 or sum(map(size_of, blocks)) <= MAX_BYTES * OVERHEAD
        return super().run(intent)


def size_of(block: LogBlock) -> int:
    return sum(
        column.nbytes for column in (block.keys, block.values, block.before) if column is not None
    )


def work_off(store: Store) -> int:
    coordinator = Coordinator(store, Measuring(store), Settings(max_bytes=MAX_BYTES))
    assert coordinator.acquire()
    epochs = 0
    while coordinator.step() is not None:
        epochs += 1
    coordinator.release()
    return epochs


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("url", ["memory:", "embedded"])
def test_epochs_and_loading_steps_are_bounded_in_bytes(url: str, seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    with belvedere.open(
        url if url == "memory:" else tmp_path / "d", slots=draw.choice([1, 3])
    ) as db:
        db.sql("CREATE TABLE t (id BIGINT, g BIGINT, s STRING, PRIMARY KEY (id))")
        table = db.table("t")

        def write() -> None:
            rows = [
                {
                    "id": draw.randrange(200),
                    "g": draw.randrange(3),
                    "s": "x" * draw.choice([0, 10, 3_000]),
                }
                for _ in range(60)
            ]
            for row in rows[:30]:
                table.put(row)
            table.put_many(rows[30:])

        write()
        write()
        for view, select in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {view} AS {select}")
        assert work_off(db.store) > 3
        write()
        assert work_off(db.store) > 1
        for view, select in VIEWS.items():
            assert (
                db.sql(f"SELECT * FROM {view} ORDER BY 1").to_pylist()
                == db.sql(f"{select} ORDER BY 1").to_pylist()
            )


def test_rows_of_a_megabyte_are_written_loaded_changed_and_deleted_in_parts(tmp_path: Path) -> None:
    count = 140
    with belvedere.open(tmp_path / "d", slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id BIGINT, s STRING, PRIMARY KEY (id))")
        table = db.table("t")
        table.put_many([{"id": i, "s": chr(97 + i % 26) * MEGABYTE} for i in range(count)])
        assert blocks(db) > 1
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, length(s) AS n, s FROM t")
        reports = db.catch_up()
        assert sum(r.kind == LOAD for r in reports) > 1
        assert all(batch.nbytes < 64 * MEGABYTE for batch in table.batches())
        written = sum(db.store.base.end().values())
        with pytest.raises(
            SqlError,
            match=r"more than 128 MiB: do it in parts, by ranges of the key. Nothing was changed",
        ):
            db.sql("UPDATE t SET s = s || 'x'")
        with pytest.raises(SqlError, match="more than 128 MiB: do it in parts"):
            db.sql("DELETE FROM t WHERE id >= 0")
        assert sum(db.store.base.end().values()) == written
        table.delete_many(range(1, count))
        assert blocks(db) > 1
        assert len(db.catch_up()) > 1
        assert [row["n"] for row in db.view("v").scan()] == [MEGABYTE]


def blocks(db: belvedere.Database) -> int:
    """How many transactions are logged that are not in the views."""
    low, high = sum(db.state().head.vector.values()), sum(db.store.base.end().values())
    return len(list(db.store.base.read_log("log", low, high)))
