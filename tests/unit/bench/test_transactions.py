"""The scenario of transactions, in small: both ways write the rows."""

from __future__ import annotations

from pathlib import Path

from belvedere.bench.scenarios import transactions
from belvedere.bench.scenarios.settings import Settings


def test_rows_are_written_both_ways(tmp_path: Path) -> None:
    found = transactions.run(Settings(work=tmp_path, puts=3, call=10, groups=5)).transactions
    assert [(each.name, each.count) for each in found] == [
        ("a put", 3),
        ("a get and a put", 3),
        ("put_many of 10", 30),
    ]
    assert all(each.correct and each.transaction_ms > 0 < each.plain_ms for each in found)
