"""An epoch that fails because of a view, however often it is run, is finished without that view
once it is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.intent import Intent
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack
from belvedere.epochs.settings import Settings
from belvedere.errors import PipelineError

BAD = "SELECT a.g, sum(a.x) AS s FROM a GROUP BY a.g"
GOOD = {
    "the same": BAD,
    "another key": "SELECT x, count(*) AS n FROM a GROUP BY x",
    "another table": "SELECT g, max(x) AS m FROM b GROUP BY g",
    "a join": "SELECT a.k, a.x, b.x AS y FROM a JOIN b ON a.g = b.g",
    "none": None,
}


class Poisoned(LocalRunner):
    """Runs everything but epochs with the view `bad`."""

    def run(self, intent: Intent) -> list[Ack]:
        bad = self.store.catalog.read(
            lambda t: [int(k.split("/")[1]) for k, v in t.scan("view/") if b'"bad"' in v]
        )
        if set(bad) & set(intent.views):
            raise PipelineError("the view is bad")
        return super().run(intent)


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as found:
        for table in ("a", "b"):
            found.sql(f"CREATE TABLE {table} (k BIGINT, g STRING, x BIGINT, PRIMARY KEY (k))")
            write(found, table, 0)
        yield found


def write(db: belvedere.Database, table: str, start: int) -> None:
    db.table(table).put_many(
        [{"k": k, "g": "uvw"[k % 3], "x": k} for k in range(start, start + 20)]
    )


def coordinator(db: belvedere.Database, runner: type[LocalRunner]) -> Coordinator:
    made = Coordinator(db.store, runner(db.store), Settings(load_rows=7))
    assert made.acquire()
    return made


def create(db: belvedere.Database, good: str | None) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW bad AS {BAD}")
    if good is not None:
        db.sql(f"CREATE MATERIALIZED VIEW good AS {good}")


def fail_then_drop(db: belvedere.Database) -> None:
    failing = coordinator(db, Poisoned)
    for _ in range(2):
        with pytest.raises(PipelineError, match="the view is bad"):
            failing.step()
    db.sql("DROP MATERIALIZED VIEW bad")
    while failing.step() is not None:
        pass
    failing.release()


def check(db: belvedere.Database, good: str | None) -> None:
    for table in ("a", "b"):
        write(db, table, 10)  # some are updates
    fine = coordinator(db, LocalRunner)
    while fine.step() is not None:
        pass
    if good is not None:
        wanted = db.sql(good).to_arrow().to_pylist()
        assert sorted(map(repr, db.view("good").to_arrow().to_pylist())) == sorted(
            map(repr, wanted)
        )
    assert db.store.catalog.read(lambda t: t.scan("garbage/")) == []


@pytest.mark.parametrize("good", GOOD)
def test_a_view_that_fails_while_it_is_loaded_can_be_dropped(
    db: belvedere.Database, good: str
) -> None:
    create(db, GOOD[good])
    passed = coordinator(db, Poisoned)
    # the log before the first view, which nobody needs and no job reads
    assert passed.step() is not None
    passed.release()
    fail_then_drop(db)
    check(db, GOOD[good])


@pytest.mark.parametrize("good", GOOD)
def test_a_view_that_fails_in_the_middle_of_loading_can_be_dropped(
    db: belvedere.Database, good: str
) -> None:
    create(db, GOOD[good])
    started = coordinator(db, LocalRunner)
    for _ in range(3):
        started.step()
    started.release()
    fail_then_drop(db)
    check(db, GOOD[good])


@pytest.mark.parametrize("good", GOOD)
def test_a_live_view_that_fails_can_be_dropped(db: belvedere.Database, good: str) -> None:
    create(db, GOOD[good])
    db.catch_up()
    for table in ("a", "b"):
        write(db, table, 15)
    fail_then_drop(db)
    check(db, GOOD[good])
