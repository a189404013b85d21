"""Vectors, sessions and epochs are the same over one stream and over several."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

import belvedere
from belvedere.catalog.state import read_head
from belvedere.database import Database
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.settings import Settings
from belvedere.errors import Conflict, PipelineError, Timeout
from belvedere.stores.memory import RowRules
from belvedere.types import Vector


@pytest.fixture(params=[(1, None), (3, None), (3, RowRules())], ids=["one", "three", "three rows"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    streams, rows = request.param
    with belvedere.open("memory:", streams=streams, rows=rows) as found:
        found.sql("CREATE TABLE t (k BIGINT, g STRING, x BIGINT, PRIMARY KEY (k))")
        found.sql("CREATE MATERIALIZED VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g")
        found.catch_up()
        yield found


def test_a_write_returns_what_a_snapshot_must_contain_to_show_it(db: Database) -> None:
    base, seen = db.store.base, Vector()
    for k in range(40):
        written = db.table("t").put({"k": k, "g": "a", "x": k})
        assert len(written) == 1
        seen = seen.merge(written)
        assert base.end().covers(written)
        with base.snapshot() as snapshot:
            assert snapshot.vector == base.end() == seen
    assert len(seen) == len(base.streams())
    many = db.table("t").put_many([{"k": k, "g": "b", "x": 1} for k in range(100)])
    assert many == base.end()


def test_a_session_reads_its_own_writes_whichever_stream_they_are_in(db: Database) -> None:
    """Also when another stream is far ahead: a number could not tell them apart."""
    for k in range(100):
        db.table("t").put({"k": k % 7, "g": "a", "x": 1})
    db.catch_up()
    for k in range(1000, 1040):
        with db.session(timeout=0) as mine:
            mine.table("t").put({"k": k, "g": "own", "x": 1})
            with pytest.raises(Timeout, match=r"1 operation\(s\) before"):
                mine.view("v").get("own")
            db.catch_up()
            assert mine.view("v").get("own") == {"g": "own", "s": k - 999}


def test_an_update_that_was_overtaken_is_a_conflict_in_any_stream(db: Database) -> None:
    base, table = db.store.base, db.state().table("t").id
    db.table("t").put_many([{"k": k, "g": "a", "x": k} for k in range(20)])
    key, value = pa.array([b"k"], pa.binary()), pa.array([b"v"], pa.binary())
    for k in range(20):
        with base.snapshot() as snapshot:
            before = snapshot.vector
        db.table("t").put({"k": k, "g": "b", "x": k})
        with pytest.raises(Conflict):
            base.write(table, key, value, True, unless_after=before)
    db.sql("UPDATE t SET x = x + 1 WHERE k < 10")
    db.sql("DELETE FROM t WHERE k >= 10")
    db.catch_up()
    assert db.sql("SELECT s FROM v").to_pylist() == [{"s": sum(range(1, 11))}]


def test_every_stream_moves_in_every_epoch_however_small(db: Database) -> None:
    """One that is far behind does not keep the others waiting."""
    table, rng = db.table("t"), random.Random(1)
    for k in range(60):
        table.put({"k": k, "g": "a", "x": rng.randrange(5)})
    coordinator = Coordinator(db.store, LocalRunner(db.store), Settings(max_rows=6))
    assert coordinator.acquire()
    streams = db.store.base.streams()
    while (end := db.store.base.end()) != (low := db.store.catalog.read(read_head).vector):
        waiting = [s for s in streams if low[s] < end[s]]
        assert coordinator.step() is not None
        high = db.store.catalog.read(read_head).vector
        assert all(high[s] > low[s] for s in waiting)
        assert low.behind(high) <= 6


def test_a_pipeline_waits_for_a_vector_and_for_a_number_only_where_that_says_enough(
    db: Database,
) -> None:
    pipeline = db.start()
    try:
        written = db.table("t").put({"k": 1, "g": "a", "x": 1})
        assert pipeline.await_position(written, timeout=60)
        assert db.view("v").get("a") == {"g": "a", "s": 1}
        for wrong in ("1", None, 1.0, True):
            with pytest.raises(PipelineError, match="is no position"):
                pipeline.await_position(wrong, timeout=60)  # type: ignore[arg-type]  # on purpose
        if len(db.store.base.streams()) == 1:
            assert pipeline.await_position(1, timeout=60)
        else:
            with pytest.raises(PipelineError, match="3 streams"):
                pipeline.await_position(1, timeout=60)
    finally:
        pipeline.stop()
