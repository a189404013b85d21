"""An intent is decided upon outside the catalog's transaction, and written only if the catalog is
still the one that was decided upon.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.state import CatalogState, read_state
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.intent import CHANGES
from belvedere.epochs.intents import Choice
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.settings import Settings
from belvedere.errors import LeaseLost, Stale

VIEW = "CREATE MATERIALIZED VIEW {} AS SELECT g, count(*) AS n FROM t GROUP BY g"


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as found:
        found.sql("CREATE TABLE t (k BIGINT, g STRING, PRIMARY KEY (k))")
        found.sql(VIEW.format("v"))
        found._runner = LocalRunner(found.store)
        found.catch_up()
        found.table("t").put({"k": 1, "g": "a"})
        yield found


def coordinator(db: belvedere.Database) -> Coordinator:
    made = Coordinator(db.store, LocalRunner(db.store), Settings())
    assert made.acquire()
    return made


def test_what_changes_while_it_is_decided_is_decided_upon_again(db: belvedere.Database) -> None:
    ours, seen = coordinator(db), []

    def decide(state: CatalogState, active: list[ViewDefinition]) -> Choice | None:
        seen.append(len(active))
        if len(seen) == 1:
            db.sql("DROP MATERIALIZED VIEW v")  # would wait for ever inside the transaction
        return Choice(CHANGES, db.store.base.end())

    report = ours.step(decide=decide)
    assert report is not None
    assert seen == [1, 0]


def test_the_table_of_a_view_can_be_dropped_while_the_view_is_planned(
    db: belvedere.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made of definitions that are gone, so it is made again, and says so."""
    import belvedere.sql.planner as planner

    plan: Any = planner.plan_view
    dropped: list[object] = []

    def slow(*arguments: object) -> object:
        if not dropped:
            dropped.append(db.sql("DROP MATERIALIZED VIEW v"))
            db.sql("DROP TABLE t")
        return plan(*arguments)

    monkeypatch.setattr(planner, "plan_view", slow)
    with pytest.raises(belvedere.BelvedereError, match="there is no table t"):
        db.sql(VIEW.format("w"))
    assert db.store.catalog.read(read_state).views == {}


def test_two_views_of_one_name_planned_at_once_are_one_and_an_error(
    db: belvedere.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    import belvedere.sql.planner as planner

    plan: Any = planner.plan_view
    first: list[bool] = []

    def slow(*arguments: object) -> object:
        planned = plan(*arguments)
        if not first:
            first.append(True)
            db.sql(VIEW.format("w"))
        return planned

    monkeypatch.setattr(planner, "plan_view", slow)
    with pytest.raises(belvedere.BelvedereError, match="a view w exists already"):
        db.sql(VIEW.format("w"))
    assert set(db.store.catalog.read(read_state).views) == {"v", "w"}


def test_a_coordinator_that_lost_its_lease_while_deciding_opens_nothing(
    db: belvedere.Database,
) -> None:
    ours, clock = coordinator(db), [0.0]
    ours.now = lambda: clock[0]

    def decide(state: CatalogState, active: list[ViewDefinition]) -> Choice | None:
        other = Coordinator(db.store, LocalRunner(db.store), Settings(), now=lambda: 1e12)
        assert other.acquire()
        return Choice(CHANGES, db.store.base.end())

    with pytest.raises(LeaseLost):
        ours.step(decide=decide)
    assert db.store.catalog.get_one("intent") is None


def test_history_that_is_gone_is_an_error_if_nobody_else_removed_it(
    db: belvedere.Database,
) -> None:
    ours = coordinator(db)

    def decide(state: CatalogState, active: list[ViewDefinition]) -> Choice | None:
        raise Stale("gone")

    with pytest.raises(Stale):
        ours.step(decide=decide)
