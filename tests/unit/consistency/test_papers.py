"""The examples of the papers, as histories: the judge names the level that each one misses."""

from __future__ import annotations

from typing import Any

import pytest

from belvedere.consistency import Verdict, judge
from belvedere.consistency.history import history_of

R = {"table": "r", "key": ["k"], "columns": {"k": "VARCHAR", "x": "VARCHAR", "y": "BIGINT"}}
S = {"table": "s", "key": ["j"], "columns": {"j": "VARCHAR", "x": "VARCHAR", "z": "BIGINT"}}
SUM = {"view": "d", "select": "SELECT x, sum(y) AS s FROM r GROUP BY x", "key": ["x"]}
MIN = {"view": "d", "select": "SELECT x, min(y) AS s FROM r GROUP BY x", "key": ["x"]}
SELECTION = {"view": "d", "select": "SELECT k, y AS s FROM r WHERE y < 300", "key": ["k"]}
JOIN = {"view": "d", "select": "SELECT x, y, z FROM r JOIN s USING (x)", "key": ["x"]}


def put(number: int, k: str, x: str, y: int, table: str = "r") -> dict[str, Any]:
    names = ("k", "x", "y") if table == "r" else ("j", "x", "z")
    return {"op": number, "table": table, "row": dict(zip(names, (k, x, y), strict=True))}


def delete(number: int, k: str) -> dict[str, Any]:
    return {"op": number, "table": "r", "key": [k], "row": None}


def seen(view: dict[str, Any], record: str, *values: int | None) -> list[dict[str, Any]]:
    (key,) = view["key"]
    rows = [None if v is None else {key: record, "s": v} for v in values]
    return [{"state": "d", "key": [record], "row": row} for row in rows]


def verdict(*lines: Any, begin: int = 0) -> Verdict:
    view = next(line for line in lines if "view" in line)
    view = {**view, "from": {"log": begin}}
    flat = [view if "view" in line else line for line in lines]
    (found,) = judge(history_of([R, S, *flat, {"final": "d"}]))
    return found


FOUR = [put(0, "k1", "x1", 100), put(1, "k2", "x1", 200), put(2, "k3", "x2", 300)]
FOUR += [put(3, "k4", "x2", 400), put(4, "k2", "x2", 200), put(5, "k4", "x1", 400)]


@pytest.mark.parametrize(("record", "wrong"), [("x1", 700), ("x2", 300)])
def test_wdp_example_1_two_managers_lose_no_update(record: str, wrong: int) -> None:
    first = 300 if record == "x1" else 700
    good = verdict(SUM, *FOUR, *seen(SUM, record, first, 500), begin=4)
    bad = verdict(SUM, *FOUR, *seen(SUM, record, first, wrong), begin=4)
    assert good.holds("strong")
    assert (bad.reached, bad.missed) == (None, "convergent")


def test_wdp_example_2_a_repeated_insert_makes_500() -> None:
    written = [put(0, "k1", "x1", 100), put(1, "k2", "x1", 200), put(2, "k3", "x1", 100)]
    assert verdict(SUM, *written, *seen(SUM, "x1", 300, 400), begin=2).reached == "complete"
    assert verdict(SUM, *written, *seen(SUM, "x1", 300, 500), begin=2).missed == "convergent"
    # if it is corrected later, it still was no state of the table
    assert verdict(SUM, *written, *seen(SUM, "x1", 300, 500, 400), begin=2).missed == "weak"


def test_wdp_example_3_updates_that_overtake() -> None:
    written = [put(n, "k1", "x1", y) for n, y in enumerate((5, 10, 20, 15))]
    found = verdict(SELECTION, *written, *seen(SELECTION, "k1", 5, 20, 10, 15), begin=1)
    assert (found.reached, found.missed) == ("weak", "strong")
    assert "s 10" in found.witness
    assert verdict(SELECTION, *written, *seen(SELECTION, "k1", 5, 20, 15)).reached == "strong"
    assert verdict(SELECTION, *written, *seen(SELECTION, "k1", 5, 20)).missed == "convergent"


