"""Relations that are not kept: views over them are what their SELECT gives as of the position that
they contain, at every epoch, whoever crashes and whatever views come and go; and rows are here only
while somebody needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.capture import operations
from belvedere.capture.follower import Follower
from belvedere.capture.progress import progress_in_views, read_progress
from belvedere.catalog import layout
from belvedere.catalog.definitions import LIVE, Followed, TableDefinition
from belvedere.catalog.filling import claim_copy, keep_rows, note_filled
from belvedere.catalog.sources import ask_reload, create_relation
from belvedere.catalog.state import CatalogState, read_state
from belvedere.database import Database
from belvedere.epochs.settings import Settings
from belvedere.errors import Conflict, Dropped, NotKept
from belvedere.sources.base import Relation, SourceTransaction, Stopped
from belvedere.stores.memory import base_tables
from belvedere.types import Vector
from tests.unit.capture.scripted import Rows, ScriptedMonitor, Server
from tests.unit.capture.test_follower import SCHEMAS, Crash, World

VIEWS = {
    "plain": "SELECT id, amount FROM `bank.accounts`",
    "groups": "SELECT amount % 3 AS kind, count(*) AS n, sum(amount) AS total FROM `bank.accounts`"
    " GROUP BY amount % 3",
    "both": "SELECT a.id, s.owner, a.amount - s.amount AS more FROM `bank.accounts` a"
    " JOIN `bank.savings` s ON a.id = s.id",
}


def as_of(server: Server, relation: str, position: int) -> Rows:
    """The rows of a relation behind so many entries of the log."""
    rows: Rows = {}
    for entry in server.log[:position]:
        if entry.stopped == relation:
            rows.clear()
        for key, row in entry.changes.get(relation, {}).items():
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = row
    return rows


def expected(view: str, server: Server, position: int) -> list[tuple[Any, ...]]:
    accounts = as_of(server, "accounts", position).values()
    if view == "plain":
        return sorted((a["id"], a["amount"]) for a in accounts)
    if view == "both":
        savings = as_of(server, "savings", position).values()
        return sorted(
            (a["id"], s["owner"], a["amount"] - s["amount"])
            for a in accounts
            for s in savings
            if a["id"] == s["id"]
        )
    kinds: dict[int, list[int]] = {}
    for account in accounts:
        kinds.setdefault(account["amount"] % 3, []).append(account["amount"])
    return sorted((kind, len(some), sum(some)) for kind, some in kinds.items())


@dataclass
class CrashingCatalog:
    """A catalog one of whose transactions can be the last thing that a process does."""

    catalog: Any
    left: int = 0  # transactions until then; 0: never
    is_after: bool = False

    def transact(self, body: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.is_after:
            raise Crash
        done = self.catalog.transact(body)
        if self.left == 0:
            raise Crash
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self.catalog, name)


@dataclass
class Passing(World):
    """With views that come and go, and a coordinator that may be killed too."""

    path: str = ""  # of an embedded store
    time: float = 1.0  # as coordinators see it

    def __post_init__(self) -> None:
        super().__post_init__()
        self.catalog = CrashingCatalog(self.store.catalog)
        self.store.catalog = self.catalog
        self.server.commit({"savings": {("x", 1): {"owner": "x", "id": 1, "amount": 1}}})

    def opened(self) -> Database:
        return Database(self.path, slots=2) if self.path else super().opened()

    def name(self, relation: str) -> None:
        followed = Followed("bank", relation, passes=True)
        create_relation(self.store, f"bank.{relation}", followed, SCHEMAS[relation])

    def state(self) -> CatalogState:
        return self.store.catalog.read(read_state)

    def table(self, relation: str) -> TableDefinition:
        return self.state().table(f"bank.{relation}")

    def create(self, view: str) -> None:
        if view not in self.state().views:
            self.db.sql(f"CREATE MATERIALIZED VIEW {view} AS {VIEWS[view]}")

    def drop(self, view: str) -> None:
        self.db.sql(f"DROP MATERIALIZED VIEW IF EXISTS {view}")

    def run(self, most: int, is_checked: bool = True) -> None:
        """Some epochs; after each of them the views are right."""
        coordinator = self.db._coordinator(Settings(max_rows=3, load_rows=2))
        coordinator.now = lambda: self.time
        assert coordinator.acquire()
        for _ in range(most):
            report = coordinator.step()
            if is_checked:
                self.check()
            if report is None:
                break
        coordinator.release()

    def crashing(self) -> None:
        if self.random.random() < 0.3:
            self.catalog.left = self.random.randint(1, 2)
            self.catalog.is_after = self.random.random() < 0.5
        try:
            super().crashing()
        finally:
            self.catalog.left = 0

    def killed(self) -> None:
        """Epochs, by a process that ends within a transaction of the catalog or in front of it."""
        self.catalog.left = self.random.randint(1, 25)
        self.catalog.is_after = self.random.random() < 0.5
        try:
            self.run(8)
        except Crash:
            self.time += 3600.0  # its lease has expired
        self.catalog.left = 0

    def check(self) -> None:
        state = self.state()
        progress = state.source("bank").progress
        seen = progress_in_views(self.store, progress, state.head.vector)
        for view in state.views.values():
            if state.status[view.id].state == LIVE:
                assert seen is not None
                found = self.db.view(view.name).to_arrow().to_pylist()
                rows = sorted(tuple(row.values()) for row in found)
                assert rows == expected(view.name, self.server, int(seen.position or 0))
        self.check_kept(state)

    def check_kept(self, state: CatalogState) -> None:
        for relation in SCHEMAS:
            table = state.tables.get(f"bank.{relation}")
            if table is not None and state.is_kept(table) and table.id not in state.adopting:
                now, _ = read_progress(self.store, state.source("bank").progress)
                rows = self.db.table(table.name).to_arrow().to_pylist()
                assert rows == ordered(as_of(self.server, relation, int(now.position)))

    def rows_here(self) -> int:
        """How many rows are stored of relations, but not in views."""
        with self.store.base.snapshot() as snapshot:
            ids = [table.id for table in self.state().tables.values()]
            ids += [filled.table for filled in self.state().filled.values()]
            return sum(len(keys) for table in ids for keys, _ in snapshot.scan(table))


def ordered(rows: Rows) -> list[dict[str, Any]]:
    return [row for _, row in sorted(rows.items())]


def begun(seed: int, path: str = "") -> Passing:
    world = Passing(seed, path=path)
    for relation in SCHEMAS:
        world.name(relation)
    return world


def live(seed: int, *views: str) -> Passing:
    """With views that are live."""
    world = begun(seed)
    for view in views:
        world.create(view)
    world.settle()
    world.run(50)
    return world


def act(world: Passing, older: list[Follower]) -> None:
    number = world.random.random()
    if number < 0.3:
        world.move()
    elif number < 0.35:
        world.server.show()
    elif number < 0.45:
        world.server.deliver(world.random.randint(1, 4))
    elif number < 0.7:
        try_to(world.crashing, world)
    elif number < 0.74 and world.follower is not None:
        older.append(world.follower)
        world.follower = None
    elif number < 0.77:
        for follower in older:
            if world.follower is not None:
                with pytest.raises((Conflict, Dropped)):
                    follower._write([], follower._progress)
    elif number < 0.85:
        world.create(world.random.choice(list(VIEWS)))
    elif number < 0.88:
        world.drop(world.random.choice(list(VIEWS)))
    elif number < 0.93:
        world.killed()
    elif number < 0.94:
        keep_rows(world.store, world.table(world.random.choice(list(SCHEMAS))).id)
    else:
        world.run(world.random.randint(1, 12))


def try_to(follow: Any, world: Passing) -> None:
    """What is forgotten meanwhile ends a follower, and the next one looks again."""
    try:
        follow()
    except Dropped:
        world.follower, world.base.crash = None, ""


def finish(world: Passing) -> None:
    world.settle()
    world.run(500)
    state = world.state()
    assert all(state.status[view.id].state == LIVE for view in state.views.values())
    assert all(filled.keep for filled in state.filled.values()), "nobody needs the others"
    assert not world.store.catalog.read(layout.FORGOTTEN.all)
    kept = [r for r in SCHEMAS if state.is_kept(state.table(f"bank.{r}"))]
    assert world.rows_here() == sum(len(world.server.rows[relation]) for relation in kept)


@given(st.integers(0, 1 << 32))
@settings(max_examples=60)
def test_views_are_right_at_every_epoch_whoever_crashes(seed: int) -> None:
    world, older = begun(seed), list[Follower]()
    for _ in range(70):
        act(world, older)
    finish(world)


@given(st.integers(0, 1 << 32))
@settings(max_examples=8)
def test_so_they_are_in_a_directory(seed: int) -> None:
    with TemporaryDirectory() as folder:
        world, older = begun(seed, str(Path(folder) / "db")), list[Follower]()
        for _ in range(50):
            act(world, older)
        finish(world)
        world.db.close()


@given(st.integers(0, 1 << 32))
@settings(max_examples=40)
def test_what_stopped_or_was_lost_is_loaded_again_and_views_with_it(seed: int) -> None:
    world, is_wrong = begun(seed), False
    for _ in range(60):
        number = world.random.random()
        if number < 0.04 and not is_wrong:
            world.server.truncate(world.random.choice(list(SCHEMAS)))
            world.server.commit({"accounts": {9: {"id": 9, "amount": 5}}})
            is_wrong = True
        elif number < 0.08:
            relations = [world.table(r).id for r in SCHEMAS if world.random.random() < 0.7]
            ask_reload(world.store, "bank", relations or None)
        elif number < 0.3 and any(row["amount"] for row in world.server.rows["accounts"].values()):
            world.move()
        elif number < 0.4:
            world.server.deliver(3)
        elif number < 0.6:
            try_to(world.crashing, world)
        elif number < 0.7:
            world.create(world.random.choice(list(VIEWS)))
        elif number < 0.73:
            world.drop(world.random.choice(list(VIEWS)))
        elif number < 0.74:
            keep_rows(world.store, world.table(world.random.choice(list(SCHEMAS))).id)
        elif is_wrong:
            world.run(5, is_checked=False)
        else:
            world.run(5)
    ask_reload(world.store, "bank", None)
    finish(world)


def test_a_transaction_that_is_divided_reaches_views_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends at every write, one after the other."""
    monkeypatch.setattr(base_tables, "_LARGEST_WRITE", 6000)
    monkeypatch.setattr(operations, "PART_BYTES", 1000)
    for crash_at in range(12):
        world = live(crash_at, "plain", "groups")
        world.create("both")  # so that a table is filled as well
        many: Rows = {number: {"id": number, "amount": number} for number in range(200)}
        world.server.commit({"accounts": {**many}})
        world.server.commit({"accounts": dict.fromkeys(range(100, 200))})
        world.server.deliver()
        _crash_at(world, crash_at)
        finish(world)
        world.check()


