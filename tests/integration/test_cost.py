"""EXPLAIN COST of TPC-H's queries: with every row read, what it says is what the views then really
keep.
"""

from __future__ import annotations

from pathlib import Path

import belvedere
from belvedere.bench import tpch
from belvedere.bench.scenarios.tpch import write
from belvedere.bench.tpch_changes import Stream
from belvedere.epochs.local import LocalRunner
from belvedere.graph import state_tables
from belvedere.statements import cost


def test_the_cost_of_every_tpch_view_is_what_it_then_keeps(tmp_path: Path) -> None:
    with belvedere.open(tmp_path / "tpch", slots=2) as db:
        db._runner = LocalRunner(db.store)
        for table in tpch.TABLES:
            db.sql(tpch.create_table(table))
        write(db, Stream(0.001).load())
        told = {name: cost(db, tpch.query(name)) for name in tpch.QUERIES}
        for name in tpch.QUERIES:
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {tpch.query(name)}")
        db.catch_up()
        kept = {name: _kept(db, name) for name in tpch.QUERIES}
        assert all(found.exact for found in told.values())
        assert {name: (found.records, found.bytes) for name, found in told.items()} == kept
        shared = [node.shared for name in tpch.QUERIES for node in cost(db, name).nodes]
        assert any(shared)
        assert not all(shared)


def _kept(db: belvedere.Database, view: str) -> tuple[int, int]:
    tables = [table for node in db.state().view(view).nodes for table in state_tables(node)]
    counts = [
        db.store.state.count(slot, table)
        for table in tables
        for slot in range(db.store.state.slots)
    ]
    return sum(records for records, _ in counts), sum(size for _, size in counts)
