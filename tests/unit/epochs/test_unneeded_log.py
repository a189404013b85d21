"""Operations that no view needs are passed over: their epoch is committed without a job, however
long the log is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

import belvedere
from belvedere.epochs.coordinator import EpochReport
from belvedere.epochs.intent import CHANGES, LOAD, Intent
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack
from belvedere.epochs.settings import Settings

COUNTS = "SELECT g, count(*) AS n FROM t GROUP BY g"


@dataclass(slots=True)
class Noted:
    """A runner that remembers what it was asked to run."""

    inner: LocalRunner
    ran: list[Intent] = field(default_factory=list)

    def run(self, intent: Intent) -> list[Ack]:
        self.ran.append(intent)
        return self.inner.run(intent)


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as found:
        found._runner = Noted(LocalRunner(found.store))
        for table in ("t", "u"):
            found.sql(f"CREATE TABLE {table} (id BIGINT, g BIGINT, PRIMARY KEY (id))")
        yield found


def fill(db: belvedere.Database, table: str, count: int, start: int = 0) -> None:
    for first in range(start, start + count, 100):
        db.table(table).put_many([{"id": i, "g": i % 3} for i in range(first, first + 100)])


def ran(db: belvedere.Database, kind: str) -> list[Intent]:
    assert isinstance(db._runner, Noted)
    return [intent for intent in db._runner.ran if intent.kind == kind]


def by_kind(reports: list[EpochReport], kind: str) -> int:
    return sum(r.kind == kind for r in reports)


def test_the_log_before_the_first_view_is_not_read(db: belvedere.Database) -> None:
    fill(db, "t", 3_000)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS}")
    reports = db.catch_up(max_rows=1_000)
    assert (reports[0].kind, reports[0].operations) == (CHANGES, 3_000)
    assert not ran(db, CHANGES)
    assert len(ran(db, LOAD)) == by_kind(reports, LOAD) == 4
    assert sum(row["n"] for row in db.view("v").to_arrow().to_pylist()) == 3_000


def test_a_view_that_has_not_begun_to_load_needs_no_log(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT g, count(*) AS n FROM u GROUP BY g")
    db.catch_up()
    fill(db, "t", 2_000)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS}")
    db.catch_up(max_rows=1_000)
    t, u = (db.state().table(name).id for name in ("t", "u"))
    # w is live, so its epochs are bounded, and read nothing of t
    assert ran(db, CHANGES)[0].tables == (u,)
    assert all(
        i.tables == (t, u)
        for i in ran(db, CHANGES)
        if i.loading and any(g.marks for g in i.loading)
    )
    assert sum(row["n"] for row in db.view("v").to_arrow().to_pylist()) == 2_000


def test_a_view_that_takes_over_what_a_dropped_one_kept_still_needs_the_log(
    db: belvedere.Database,
) -> None:
    fill(db, "t", 300)
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT g, count(*) AS n FROM t GROUP BY g")
    db.catch_up()
    fill(db, "t", 100, start=300)
    db.sql(
        "CREATE MATERIALIZED VIEW sizes AS SELECT n, count(*) AS times FROM (SELECT g, count(*) AS"
        " n FROM t GROUP BY g) GROUP BY n"
    )
    coordinator = db._coordinator(Settings())
    assert coordinator.acquire()
    report = coordinator.step()
    coordinator.release()
    assert report is not None
    assert report.kind == CHANGES  # sizes has joined, and has not begun to load
    db.sql("DROP MATERIALIZED VIEW counts")
    fill(db, "t", 100, start=400)
    db.catch_up()
    assert len(ran(db, CHANGES)) == 2
    wanted = db.sql(
        "SELECT n, count(*) AS times FROM (SELECT g, count(*) AS n FROM t GROUP BY g) GROUP BY n"
        " ORDER BY n"
    ).to_pylist()
    assert db.sql("SELECT * FROM sizes ORDER BY n").to_pylist() == wanted
