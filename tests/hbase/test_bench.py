"""The benchmark on HBase in its shortest form: everything is measured and right, however long."""

from __future__ import annotations

from pathlib import Path

import pytest

from belvedere.bench import suite
from belvedere.bench.scenarios.settings import Settings
from belvedere.stores.hbase import jars

pytestmark = [pytest.mark.hbase, pytest.mark.slow]


def test_every_figure_is_measured_over_views_that_are_right(tmp_path: Path) -> None:
    for part in ("client", "cluster"):  # the benchmark itself fetches nothing
        jars.fetched(part)
    settings = Settings(
        work=tmp_path,
        hbase_ops=2_000,
        hbase_puts=500,
        hbase_rounds=1,
        hbase_views=("V2", "V5"),
        hbase_tasks=(1, 2),
        probes=2,
        groups=50,
    )
    (found,) = suite.run(settings, ["hbase"]).hbase
    assert [c.ops for c in found.capture] == [2_000]
    tried = [(m.view, m.tasks) for m in found.maintain]
    assert tried == [("V2", 1), ("V2", 2), ("V5", 2)]
    for m in found.maintain:
        assert m.correct
        assert m.rows > 0
        assert 0 < m.commit_s < m.seconds
        assert m.bare_s > 0
    ways = [(w.views, w.captured) for w in found.writes]
    assert ways == [(0, False), (0, True), (1, True), (10, True)] * 2
    assert all(w.puts_per_s > 0 for w in found.writes)
    (fresh,) = found.freshness
    assert fresh.correct
    assert not list(tmp_path.glob("hbase/*"))  # the cluster is gone