def test_wdp_minimum_that_scans_the_base_table_is_weak() -> None:
    # 4 goes, 5 is the least, 2 comes and goes; a scan sees the 2 again after it has gone
    written = [put(0, "k1", "x1", 4), put(1, "k2", "x1", 5), delete(2, "k1")]
    written += [put(3, "k3", "x1", 2), delete(4, "k3")]
    assert verdict(MIN, *written, *seen(MIN, "x1", 4, 5, 2, 5), begin=2).reached == "complete"
    again = verdict(MIN, *written, *seen(MIN, "x1", 4, 2, 5, 2, 5), begin=2)
    assert (again.reached, again.missed) == ("weak", "strong")


def test_thesis_c2_an_insert_committed_twice() -> None:
    written = [put(0, "k1", "x1", 50), put(1, "k2", "x1", 100)]
    assert verdict(SUM, *written, *seen(SUM, "x1", 50, 150, 250), begin=1).missed == "convergent"


def pairs(*states: list[tuple[int, int]]) -> list[dict[str, Any]]:
    shown = [[{"x": "x1", "y": y, "z": z} for y, z in state] for state in states]
    return [{"state": "d", "key": ["x1"], "rows": rows} for rows in shown]


def test_thesis_c3_a_join_insert_after_its_delete() -> None:
    written = [put(0, "j1", "x1", 200, "s"), put(1, "k1", "x1", 100), delete(2, "k1")]
    late = verdict(JOIN, *written, *pairs([], [(100, 200)]), begin=1)
    assert late.missed == "convergent"
    assert verdict(JOIN, *written, *pairs([], [(100, 200)], []), begin=1).reached == "complete"


def test_thesis_c4_a_selection_shows_100_after_200() -> None:
    written = [put(0, "k1", "x1", 100), put(1, "k1", "x1", 200)]
    found = verdict(SELECTION, *written, *seen(SELECTION, "k1", None, 200, 100))
    assert found.missed == "convergent"


def test_thesis_c5_a_sum_that_loses_a_concurrent_commit() -> None:
    written = [put(0, "k1", "x1", 50), put(1, "k2", "x1", 100), put(2, "k3", "x1", 200)]
    lost = verdict(SUM, *written, *seen(SUM, "x1", 50, 150, 250), begin=1)
    assert lost.missed == "convergent"
    assert verdict(SUM, *written, *seen(SUM, "x1", 50, 250, 350), begin=1).reached == "strong"


def test_thesis_c6_a_minimum_of_a_concurrent_commit() -> None:
    written = [put(0, "k1", "x1", 500), put(1, "k2", "x1", 400), put(2, "k3", "x1", 200)]
    assert verdict(MIN, *written, *seen(MIN, "x1", 500, 200, 400), begin=1).missed == "convergent"


def test_thesis_c7_a_pair_that_is_joined_twice() -> None:
    written = [put(0, "k1", "x1", 100), put(1, "j1", "x1", 200, "s")]
    twice = [(100, 200), (100, 200)]
    assert verdict(JOIN, *written, *pairs([], [(100, 200)], twice)).missed == "convergent"
    assert verdict(JOIN, *written, *pairs([], twice, [(100, 200)])).missed == "weak"


def test_thesis_c8_a_minimum_of_200_after_500() -> None:
    written = [put(0, "k1", "x1", 200), put(1, "k2", "x1", 500), delete(2, "k1")]
    found = verdict(MIN, *written, *seen(MIN, "x1", 200, 500, 200, 500), begin=2)
    assert (found.reached, found.missed) == ("weak", "strong")


def test_thesis_6_2_2_a_manager_that_joins_between_key_and_owner() -> None:
    written = [put(0, "k3", "x1", 100), put(1, "k3", "x1", 150)]
    found = verdict(SELECTION, *written, *seen(SELECTION, "k3", 150, 100, 150))
    assert (found.reached, found.missed) == ("weak", "strong")


def test_a_group_move_seen_between_two_hops_is_convergent_only() -> None:
    """A total over totals takes the row out of one group before it is in the other."""
    total = {"view": "d", "select": "SELECT 0 AS x, sum(y) AS s FROM r", "key": ["x"]}
    written = [put(0, "k1", "a", 1), put(1, "k2", "b", 2), put(2, "k1", "b", 1)]
    states = [{"state": "d", "key": [0], "row": {"x": 0, "s": s}} for s in (3, 2, 3)]
    found = verdict(total, *written, *states, begin=2)
    assert (found.reached, found.missed) == ("convergent", "weak")
