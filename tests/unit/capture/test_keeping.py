"""Views that an algorithm keeps: whatever sources do, whoever crashes, in the end the view is what
its SELECT gives, and what the levels promise on the way.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from belvedere.cli.status import kept_lines
from belvedere.cli.tables import console
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.settings import Settings
from belvedere.errors import BelvedereError, CatalogError, Conflict, SourceError, SqlError
from belvedere.sources.base import Answer, Part, Question
from belvedere.sources.registry import register
from belvedere.status import ViewInfo, prometheus
from belvedere.types import BIGINT, STRING, Column, Schema
from belvedere.waiting import wait_until
from belvedere.warehouse.choice import PERIODIC
from belvedere.warehouse.covered import ask_load
from belvedere.warehouse.exchange import CHUNK
from belvedere.warehouse.manager import Manager
from tests.unit.capture.scripted import Changes, ScriptedSource, Server
from tests.unit.capture.test_follower import Crash, Crashing

LONG = 60.0
ORDERS = Schema(
    (Column("id", BIGINT, False), Column("customer", BIGINT), Column("amount", BIGINT)), ("id",)
)
CUSTOMERS = Schema((Column("id", BIGINT, False), Column("name", STRING)), ("id",))
GIDS = Schema((Column("gid", STRING, False), Column("sources", STRING)), ("gid",))
ALGORITHMS = ("strobe", "t-strobe", "g-strobe", "c-strobe", "asof")
VIEW = (
    "CREATE MATERIALIZED VIEW w WITH ({0}) AS SELECT o.id, upper(c.name) AS name, o.amount"
    " FROM shop.orders o JOIN crm.customers c ON o.customer = c.id WHERE o.amount > 10"
)
_servers: dict[str, Server] = {}


class Prompt(ScriptedSource):
    """What is committed can be followed at once."""

    def position(self) -> str:
        self.server.show()
        self.server.deliver()
        return super().position()


register("kept", lambda name, options: Prompt(_servers[options["server"]]))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    _servers["shop"] = Server({"orders": ORDERS})
    _servers["crm"] = Server({"customers": CUSTOMERS})
    change(random.Random(1), 8)
    with opened(tmp_path / "db") as found:
        for name in ("shop", "crm"):
            found.sql(f"CREATE SOURCE {name} TYPE kept OPTIONS (server = '{name}')")
        yield found


def opened(path: Path | str) -> Database:
    found = Database(str(path), slots=2)
    found._runner = LocalRunner(found.store)
    return found


def change(chance: random.Random, times: int, hidden: float = 0.0) -> None:
    """Transactions of one to three rows at one of the sources."""
    for _ in range(times):
        relation = chance.choice(("orders", "orders", "customers"))
        rows: dict[Any, dict[str, Any] | None] = {}
        for _ in range(chance.randint(1, 3)):
            number = chance.randrange(6)
            if chance.random() < 0.3:
                rows[number] = None
            elif relation == "orders":
                amount = chance.randrange(30)
                rows[number] = {"id": number, "customer": chance.randrange(4), "amount": amount}
            else:
                rows[number % 4] = {"id": number % 4, "name": chance.choice("abc")}
        server = _servers["shop" if relation == "orders" else "crm"]
        changes: Changes = {relation: rows}
        server.commit(changes, chance.random() < hidden)


def expected() -> list[tuple[Any, ...]]:
    customers = _servers["crm"].rows["customers"]
    return sorted(
        (o["id"], customers[o["customer"]]["name"].upper(), o["amount"])
        for o in _servers["shop"].rows["orders"].values()
        if o["customer"] in customers and o["amount"] > 10
    )


def shown(db: Database) -> list[tuple[Any, ...]]:
    rows = db.view("w").to_arrow().to_pylist()
    return sorted((row["id"], row["name"], row["amount"]) for row in rows)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "auto"])
def test_a_view_is_created_kept_up_and_dropped(db: Database, algorithm: str) -> None:
    said = str(db.sql(VIEW.format(f"algorithm = '{algorithm}'")))
    assert "requested" in said
    db.catch_up(timeout=LONG)
    assert shown(db) == expected()
    chance = random.Random(2)
    for _ in range(3):
        change(chance, 5, hidden=0.3)
        db.catch_up(timeout=LONG)
        assert shown(db) == expected()
    assert [t.name for t in db.state().joined()] == ["w__joined"]
    db.sql("DROP MATERIALIZED VIEW w")
    assert not db.state().tables
    assert _servers["shop"].is_removed
    db.catch_up(timeout=LONG)


def test_conventional_maintenance_is_right_only_while_nothing_overlaps_and_says_so(
    db: Database,
) -> None:
    said = str(db.sql(VIEW.format("algorithm = 'conventional'")))
    assert "may become wrong, and stay wrong" in said
    db.catch_up(timeout=LONG)
    for seed in (3, 3, 4, 5):  # the second changes nothing
        change(random.Random(seed), 1)
        db.catch_up(timeout=LONG)
        assert shown(db) == expected()
    (view,) = db.status().views
    assert (view.algorithm, view.given, view.consistency) == ("conventional", *["diverges"] * 2)
    assert str(db.sql("SHOW CREATE VIEW w")) == VIEW.format("algorithm = 'conventional'")
    assert str(db.sql("EXPLAIN w")).endswith("consistency: diverges is given")


class World:
    """Two sources and a database in memory, whose process may end before or after any write."""

    def __init__(
        self, seed: int, algorithm: str, is_far: bool = False, every: str = "1 transaction"
    ) -> None:
        """`is_far`: more than one value is asked for by several answers, each of its own moment."""
        self.chance, self.is_far, self.asked_far = random.Random(seed), is_far, 0
        _servers["shop"] = Server({"orders": ORDERS})
        _servers["crm"] = Server({"customers": CUSTOMERS})
        change(self.chance, 6)
        self.db = opened("memory:")
        for name in ("shop", "crm"):
            self.db.sql(f"CREATE SOURCE {name} TYPE kept OPTIONS (server = '{name}')")
        with_every = f", every = '{every}'" if algorithm in PERIODIC else ""
        self.db.sql(VIEW.format(f"algorithm = '{algorithm}'{with_every}"))
        self.clock = 0.0
        self.base = Crashing(self.db.store.base)
        self.db.store.base = self.base  # passes on all but writes
        self.manager: Manager | None = None
        self.crashes = 0

    def step(self, is_last: bool = False) -> None:
        if self.manager is None:
            (table,) = self.db.state().joined()
            sources = {name: ScriptedSource(_servers[name]) for name in ("shop", "crm")}
            far = {name: partial(self._ask_far, source) for name, source in sources.items()}
            far, chunk = (far, 1) if self.is_far else ({}, CHUNK)
            self.manager = Manager(
                self.db.store, table, sources, Event(), lambda: self.clock, far, chunk
            )
        self.base.crash = "" if is_last else self.chance.choice(["before", "after", *[""] * 8])
        try:
            self.manager.step(0)
        except Conflict:
            self.manager = None  # as its thread does: look again
        self.base.crash = ""

    def _ask_far(self, source: ScriptedSource, questions: Sequence[Question]) -> list[Answer]:
        answers = []
        for question in questions:
            if self.chance.random() < 0.5:
                change(self.chance, 1, hidden=0.5)
            answers.append(source.ask([question]))
            if self.chance.random() < 0.5:
                source.server.show()
        self.asked_far += 1
        return answers

    def bring_up(self) -> None:
        """What is kept, into the view; no source is asked for its position."""
        self.db._bring_up(Settings(), LONG, math.inf, False)

    def run(self) -> None:
        for _ in range(60):
            try:
                self._something()
            except Crash:
                self.crashes += 1
                self.manager = None
        for server in _servers.values():
            server.show()
            server.deliver()
        for _ in range(100):
            self.manager = None if self.chance.random() < 0.02 else self.manager
            self.step(is_last=True)

    def _something(self) -> None:
        self.clock += 1.0
        if self.chance.random() < 0.4:
            change(self.chance, 1, hidden=0.5)
        for server in _servers.values():
            if self.chance.random() < 0.3:
                server.show()
            if self.chance.random() < 0.5:
                server.deliver(self.chance.randint(1, 3))
        self.step()


def steps(manager: Manager, times: int) -> None:
    for _ in range(times):
        manager.step(0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_whoever_crashes_the_view_is_what_its_select_gives(algorithm: str) -> None:
    crashes = 0
    for seed in range(6):
        world = World(seed, algorithm)
        world.run()
        world.db.catch_up(timeout=LONG)
        assert shown(world.db) == expected(), f"seed {seed}"
        crashes += world.crashes
        world.db.close()
    assert crashes > 6


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_view_that_is_loaded_again_at_any_time_is_what_its_select_gives(algorithm: str) -> None:
    for seed in range(4):
        world = World(seed, algorithm)
        (table,) = world.db.state().joined()
        assert table.joined is not None
        for _ in range(3):
            world.run()
            ask_load(world.db.store, table.joined.progress)
        world.run()
        world.db.catch_up(timeout=LONG)
        assert shown(world.db) == expected(), f"seed {seed}"
        world.db.close()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_values_may_be_asked_in_parts_of_several_moments(algorithm: str) -> None:
    asked_far = 0
    for seed in range(8):
        world = World(seed, algorithm, is_far=True)
        world.run()
        world.db.catch_up(timeout=LONG)
        assert shown(world.db) == expected(), f"seed {seed}"
        asked_far += world.asked_far
        world.db.close()
    assert asked_far > 8


@pytest.mark.parametrize("algorithm", ["asof", "c-strobe"])
def test_batches_of_a_time_wait_for_it_and_show_all_that_has_come(algorithm: str) -> None:
    world = World(1, algorithm, every="10 s")
    world.step(is_last=True)
    assert world.manager is not None
    change(world.chance, 1)  # the first is not held
    for server in _servers.values():
        server.deliver()
    steps(world.manager, 20)
    world.bring_up()
    for _ in range(3):
        before = shown(world.db)
        for _ in range(4):
            change(world.chance, 2)
            for server in _servers.values():
                server.show()
                server.deliver()
            steps(world.manager, 5)
            world.bring_up()
            assert shown(world.db) == before
        assert world.manager.waits == "its next batch, one every 10 s"
        world.clock += 10.0
        steps(world.manager, 20)
        world.bring_up()
        assert shown(world.db) == expected()
        assert world.manager.waits == ""
    world.db.close()


def test_two_processes_do_not_keep_one_view() -> None:
    world = World(1, "asof")
    world.step(is_last=True)
    older = world.manager
    world.manager = None
    world.step(is_last=True)
    change(world.chance, 3)
    for server in _servers.values():
        server.deliver()
    assert older is not None
    with pytest.raises(Conflict):
        steps(older, 20)
    world.run()
    world.db.catch_up(timeout=LONG)
    assert shown(world.db) == expected()


def test_a_source_that_is_down_stops_this_view_only(db: Database) -> None:
    db.sql(VIEW.format("algorithm = 'asof'"))
    _servers["depot"] = Server({"parts": CUSTOMERS})
    db.sql("CREATE SOURCE depot TYPE kept OPTIONS (server = 'depot')")
    db.sql("CREATE MATERIALIZED VIEW other AS SELECT id, name FROM depot.parts")
    db.catch_up(timeout=LONG)
    _servers["crm"].is_down = True
    _servers["depot"].commit({"parts": {1: {"id": 1, "name": "x"}}})
    with pytest.raises(SourceError, match="script is down"):
        db.catch_up(timeout=LONG)
    assert db.view("other").to_arrow().to_pylist() == [{"id": 1, "name": "x"}]
    (view,) = (v for v in db.status().views if v.name == "w")
    assert (view.algorithm, view.given) == ("asof", "strong")
    assert "script is down" in view.advice
    out = console()
    with out.capture() as printed:
        for line in kept_lines(db.status().views):
            out.print(line)
    assert "w: asof has asked" in printed.get()
    said = str(db.sql("DROP MATERIALIZED VIEW w"))
    assert "source crm was not told" in said
    _servers["crm"].is_down = False
    db.catch_up(timeout=LONG)


def test_a_truncated_relation_stops_the_view_with_the_way_out(db: Database) -> None:
    db.sql(VIEW.format("algorithm = 'asof'"))
    db.catch_up(timeout=LONG)
    before = shown(db)
    _servers["shop"].truncate("orders")
    with pytest.raises(SourceError, match="Drop view w and create it again"):
        db.catch_up(timeout=LONG)
    assert shown(db) == before
    db.sql("DROP MATERIALIZED VIEW w")
    db.sql(VIEW.format("algorithm = 'asof'"))
    db.catch_up(timeout=LONG)
    assert shown(db) == expected()


def test_a_view_of_which_the_log_is_lost_is_loaded_again(db: Database) -> None:
    db.sql(VIEW.format("algorithm = 't-strobe'"))
    db.catch_up(timeout=LONG)
    change(random.Random(6), 9)
    server = _servers["shop"]
    server.forgotten = server.confirmed = len(server.log)
    with pytest.raises(SourceError, match="has forgotten its log"):
        db.catch_up(timeout=LONG)
    (view,) = db.status().views
    assert "RELOAD loads the view again" in view.advice
    assert "view w" in str(db.sql("ALTER SOURCE shop RELOAD"))
    db.catch_up(timeout=LONG)
    assert shown(db) == expected()
    assert db.status().views[0].advice == ""


def test_an_altered_relation_stops_the_view_with_the_way_out(db: Database) -> None:
    db.sql(VIEW.format("algorithm = 'asof'"))
    db.catch_up(timeout=LONG)
    columns = (*ORDERS.columns, Column("more", BIGINT))
    _servers["shop"].schemas["orders"] = Schema(columns, ("id",))
    _servers["crm"].commit({"customers": {0: {"id": 0, "name": "x"}}})
    with pytest.raises(SourceError, match=r"shop.orders has other columns now. Drop view w and"):
        db.catch_up(timeout=LONG)
    db.sql("DROP MATERIALIZED VIEW w")


def test_a_view_is_dropped_also_when_a_password_is_gone(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_TEST", "x")
    db.sql("DROP SOURCE crm")
    db.sql("CREATE SOURCE crm TYPE kept OPTIONS (server = 'crm', password = env('OF_TEST'))")
    db.sql(VIEW.format("algorithm = 'asof'"))
    monkeypatch.delenv("OF_TEST")
    said = str(db.sql("DROP MATERIALIZED VIEW w"))
    assert "source crm was not told" in said
    assert "OF_TEST" in said
    assert not db.state().tables


def test_sources_say_what_their_transactions_are_and_are_held_to_it(db: Database) -> None:
    with pytest.raises(SqlError, match="use one of single, local, global"):
        db.sql("CREATE SOURCE x TYPE kept OPTIONS (server = 'shop', transactions = 'small')")
    for name in ("shop", "crm"):
        db.sql(f"DROP SOURCE {name}")
        text = (
            f"CREATE SOURCE {name} TYPE kept OPTIONS (server = '{name}', transactions = 'single')"
        )
        db.sql(text)
        assert str(db.sql(f"SHOW CREATE SOURCE {name}")) == text
    assert "strobe keeps it strong" in str(
        db.sql(VIEW.format("algorithm = 'auto', consistency = 'strong'"))
    )
    db.catch_up(timeout=LONG)
    _servers["shop"].commit({"orders": {90: {"id": 90, "customer": 0, "amount": 99}}})
    _servers["crm"].commit({"customers": {0: None}})
    _servers["crm"].commit({"customers": {0: {"id": 0, "name": "z"}}})
    db.catch_up(timeout=LONG)
    assert shown(db) == expected()
    before = shown(db)
    _servers["crm"].commit({"customers": {0: {"id": 0, "name": "y"}}})
    with pytest.raises(SourceError, match=r"crm says transactions = 'single', .* changed 2 rows"):
        db.catch_up(timeout=LONG)
    assert shown(db) == before
    db.sql("DROP MATERIALIZED VIEW w")


def test_a_source_with_global_transactions_needs_the_table_that_names_them(db: Database) -> None:
    for name in ("shop", "crm"):
        db.sql(f"DROP SOURCE {name}")
        db.sql(
            f"CREATE SOURCE {name} TYPE kept OPTIONS (server = '{name}', transactions = 'global')"
        )
    with pytest.raises(SourceError, match="no table belvedere_transactions"):
        db.sql(VIEW.format("algorithm = 'auto'"))
    for name in ("shop", "crm"):
        _servers[name].schemas["belvedere_transactions"] = GIDS
        _servers[name].rows["belvedere_transactions"] = {}
    assert "g-strobe keeps it strong" in str(db.sql(VIEW.format("algorithm = 'g-strobe'")))
    with pytest.raises(SqlError, match="t-strobe is weak for global transactions"):
        db.sql(
            VIEW.replace("VIEW w", "VIEW z").format(
                "algorithm = 't-strobe', consistency = 'strong'"
            )
        )


@pytest.mark.parametrize("algorithm", ["g-strobe", "c-strobe", "asof"])
def test_a_missing_part_of_a_global_transaction_is_named_and_waited_for(
    db: Database, algorithm: str
) -> None:
    for server in _servers.values():
        server.schemas["belvedere_transactions"] = GIDS
        server.rows["belvedere_transactions"] = {}
    db.sql(VIEW.format(f"algorithm = '{algorithm}'"))
    db.catch_up(timeout=LONG)
    before, part = shown(db), Part("move-7", ("shop", "crm"))
    pipeline = db.start()
    changes: Changes = {"orders": {50: {"id": 50, "customer": 50, "amount": 50}}}
    first = _servers["shop"].commit(changes, part=part)
    for number in range(51, 54):  # others wait behind it
        _servers["shop"].commit({"orders": {number: {"id": number, "customer": 50, "amount": 60}}})
    _servers["shop"].deliver()

    def waits() -> ViewInfo | None:
        (view,) = db.status().views
        return view if any(lag.lag_transactions == 4 for lag in view.lags) else None

    view = wait_until(waits, LONG)
    assert view is not None
    assert view.waits == "the part of global transaction move-7 at crm"
    (lag,) = (lag for lag in view.lags if lag.source == "shop")
    assert time.time() - lag.lag_seconds >= 1000.0 + first.number
    assert "view_source_lag_transactions" in prometheus(db.status())
    (line, *lines) = map(str, kept_lines((view,)))
    assert line.endswith("waits for the part of global transaction move-7 at crm")
    assert any("shop is 4 transactions ahead, the oldest" in line for line in lines)
    assert shown(db) == before
    _servers["crm"].commit({"customers": {50: {"id": 50, "name": "fifty"}}}, part=part)
    with db.session(LONG) as mine:
        mine.wrote()
        assert shown(mine) == expected()
    pipeline.stop()


def test_a_session_reads_what_was_written_at_a_source(db: Database) -> None:
    db.sql(VIEW.format("algorithm = 'asof'"))
    pipeline = db.start()
    assert wait_until(lambda: db.status().views[0].is_live or None, LONG)
    chance = random.Random(4)
    with db.session(LONG) as mine:
        for _ in range(3):
            change(chance, 2)
            mine.wrote()
            assert shown(mine) == expected()
    pipeline.stop()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VIEW.format("algorithm = 'sweep'"), "use one of strobe"),
        (VIEW.format("algorithm = 'conventional', consistency = 'weak'"), "conventional diverges"),
        (VIEW.format("algorithm = 'g-strobe', every = 3"), "leave `every` out"),
        (VIEW.format("algorithm = 'asof', every = 'often'"), "every = '100 transactions'"),
        (VIEW.format("algorithm = 'asof', every = '0 s'"), "or '10 s'"),
        (VIEW.format("algorithm = 'g-strobe', every = '2 minutes'"), "takes no batches"),
        (VIEW.format("every = '5 s', consistency = 'complete'"), "leave `every` out"),
        (VIEW.format("algorithm = 'strobe', consistency = 'strong'"), "use 't-strobe'"),
        (
            "CREATE MATERIALIZED VIEW w WITH (algorithm = 'asof') AS SELECT o.id FROM shop.orders o"
            " JOIN t ON t.id = o.id",
            "joins relations of sources only",
        ),
        (
            "CREATE MATERIALIZED VIEW w WITH (algorithm = 'asof') AS SELECT count(*) AS n FROM"
            " shop.orders",
            "no aggregate",
        ),
        (
            "CREATE MATERIALIZED VIEW w WITH (algorithm = 'g-strobe') AS SELECT a.id FROM"
            " shop.orders a JOIN shop.orders b ON a.id = b.customer",
            "use algorithm = 'asof'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_way_out(db: Database, text: str, said: str) -> None:
    db.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
    with pytest.raises(SqlError, match=said):
        db.sql(text)
    assert [table.name for table in db.state().tables.values()] == ["t"]


def test_the_joined_rows_are_shown_as_what_they_are(db: Database) -> None:
    text = VIEW.format("algorithm = 'asof', every = '3 transactions'")
    assert "asof every 3 transactions keeps it strong" in str(db.sql(text))
    assert db.sql("SHOW TABLES").to_pylist() == [
        {"name": "w__joined", "kind": "joined rows of view w"}
    ]
    assert str(db.sql("SHOW CREATE VIEW w")) == text
    assert str(db.sql("EXPLAIN w")).endswith(
        "algorithm: asof every 3 transactions keeps w__joined from crm, shop\n"
        "consistency: strong is given"
    )
    db.catch_up(timeout=LONG)
    for wrong in (
        "INSERT INTO w__joined VALUES (1, 2, 3, 'x')",
        "DELETE FROM w__joined",
        "DROP TABLE w__joined",
        "DROP SOURCE shop",
        "CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT id FROM shop.orders",
    ):
        with pytest.raises(CatalogError, match=r"view w\b|used by w"):
            db.sql(wrong)
    with pytest.raises(BelvedereError, match="exists already"):
        db.sql(text)
