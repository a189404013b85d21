"""Views over foreign tables equal the recomputed SELECT, whatever foreign clients do: partial puts,
all kinds of deletes, equal and backward time stamps, deliveries that come twice; and whenever tables
and views were created.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belvedere
from belvedere.catalog.definitions import LIVE, REQUESTED
from belvedere.catalog.loading import admit
from belvedere.catalog.state import new_id, read_state
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import CatalogError, PipelineError, Timeout
from belvedere.stores.base import (
    DELETE,
    DELETE_COLUMN,
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION,
    PUT,
    RowRange,
    TableId,
)
from belvedere.stores.memory.foreign import Cell, ForeignBase
from belvedere.stores.memory.rows import RowRules

TABLES = {
    "orders": (
        "CREATE TABLE orders (id STRING, customer STRING, amount BIGINT, PRIMARY KEY (id))"
        " USING hbase OPTIONS (table = 'shop:orders', columns = 'customer = d:c, amount = e:n')"
    ),
    "customers": (
        "CREATE TABLE customers (id STRING, region STRING, PRIMARY KEY (id))"
        " USING hbase OPTIONS (table = 'shop:customers', family = 'd')"
    ),
}
VIEWS = {
    "totals": "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer",
    "joined": (
        "SELECT o.id AS id, o.amount AS amount, c.region AS region"
        " FROM orders o LEFT JOIN customers c ON o.customer = c.id"
    ),
    "best": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2",
    "regions": "SELECT DISTINCT region FROM customers",
}
_COLUMNS = {"shop:orders": ((b"d", b"c"), (b"e", b"n")), "shop:customers": ((b"d", b"region"),)}
_VALUES = {
    b"c": st.sampled_from([b"a", b"b"]),
    b"n": st.integers(0, 3).map(lambda n: n.to_bytes(8, "big")),
    b"region": st.sampled_from([b"emea", b"apac"]),
}
Step = tuple[str, Any]
Bag = Counter[Any]


@st.composite
def cells(draw: st.DrawFn, source: str) -> Cell:
    family, qualifier = draw(st.sampled_from([*_COLUMNS[source], (b"d", b"not mapped")]))
    kinds = (PUT, PUT, PUT, DELETE, DELETE_COLUMN, DELETE_FAMILY, DELETE_FAMILY_VERSION)
    kind, time = draw(st.sampled_from(kinds)), draw(st.integers(1, 3))
    if kind == PUT:
        value = draw(_VALUES.get(qualifier, st.just(b"x")))
        return Cell(family, qualifier, kind, time, value)
    wide = kind in (DELETE_FAMILY, DELETE_FAMILY_VERSION)
    return Cell(family, b"" if wide else qualifier, kind, time)


@st.composite
def mutations(draw: st.DrawFn) -> Step:
    source = draw(st.sampled_from(sorted(_COLUMNS)))
    row = draw(st.sampled_from([b"a", b"b", b"o1"]))
    found = draw(st.lists(cells(source), min_size=1, max_size=3))
    distinct = {(c.family, c.qualifier, c.type, c.timestamp): c for c in found}
    return "mutate", (source, row, list(distinct.values()))


steps = st.one_of(
    mutations(),
    mutations(),
    mutations(),
    st.just(("again", None)),
    st.sampled_from([("view", name) for name in VIEWS]),
    st.just(("catch up", None)),
    st.just(("epoch", None)),
    st.sampled_from([("deliver", 1), ("deliver", 2)]),
)


class _World:
    def __init__(self) -> None:
        self.db: Database = belvedere.open("memory:", foreign=True, rows=RowRules(), slots=3)
        assert isinstance(self.db.store.base, ForeignBase)
        self.base = self.db.store.base
        self.base.sources.update({source: {} for source in _COLUMNS})
        self.last: tuple[str, bytes] | None = None
        self.views: set[str] = set()
        # of each view what it should be, by the position of the log after which it is so; and for
        # what happened, but is not logged yet
        self.history: dict[str, dict[int, Bag]] = {name: {} for name in VIEWS}
        self.coming: deque[dict[str, Bag]] = deque()
        self.fed: dict[str, tuple[int, Bag]] = {}  # sums of feeds, and up to which epoch

    def _delivered(self, position: int) -> None:
        for name, bag in self.coming.popleft().items():
            self.history[name][position] = bag

    def do(self, step: Step) -> None:
        self._do(step)
        self._check_live()

    def _do(self, step: Step) -> None:
        what, detail = step
        if what == "mutate":
            self.base.mutate(*detail)
            self.last = detail[:2]
            self.coming.append({name: self._recomputed(name) for name in self.views})
        elif what == "again" and self.last is not None:
            self.base.deliver_again(*self.last)
            self.coming.append({name: self._recomputed(name) for name in self.views})
        elif what == "deliver":
            self.base.deliver(detail)
        elif what == "view" and detail not in self.views:
            self.views.add(detail)
            for name, text in TABLES.items():
                if name in VIEWS[detail]:
                    self.db.sql(text.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
            self.db.sql(f"CREATE MATERIALIZED VIEW {detail} AS {VIEWS[detail]}")
        elif what == "epoch":
            self._one_epoch()
        elif what == "catch up":
            self.check()

    def _one_epoch(self) -> None:
        """A little progress: tables may be adopted and views built in part."""
        from belvedere.epochs.settings import Settings

        coordinator = self.db._coordinator(Settings(max_rows=2, load_rows=2))
        assert coordinator.acquire()
        coordinator.step()
        coordinator.release()

    def _check_live(self) -> None:
        """A view that is live is as the tables were at the committed position."""
        state = self.db.store.catalog.read(read_state)
        for name in self.views:
            past = self.history[name]
            at = max((p for p in past if p <= state.head.vector.operations), default=None)
            if state.status[state.view(name).id].state == LIVE and at is not None:
                assert _bag(self.db.view(name).to_arrow().to_pylist()) == past[at], name

    def check_feeds(self) -> None:
        """The sum of a feed is the view, at every epoch; and the past is what was shown."""
        state = self.db.store.catalog.read(read_state)
        for name in self.views:
            view = self.db.view(name)
            if state.status[state.view(name).id].state != LIVE:
                continue
            since, total = self.fed.get(name, (0, Counter()))
            with view.changes(since=since) as changes:
                for table in changes:
                    weights = table.column("_weight").to_pylist()
                    rows = table.drop_columns(["_epoch", "_weight"]).to_pylist()
                    for row, weight in zip(rows, weights, strict=True):
                        total[_cells(row)] += weight
                    shown = view.to_arrow(as_of=changes.epoch).to_pylist()
                    assert +total == _bag(shown), (name, changes.epoch)
                self.fed[name] = changes.epoch, +total
            assert +total == _bag(view.to_arrow().to_pylist()), name

    def check(self) -> None:
        self.db.catch_up()
        for name in self.views:
            found = self.db.view(name).to_arrow().to_pylist()
            assert _bag(found) == self._recomputed(name), name

    def _recomputed(self, name: str) -> Bag:
        return _bag(self.db.sql(VIEWS[name]).to_arrow().to_pylist())


def _bag(rows: list[dict[str, Any]]) -> Bag:
    return Counter(map(_cells, rows))


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(row.items(), key=lambda item: item[0]))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=3, max_size=30))
def test_views_equal_the_recomputed_select(done: list[Step]) -> None:
    world = _World()
    world.base.lags, world.base.delivered = True, world._delivered
    for step in done:
        world.do(step)
    world.check()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=3, max_size=30), st.sets(st.integers(0, 29)))
def test_the_sum_of_a_feed_is_the_view_and_the_past_is_kept(
    done: list[Step], looks: set[int]
) -> None:
    world = _World()
    world.db.keep_history(epochs=1000)
    for name in ("totals", "joined"):
        world.do(("view", name))
    tables: dict[int, Bag] = {}
    for number, step in enumerate(done):
        world.do(step)
        if number in looks or step[0] == "catch up":
            world.check()
            world.check_feeds()
            rows = world.db.table("orders").to_arrow().to_pylist()
            tables[world.db.status().epoch] = _bag(rows)
    for epoch, rows in tables.items():
        past = world.db.table("orders").to_arrow(as_of=epoch).to_pylist()
        assert _bag(past) == rows, epoch


@pytest.mark.parametrize("what", ["", "EXPLAIN ", "EXPLAIN COST "])
def test_complete_views_are_refused_where_transactions_have_no_order(what: str) -> None:
    world = _World()
    world.db.sql(TABLES["orders"])
    with pytest.raises(CatalogError, match="leave the option out, or ask for 'strong'"):
        world.db.sql(
            f"{what}CREATE MATERIALIZED VIEW v WITH (consistency = 'complete') AS {VIEWS['totals']}"
        )


def test_a_session_reads_what_it_wrote_and_what_it_is_told_of() -> None:
    world = _World()
    for text in TABLES.values():
        world.db.sql(text)
    world.db.sql(f"CREATE MATERIALIZED VIEW totals AS {VIEWS['totals']}")
    world.db.catch_up()
    with world.db.session(timeout=0) as session:
        session.table("orders").put({"id": "1", "customer": "a", "amount": 5})
        with pytest.raises(Timeout):
            session.view("totals").get("a")
        world.db.catch_up()
        assert session.view("totals").get("a") == {"customer": "a", "n": 1, "total": 5}
        world.base.mutate("shop:orders", b"1", [Cell(b"e", b"n", PUT, 99, (7).to_bytes(8, "big"))])
        session.wrote()
        with pytest.raises(Timeout):
            session.view("totals").get("a")


def test_a_dropped_table_leaves_the_foreign_one_alone() -> None:
    world = _World()
    world.base.mutate("shop:customers", b"a", [Cell(b"d", b"region", PUT, 1, b"emea")])
    world.db.sql(TABLES["customers"])
    world.db.catch_up()
    world.db.sql("DROP TABLE customers")
    assert list(world.base.sources["shop:customers"]) == [b"a"]
    world.db.sql(TABLES["customers"])
    world.db.sql(f"CREATE MATERIALIZED VIEW regions AS {VIEWS['regions']}")
    world.db.catch_up()
    assert world.db.view("regions").to_arrow().to_pylist() == [{"region": "emea"}]


class _Dying(LocalRunner):
    """Ends in the middle of a scan, the first times."""

    deaths = 2

    def scan(self, table: TableId, ranges: Sequence[RowRange]) -> None:
        assert self.store.foreign is not None
        for rows in reversed(ranges):
            self.store.foreign.log_range(table, rows)
            if _Dying.deaths:
                _Dying.deaths -= 1
                raise PipelineError("ended in the middle of a scan")


def test_a_scan_that_a_crash_interrupts_is_made_again() -> None:
    """What it had logged before is in the log twice, beside what was written meanwhile."""
    world = _World()
    world.db._runner = _Dying(world.db.store)
    for row, region in ((b"a", b"emea"), (b"x", b"apac")):
        world.base.mutate("shop:customers", row, [Cell(b"d", b"region", PUT, 1, region)])
    world.db.sql(TABLES["customers"])
    world.db.sql(f"CREATE MATERIALIZED VIEW regions AS {VIEWS['regions']}")
    for time in (2, 3):
        with pytest.raises(PipelineError, match="middle of a scan"):
            world.db.catch_up()
        world.base.mutate("shop:customers", b"x", [Cell(b"d", b"region", PUT, time, b"%d" % time)])
    world.views.add("regions")
    world.check()
    assert _Dying.deaths == 0


def test_a_view_waits_until_its_table_is_adopted() -> None:
    """Admitted earlier, it would show rows of the scan beside rows that the log has not reached."""
    world = _World()
    world.base.mutate("shop:customers", b"a", [Cell(b"d", b"region", PUT, 1, b"emea")])
    world.db.sql(TABLES["customers"])
    world.db.sql(f"CREATE MATERIALIZED VIEW regions AS {VIEWS['regions']}")
    world.db.store.catalog.transact(lambda t: admit(t, lambda: new_id(t)))
    state = world.db.store.catalog.read(read_state)
    assert state.status[state.view("regions").id].state == REQUESTED
    world.views.add("regions")
    world.check()
    state = world.db.store.catalog.read(read_state)
    assert state.adopting == {}
    assert state.status[state.view("regions").id].state == LIVE