def _crash_at(world: Passing, number: int) -> None:
    """After so many writes."""
    real = world.base.base.write_all
    left = iter(range(number))

    def write_all(*arguments: Any, **named: Any) -> Any:
        written = real(*arguments, **named)
        if next(left, None) is None:
            raise Crash
        return written

    world.base.base.write_all = write_all
    try:
        for _ in range(4):
            world.follow()
    except Crash:
        world.follower = None
    world.base.base.write_all = real


def test_rows_are_here_only_until_views_are_loaded() -> None:
    world = live(1, "plain")
    assert (world.rows_here(), world.state().filled) == (0, {})
    with pytest.raises(NotKept, match="ALTER SOURCE bank COPY accounts"):
        world.db.table("bank.accounts")
    world.server.commit({"accounts": {5: {"id": 5, "amount": 50}}})
    world.create("groups")
    world.settle()
    assert world.rows_here() == 0
    world.run(50)
    world.check()


def test_a_view_that_comes_after_a_stop_waits_and_says_why() -> None:
    world = live(2, "plain")
    world.server.truncate("accounts")
    world.server.commit({"accounts": {7: {"id": 7, "amount": 7}}})
    world.settle()
    world.create("groups")
    world.server.deliver()
    for _ in range(3):
        world.follow()
    state = world.state()
    progress, _ = read_progress(world.store, state.source("bank").progress)
    assert "ALTER SOURCE bank RELOAD accounts" in progress.stopped["accounts"]
    assert progress.refused["accounts"] == state.head.version
    ask_reload(world.store, "bank", [world.table("accounts").id])
    finish(world)
    world.check()
    assert len(world.state().views) == 2


