"""Following a source: whatever it does, whoever crashes, our tables are the source's as of the
position, and views are what their SELECT gives.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from belvedere.capture.follower import Follower
from belvedere.capture.progress import read_progress
from belvedere.catalog.definitions import LIVE, Followed
from belvedere.catalog.sources import ask_reload, create_relation, create_source
from belvedere.catalog.state import read_state
from belvedere.database import Database
from belvedere.epochs.coordinator import EpochReport
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.settings import Settings
from belvedere.errors import Conflict, SourceError, SourceLost, SourceUnreachable
from belvedere.stores.base import Expected, FewOperations, Operations
from belvedere.types import BIGINT, STRING, Column, Schema, Vector
from tests.unit.capture.scripted import Changes, ScriptedSource, Server

ACCOUNTS = Schema((Column("id", BIGINT, False), Column("amount", BIGINT)), ("id",))
SAVINGS = Schema(
    (Column("owner", STRING, False), Column("id", BIGINT, False), Column("amount", BIGINT)),
    ("owner", "id"),
)
SCHEMAS = {"accounts": ACCOUNTS, "savings": SAVINGS}
TOTAL = 1000


class Crash(Exception):
    """The process that follows is gone, at this very moment."""


@dataclass
class Crashing:
    """Base tables whose writes can be the last thing that a process does."""

    base: Any
    crash: str = ""  # before, after, or never

    def write_all(
        self,
        operations: Sequence[Operations | FewOperations],
        unless_after: Vector | None = None,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        crash, self.crash = self.crash, ""
        if crash == "before":
            raise Crash
        written: Vector = self.base.write_all(operations, unless_after, expected)
        if crash == "after":
            raise Crash
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)


@dataclass
class World:
    """A source, a database that follows it, and a process in between that may end at any moment."""

    seed: int
    server: Server = field(default_factory=lambda: Server(dict(SCHEMAS)))
    follower: Follower | None = None
    clock: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.source = ScriptedSource(self.server)
        self.db = self.opened()
        self.store = self.db.store
        self.db._runner = LocalRunner(self.store)
        self.base = Crashing(self.store.base)
        self.store.base = self.base  # passes on all but writes
        self.server.commit({"accounts": {1: {"id": 1, "amount": TOTAL}}})
        create_source(self.store, "bank", "scripted", {}, {})

    def opened(self) -> Database:
        return Database("memory:")

    # ---- what the source does

    def move(self) -> None:
        """Money goes from one account to another, perhaps of the other relation; an account without
        money may be closed, another one opened.
        """
        changes: Changes = {"accounts": {}, "savings": {}}
        places = [("accounts", key) for key in self.server.rows["accounts"]]
        places += [("savings", key) for key in self.server.rows["savings"]]
        rich = [p for p in places if self.amount(*p)]
        giver = self.random.choice(rich)
        taker = self.random.choice(
            [("accounts", self.random.randrange(6)), ("savings", ("x", self.random.randrange(6)))]
        )
        if taker == giver:
            return
        sum_moved = self.random.randint(1, self.amount(*giver))
        self._set(changes, *giver, self.amount(*giver) - sum_moved)
        self._set(changes, *taker, self.amount(*taker) + sum_moved)
        self.server.commit({r: c for r, c in changes.items() if c}, self.random.random() < 0.4)

    def amount(self, relation: str, key: Any) -> int:
        return int(self.server.rows[relation].get(key, {"amount": 0})["amount"])

    def _set(self, changes: Changes, relation: str, key: Any, amount: int) -> None:
        if not amount and self.random.random() < 0.5:
            changes[relation][key] = None
        elif relation == "accounts":
            changes[relation][key] = {"id": key, "amount": amount}
        else:
            changes[relation][key] = {"owner": key[0], "id": key[1], "amount": amount}

    # ---- what we do

    def name(self, relation: str) -> None:
        followed = Followed("bank", relation)
        create_relation(self.store, f"bank.{relation}", followed, SCHEMAS[relation])

    def new_follower(self) -> Follower:
        definition = self.store.catalog.read(read_state).source("bank")
        return Follower(self.store, definition, self.source, now=lambda: self.clock)

    def follow(self) -> None:
        """A step, of a new process if there is none."""
        self.clock += 1.0
        if self.follower is None:
            self.follower = self.new_follower()
        self.follower.step(0)

    def crashing(self) -> None:
        self.base.crash = self.random.choice(["before", "after", "", ""])
        try:
            for _ in range(self.random.randint(1, 4)):
                self.follow()
        except Crash:
            self.follower = None
        self.base.crash = ""

    def settle(self) -> None:
        """Everything that happened arrives."""
        self.server.show()
        self.server.deliver()
        for _ in range(200):
            self.follow()
            state = self.store.catalog.read(read_state)
            position = read_progress(self.store, state.source("bank").progress)[0].position
            is_asked = any(vector is None for vector in state.adopting.values())
            if not is_asked and position == str(len(self.server.log)):
                break
        else:
            raise AssertionError("what the source has does not arrive")
        for _ in self.epochs():
            pass

    def epochs(self) -> Iterator[EpochReport]:
        """Everything that is in the log, a few operations at a time."""
        coordinator = self.db._coordinator(Settings(max_rows=3, load_rows=2))
        assert coordinator.acquire()
        while (report := coordinator.step()) is not None:
            yield report
        coordinator.release()

    def ours(self, relation: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.db.table(f"bank.{relation}").to_arrow().to_pylist()
        return rows

    def theirs(self, relation: str) -> list[dict[str, Any]]:
        return [row for _, row in sorted(self.server.rows[relation].items())]

    def check_same(self) -> None:
        for relation in SCHEMAS:
            assert self.ours(relation) == self.theirs(relation)


VIEW = """SELECT sum(amount) AS total FROM (
  SELECT amount FROM `bank.accounts` UNION ALL SELECT amount FROM `bank.savings`)"""


@given(st.integers(0, 1 << 32))
@settings(max_examples=25)
def test_tables_are_the_source_s_and_money_never_changes_its_sum(seed: int) -> None:
    """Crashes at every write, answers and log in any order, a second follower that takes over."""
    world = World(seed)
    world.name("accounts")
    world.name("savings")
    world.db.sql(f"CREATE MATERIALIZED VIEW total AS {VIEW}")
    older: list[Follower] = []
    for _ in range(60):
        act = world.random.random()
        if act < 0.45:
            world.move()
        elif act < 0.5:
            world.server.show()
        elif act < 0.6:
            world.server.deliver(world.random.randint(1, 4))
        elif act < 0.9:
            world.crashing()
        elif act < 0.93 and world.follower is not None:
            older.append(world.follower)
            world.follower = None
        elif act < 0.96:
            for follower in older:
                if world.follower is not None:
                    with pytest.raises(Conflict):
                        follower._write([], follower._progress)
        else:
            _check_total(world)
    world.settle()
    world.check_same()
    _check_total(world)
    assert world.db.view("total").to_arrow().to_pylist() == [{"total": TOTAL}]


def _check_total(world: World) -> None:
    """Whenever the view is there, the money is."""
    for _ in world.epochs():
        state = world.store.catalog.read(read_state)
        if state.status[state.view("total").id].state == LIVE:
            assert world.db.view("total").to_arrow().to_pylist() == [{"total": TOTAL}]


@given(st.integers(0, 1 << 32))
@example(5215)  # the follower dies, and an answer still hides what it had followed long before
@settings(max_examples=40)
def test_relations_come_and_stop_and_are_loaded_again(seed: int) -> None:
    """A truncated relation stays as it was until a reload; what was lost is loaded as a whole."""
    world = World(seed)
    world.name("accounts")
    stopped, is_lost, is_hard = "", False, world.random.random() < 0.5
    for _ in range(50):
        act = world.random.random()
        if act < 0.4 and any(world.server.rows.values()):
            world.move() if any(map(_has_money, world.server.rows.values())) else None
        elif act < 0.45:
            world.name("savings")
        elif act < 0.5 and is_hard and not stopped:
            stopped = world.random.choice(list(SCHEMAS))
            world.server.truncate(stopped)
            world.server.commit({"accounts": {9: {"id": 9, "amount": 5}}})
        elif act < 0.55 and is_hard and not is_lost:
            is_lost = True
            world.server.forgotten = len(world.server.log)
        elif act < 0.65:
            world.server.deliver(3)
        elif act < 0.7:
            tables = world.store.catalog.read(read_state).relations_of("bank")
            ask_reload(world.store, "bank", [world.random.choice(tables).id])
        else:
            try:
                world.crashing()
            except SourceLost:
                assert is_lost
                world.follower = None
    world.name("savings")
    if stopped or is_lost:
        ask_reload(world.store, "bank", None)
    world.settle()
    world.check_same()


def _has_money(rows: dict[Any, dict[str, Any]]) -> bool:
    return any(row["amount"] for row in rows.values())


def test_a_reload_brings_what_a_truncation_took_and_says_nothing_to_the_others() -> None:
    world = World(1)
    world.name("accounts")
    world.name("savings")
    world.server.commit({"savings": {("x", 1): {"owner": "x", "id": 1, "amount": 7}}})
    world.settle()
    world.server.truncate("savings")
    world.server.commit({"savings": {("x", 2): {"owner": "x", "id": 2, "amount": 8}}})
    world.server.commit({"accounts": {2: {"id": 2, "amount": 1}}})
    world.settle()
    assert world.ours("accounts") == world.theirs("accounts")
    assert world.ours("savings") == [{"owner": "x", "id": 1, "amount": 7}]
    state = world.store.catalog.read(read_state)
    progress, _ = read_progress(world.store, state.source("bank").progress)
    assert progress.stopped == {"savings": "savings was truncated"}

    ask_reload(world.store, "bank", [state.table("bank.savings").id])
    world.settle()
    world.check_same()
    progress, _ = read_progress(world.store, state.source("bank").progress)
    assert not progress.stopped


def test_a_relation_that_is_gone_at_the_source_does_not_stop_the_others() -> None:
    world = World(2)
    world.name("accounts")
    world.name("savings")
    world.settle()
    del world.server.schemas["savings"]
    world.follower = None
    world.server.commit({"accounts": {3: {"id": 3, "amount": 3}}})
    world.settle()
    assert world.ours("accounts") == world.theirs("accounts")
    state = world.store.catalog.read(read_state)
    progress, _ = read_progress(world.store, state.source("bank").progress)
    assert "no relation savings" in progress.stopped["savings"]


def test_an_altered_relation_stops_though_it_is_the_only_one() -> None:
    world = World(3)
    world.name("accounts")
    world.settle()
    columns = (*SCHEMAS["accounts"].columns, Column("more", BIGINT))
    world.server.schemas["accounts"] = Schema(columns, ("id",))
    world.follower = None
    world.settle()
    state = world.store.catalog.read(read_state)
    progress, _ = read_progress(world.store, state.source("bank").progress)
    assert progress.stopped == {"accounts": "its columns are not those that it had"}


def test_a_password_that_is_wrong_for_a_while_stops_no_relation() -> None:
    world = World(4)
    world.name("accounts")
    world.settle()
    world.server.is_locked = True
    world.follower = None
    for _ in range(3):
        with pytest.raises(SourceError, match="password"):
            world.follow()
    world.server.is_locked = False
    world.server.commit({"accounts": {3: {"id": 3, "amount": 3}}})
    world.settle()
    assert world.ours("accounts") == world.theirs("accounts")


def test_a_source_that_is_down_is_followed_from_where_it_was() -> None:
    world = World(3)
    world.name("accounts")
    world.name("savings")
    world.settle()
    world.server.is_down = True
    with pytest.raises(SourceUnreachable):
        world.follow()
    world.server.is_down = False
    world.server.commit({"accounts": {3: {"id": 3, "amount": 3}}})
    assert world.follower is not None
    world.follower.close()
    world.settle()
    world.check_same()
