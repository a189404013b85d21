"""EXPLAIN COST from samples: how many rows are read, what is kept of them, and how near the
estimates come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import belvedere
from belvedere.cost import Cost, estimate
from belvedere.cost.distinct import distinct, frequencies
from belvedere.cost.sample import ranks, take_samples
from belvedere.encoding import KeyCodec
from belvedere.statements.explain import try_plan, users
from belvedere.types import BIGINT

ORDERS, CUSTOMERS, LIMIT = 300_000, 25_000, 15_000
HOT, WARM = 4711, 12
Ints = npt.NDArray[np.int64]


class Shop:
    """Orders of customers, two of whom have very many; every tenth order is of nobody that is
    known.
    """

    def __init__(self, db: belvedere.Database) -> None:
        rng = np.random.default_rng(20261116)
        self.db = db
        self.customer = rng.integers(0, CUSTOMERS, ORDERS)
        self.customer[rng.random(ORDERS) < 0.05] = HOT
        self.customer[rng.random(ORDERS) < 0.01] = WARM
        self.customer[::10] += 10 * CUSTOMERS
        self.amount = rng.integers(0, 1000, ORDERS)
        self.place = rng.integers(0, 40, ORDERS)
        db.sql(
            "CREATE TABLE orders (id BIGINT, customer BIGINT, place BIGINT, amount BIGINT, PRIMARY"
            " KEY (id))"
        )
        db.sql("CREATE TABLE customers (id BIGINT, name STRING, PRIMARY KEY (id))")
        db.table("orders").put_many(
            pa.table(
                {
                    "id": np.arange(ORDERS),
                    "customer": self.customer,
                    "place": self.place,
                    "amount": self.amount,
                }
            )
        )
        names = pa.array([f"n{i // 2}" for i in range(CUSTOMERS)])
        db.table("customers").put_many(pa.table({"id": np.arange(CUSTOMERS), "name": names}))

    def cost(self, select: str, limit: int = LIMIT) -> Cost:
        state = self.db.state()
        name, planned = try_plan(state, select)
        return estimate(
            self.db.store, name, planned, list(state.tables.values()), users(state), limit
        )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with belvedere.open(tmp_path_factory.mktemp("cost") / "shop", slots=2) as db:
        yield Shop(db)


def near(found: float, wanted: float, factor: float = 2.0) -> bool:
    return wanted / factor <= found <= wanted * factor


def records(cost: Cost) -> dict[str, int]:
    return {
        f"{node.operator}: {state.what}": state.records
        for node in cost.nodes
        for state in node.state
    }


# ---------------------------------------------------------------- samples


def test_a_sample_keeps_small_tables_whole_and_knows_its_share_of_the_others(shop: Shop) -> None:
    state = shop.db.state()
    orders, customers = state.table("orders").id, state.table("customers").id
    samples = take_samples(shop.db.store, [orders, customers], 60_000)
    assert (samples[customers].rows, len(samples[customers].keys), samples[customers].one_in) == (
        CUSTOMERS,
        CUSTOMERS,
        1,
    )
    assert samples[orders].rows == ORDERS
    assert samples[orders].one_in == 16
    assert near(len(samples[orders].keys), ORDERS / 16, 1.1)
    assert len(samples[orders].keys) + CUSTOMERS <= 60_000


def test_samples_of_two_tables_with_the_same_keys_are_independent() -> None:
    keys = KeyCodec((BIGINT,)).encode([pa.array(np.arange(100_000))])
    a, b = (ranks(keys, table) < np.uint64(1 << 62) for table in (3, 4))
    assert abs(a.mean() - 0.25) < 0.01
    assert abs(b.mean() - 0.25) < 0.01
    assert abs((a & b).mean() - 0.0625) < 0.005


def test_wide_rows_count_by_their_bytes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belvedere.cost.sample.LIMIT_BYTES", 200_000)
    orders = shop.db.state().table("orders").id
    sample = take_samples(shop.db.store, [orders])[orders]
    assert sample.keys.nbytes + sample.values.nbytes <= 200_000
    assert sample.one_in > 4


# ---------------------------------------------------------------- estimates


def test_filtered_rows_and_groups_come_near(shop: Shop) -> None:
    cost = shop.cost(
        "SELECT customer, count(*) AS n, min(amount) AS m, count(DISTINCT place) AS p FROM orders"
        " WHERE amount < 300 GROUP BY customer"
    )
    chosen = shop.amount < 300
    groups = len(np.unique(shop.customer[chosen]))
    places = len(np.unique(shop.customer[chosen] * 40 + shop.place[chosen]))
    found = records(cost)
    assert not cost.exact
    assert near(found["KeyedSink: the view's table"], groups)
    assert near(found["Aggregate: groups"], groups)
    assert near(found["Aggregate: values of place"], places)
    assert near(found["Aggregate: values of amount"], chosen.sum(), 1.1)
    assert cost.tables[0].rows == ORDERS
    assert 0 < cost.tables[0].sampled <= LIMIT
    for state in (state for node in cost.nodes for state in node.state):
        assert state.low <= state.records <= state.high
        assert state.bytes > state.records


def test_what_a_join_keeps_and_meets_comes_near(shop: Shop) -> None:
    cost = shop.cost(
        "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON o.customer = c.id WHERE"
        " o.amount < 500"
    )
    chosen = shop.customer[shop.amount < 500]
    matched = int((chosen < CUSTOMERS).sum())
    (join,) = cost.joins
    sizes = sorted(
        state.records for node in cost.nodes for state in node.state if node.operator == "Arrange"
    )
    assert near(sizes[0], CUSTOMERS)
    assert near(sizes[1], len(chosen), 1.1)
    assert near(records(cost)["KeyedSink: the view's table"], matched, 1.3)
    assert near(join.left.matches, matched / len(chosen), 1.3)
    assert near(join.right.matches, matched / CUSTOMERS)
    counts = Counter(chosen.tolist()).most_common(2)
    assert [heavy.key for heavy in join.left.heaviest[:2]] == [(key,) for key, _ in counts]
    assert all(
        near(heavy.rows, rows) for heavy, (_, rows) in zip(join.left.heaviest, counts, strict=False)
    )
    text = str(
        shop.db.sql(
            "EXPLAIN COST SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id"
        )
    )
    assert f"a change of one row of customers with c.id = {HOT} touches about " in text
    assert f"of {ORDERS:,} rows" in text


def test_keys_that_only_chance_makes_frequent_are_not_taken_for_heavy(shop: Shop) -> None:
    (join,) = shop.cost(
        "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id"
    ).joins
    largest = Counter(shop.customer.tolist()).most_common(5)
    assert join.left.heaviest[3].rows <= 2 * largest[3][1]


def test_outer_semi_and_anti_joins_come_near(shop: Shop) -> None:
    few = f"SELECT customer FROM orders WHERE amount < 40 AND customer < {CUSTOMERS}"
    wanted = len(np.unique(shop.customer[(shop.amount < 40) & (shop.customer < CUSTOMERS)]))
    table = "KeyedSink: the view's table"
    assert near(records(shop.cost(f"SELECT id FROM customers WHERE id IN ({few})"))[table], wanted)
    nobody = (
        "SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id ="
        " o.customer)"
    )
    assert near(records(shop.cost(nobody))[table], ORDERS / 10)
    left = "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.customer"
    assert near(records(shop.cost(left))[table], ORDERS, 1.01)


def test_a_row_that_meets_itself_is_not_scaled_twice(shop: Shop) -> None:
    (join,) = shop.cost(
        "SELECT a.id AS a, b.id AS b FROM customers a JOIN customers b ON a.name = b.name", 3000
    ).joins
    assert near(join.pairs, 2 * CUSTOMERS, 1.3)


def test_a_condition_that_no_row_fulfils_with_itself_is_weighed_by_the_other_pairs(
    shop: Shop,
) -> None:
    twins = (
        "SELECT id FROM customers a WHERE EXISTS (SELECT 1 FROM customers b WHERE b.name = a.name"
        " AND b.id <> a.id)"
    )
    cost = shop.cost(twins, 4000)
    assert near(cost.joins[0].pairs, CUSTOMERS, 1.5)
    assert near(records(cost)["KeyedSink: the view's table"], CUSTOMERS)


def test_unions_sets_and_top_k_come_near(shop: Shop) -> None:
    distinct_customers = len(np.unique(shop.customer))
    known = len(np.intersect1d(shop.customer, np.arange(CUSTOMERS)))
    table = "KeyedSink: the view's table"
    both = records(shop.cost("SELECT customer FROM orders UNION SELECT id FROM customers"))
    assert near(both["Aggregate: groups"], len(np.union1d(shop.customer, np.arange(CUSTOMERS))))
    assert near(
        records(shop.cost("SELECT customer FROM orders INTERSECT SELECT id FROM customers"))[table],
        known,
    )
    assert near(
        records(shop.cost("SELECT id FROM customers UNION ALL SELECT id FROM orders"))[
            "BagSink: the view's table"
        ],
        ORDERS,
    )
    top = (
        "SELECT id, customer FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY"
        " amount, id) <= 1"
    )
    assert near(records(shop.cost(top))[table], distinct_customers)
    first = "SELECT id, amount FROM orders ORDER BY amount, id LIMIT 7"
    assert records(shop.cost(first))[table] == 7


def test_a_join_with_too_many_pairs_for_a_trial_is_thinned(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    select = (
        "SELECT o.place, c.name, count(*) AS n FROM orders o JOIN customers c ON o.customer = c.id"
        " GROUP BY o.place, c.name"
    )
    before = shop.cost(select)
    monkeypatch.setattr("belvedere.cost.joins.PAIRS", before.joins[0].seen // 4)
    after = shop.cost(select)
    assert after.joins == before.joins
    assert near(records(after)["Aggregate: groups"], records(before)["Aggregate: groups"])


# ---------------------------------------------------------------- estimators


def sampled(values: Ints, share: float) -> Ints:
    kept = values[np.random.default_rng(5).random(len(values)) < share]
    return np.asarray(np.unique(kept, return_counts=True)[1], np.int64)


@pytest.mark.parametrize("share", [0.3, 0.05])
@pytest.mark.parametrize("each", [1, 3, 20, 5000])
def test_distinct_values_that_are_equally_frequent_are_counted_well(
    each: int, share: float
) -> None:
    values = np.arange(100_000) // each
    found = distinct(sampled(values, share), len(values))
    assert near(found.value, 100_000 / each, 1.2)
    assert found.low <= found.value <= found.high <= len(values)


def test_distinct_values_of_a_skewed_relation_are_counted_within_a_factor_of_two() -> None:
    weights = 1 / np.arange(1, 20_001)
    values = np.random.default_rng(6).choice(20_000, 200_000, p=weights / weights.sum())
    assert near(distinct(sampled(values, 0.1), len(values)).value, len(np.unique(values)))


def test_a_few_hot_values_do_not_make_the_others_look_skewed() -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 20_000, 200_000)
    for hot in range(10):
        values[rng.random(len(values)) < 0.005] = hot
    assert near(distinct(sampled(values, 1 / 32), len(values)).value, 20_000)


def test_a_whole_relation_is_counted_exactly_and_nothing_has_no_values() -> None:
    counts = np.array([1, 1, 5], np.int64)
    assert distinct(counts, 7).value == 3
    assert frequencies(counts, 7, 3).tolist() == [1, 1, 5]
    nothing = np.empty(0, np.int64)
    assert distinct(nothing, 0).value == 0
    assert frequencies(nothing, 100, 0).tolist() == []


def test_equal_frequencies_are_seen_as_equal_and_a_heavy_one_stands_out() -> None:
    counts = np.append(sampled(np.arange(200_000) // 20, 0.05), 400)
    found = frequencies(counts, 208_000, 10_001)
    assert found[:-1].max() <= 40
    assert near(found[-1], 8000, 1.2)