def test_without_views_a_stopped_relation_is_followed_again() -> None:
    world = live(3, "plain")
    world.server.truncate("accounts")
    world.settle()
    world.drop("plain")
    world.create("plain")
    world.server.commit({"accounts": {7: {"id": 7, "amount": 7}}})
    finish(world)
    world.check()


def test_a_view_that_is_dropped_before_it_is_loaded_leaves_nothing() -> None:
    world = begun(4)
    world.create("plain")
    world.server.deliver()
    for _ in range(2):
        world.follow()
    world.drop("plain")
    world.run(5)
    assert world.state().filled == {}
    assert not world.state().adopting
    world.follower = None
    world.create("both")
    finish(world)
    world.check()


def test_a_position_never_goes_back_and_nothing_passes_twice() -> None:
    """A server says of a relation that it stopped at a place before what others did."""
    world = live(6, "plain", "groups")
    for number in (5, 6):
        world.server.commit({"accounts": {number: {"id": number, "amount": number}}})
    world.settle()
    assert world.follower is not None
    progress = world.state().source("bank").progress
    before, _ = read_progress(world.store, progress)
    world.follower._take(Stopped("savings", "1", "it was altered"), {})
    after, _ = read_progress(world.store, progress)
    assert (after.position, list(after.stopped)) == (before.position, ["savings"])
    first = world.server.log[-2]
    change = ScriptedMonitor(world.server, _relations(), 0)._change(first, "accounts")
    again = SourceTransaction(first.name, str(first.number + 1), 0.0, (change,))
    world.follower._take(again, {"accounts": world.table("accounts")})
    assert read_progress(world.store, progress)[0].position == before.position
    world.follower = None
    world.run(50)
    world.check()
    assert world.db.view("plain").to_arrow().num_rows == len(world.server.rows["accounts"])


def _relations() -> dict[str, Relation]:
    return {name: Relation(name, schema) for name, schema in SCHEMAS.items()}


def test_only_the_last_copy_that_was_begun_can_be_completed() -> None:
    """A follower that was stopped in between comes back late."""
    world = begun(5)
    world.create("plain")
    table = world.table("accounts").id
    filled = world.state().filled[table]
    older = claim_copy(world.store, table, filled)
    newer = claim_copy(world.store, table, filled)
    assert older != newer
    note_filled(world.store, table, older, Vector({"log": 1}))
    assert world.state().adopting[table] is None
    note_filled(world.store, table, newer, Vector({"log": 1}))
    assert world.state().adopting[table] == Vector({"log": 1})
    assert not claim_copy(world.store, table, filled), "it is there"
    ask_reload(world.store, "bank", [table])
    assert world.state().adopting[table] is None
    assert not claim_copy(world.store, table, filled), "of another table"


def test_a_kept_relation_of_before_stays_so() -> None:
    data = TableDefinition(1, "s.r", SCHEMAS["accounts"], followed=Followed("s", "r")).to_bytes()
    without = data.replace(b', "passes": false', b"")
    assert without != data
    assert not TableDefinition.from_bytes(without).passes
