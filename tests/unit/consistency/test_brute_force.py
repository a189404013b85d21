"""The judge against one that tries everything: random histories, for records and whole views."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.consistency import LEVELS, judge
from belvedere.consistency.history import history_of

TABLE = {"table": "r", "key": ["k"], "columns": {"k": "VARCHAR", "g": "VARCHAR", "y": "BIGINT"}}
SELECT = "SELECT g, sum(y) AS s FROM r GROUP BY g"
Base = dict[str, tuple[str, int]]
Step = list[tuple[str, tuple[str, int] | None]]  # one transaction


def operations(amounts: list[int]) -> st.SearchStrategy[list[tuple[str, Step]]]:
    row = st.tuples(st.sampled_from("ab"), st.sampled_from(amounts))
    step = st.lists(st.tuples(st.sampled_from("kl"), st.none() | row), min_size=1, max_size=2)
    # an operation on a row is always in the stream of the row
    one = step.map(lambda s: ("log", s)) | step.map(lambda s: ("two", [("m", r) for _, r in s]))
    return st.lists(one, min_size=1, max_size=4)


def apply(base: Base, step: Step) -> Base:
    after = dict(base)
    for key, row in step:
        after.pop(key, None)
        if row is not None:
            after[key] = row
    return after


def totals(base: Base) -> dict[str, int]:
    return {g: sum(y for h, y in base.values() if h == g) for g in {g for g, _ in base.values()}}


def points(lines: Sequence[Sequence[Any]]) -> list[tuple[int, ...]]:
    return list(product(*(range(len(line) + 1) for line in lines)))


def below(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


def paths(lines: Sequence[Sequence[Any]], at: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """All orders in which the steps can be taken."""
    found: list[list[tuple[int, ...]]] = []
    for i, line in enumerate(lines):
        if at[i] < len(line):
            found += paths(lines, (*at[:i], at[i] + 1, *at[i + 1 :]))
    return [[at, *path] for path in found] or [[at]]


def level_by_force(
    lines: list[list[Step]], streams: list[list[Step]], states: list[Any], record: str | None
) -> str | None:
    """Try every assignment of source states to what was seen."""

    def value(of: list[list[Step]], point: tuple[int, ...]) -> Any:
        base: Base = {}
        for line, count in zip(of, point, strict=True):
            for step in line[:count]:
                base = apply(base, step)
        found = totals(base)
        return found if record is None else found.get(record)

    end = tuple(len(line) for line in streams)
    if value(streams, end) != states[-1]:
        return None
    choices = [[p for p in points(lines) if value(lines, p) == state] for state in states]
    if not all(choices):
        return "convergent"
    if not any(all(map(below, c, c[1:])) for c in product(*choices)):
        return "weak"
    shown = deduplicated([value(streams, (0,) * len(streams)), *states])
    for path in paths(streams, (0,) * len(streams)):
        if deduplicated([value(streams, p) for p in path]) == shown:
            return "complete"
    return "strong"


def deduplicated(values: list[Any]) -> list[Any]:
    return [v for i, v in enumerate(values) if i == 0 or values[i - 1] != v]


def lines_of(steps: list[tuple[str, Step]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for tx, (stream, step) in enumerate(steps):
        for key, row in step:
            number = len(found)
            whole = row and {"k": key, "g": row[0], "y": row[1]}
            line = {"op": number, "stream": stream, "tx": tx, "table": "r", "key": [key]}
            found.append({**line, "row": whole})
    return found


def by_stream(steps: list[tuple[str, Step]]) -> list[list[Step]]:
    names = sorted({stream for stream, _ in steps})
    return [[step for stream, step in steps if stream == name] for name in names]


def by_row(steps: list[tuple[str, Step]]) -> list[list[Step]]:
    rows: dict[str, list[Step]] = {}
    for _, step in steps:
        for key, row in dict(step).items():
            rows.setdefault(key, []).append([(key, row)])
    return list(rows.values())


def judged(steps: list[tuple[str, Step]], seen: list[dict[str, Any]], decode: str | None) -> Any:
    view = {"view": "d", "select": SELECT, "key": ["g"], "decode": decode}
    lines: list[dict[str, Any]] = [TABLE, view, *lines_of(steps), *seen, {"final": "d"}]
    (found,) = judge(history_of(lines), explain=False)
    assert not found.unknown
    return found


@settings(max_examples=60, deadline=None)
@given(operations([1, 1, 2, 3]), st.data())
def test_whole_views_are_judged_as_by_trying_everything(
    steps: list[tuple[str, Step]], data: st.DataObject
) -> None:
    states = data.draw(st.lists(st.sampled_from(some_totals(steps)), min_size=1, max_size=3))
    seen = [
        {"whole": "d", "rows": [{"g": g, "s": s} for g, s in state.items()]} for state in states
    ]
    streams = by_stream(steps)
    assert judged(steps, seen, None).reached == level_by_force(streams, streams, states, None)


@settings(max_examples=60, deadline=None)
@given(operations([1, 1, 2, 3]), st.data())
def test_records_are_judged_as_by_trying_everything(
    steps: list[tuple[str, Step]], data: st.DataObject
) -> None:
    agree_on_record(steps, data, None)


@settings(max_examples=60, deadline=None)
@given(operations([1]), st.data())
def test_decoded_sums_are_judged_as_by_trying_everything(
    steps: list[tuple[str, Step]], data: st.DataObject
) -> None:
    bits = iter(range(60))  # every put has an amount of its own
    distinct = [
        (stream, [(k, row and (row[0], 1 << next(bits))) for k, row in step])
        for stream, step in steps
    ]
    agree_on_record(distinct, data, "powers")


def test_two_versions_of_one_row_are_no_state() -> None:
    """5 is 1 and 4, which are versions of one row; the sum of both transactions is 12."""
    steps: list[tuple[str, Step]] = [
        ("two", [("m", ("a", 1))]),
        ("two", [("m", ("a", 2)), ("m", ("a", 4))]),
        ("log", [("k", ("a", 8))]),
    ]
    seen = [{"state": "d", "key": ["a"], "row": {"g": "a", "s": s}} for s in (5, 12)]
    assert judged(steps, seen, "powers").reached == "convergent"


def agree_on_record(steps: list[tuple[str, Step]], data: st.DataObject, decode: str | None) -> None:
    values = sorted({t.get("a") or 0 for t in some_totals(steps)})
    states = [
        s or None for s in data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    ]
    seen = [
        {"state": "d", "key": ["a"], "row": None if s is None else {"g": "a", "s": s}}
        for s in states
    ]
    wanted = level_by_force(by_row(steps), by_stream(steps), states, "a")
    found = judged(steps, seen, decode)
    assert found.reached == wanted
    later = None if wanted is None else LEVELS.index(wanted)
    assert found.missed == (LEVELS[0] if later is None else (*LEVELS, None)[later + 1])


def some_totals(steps: list[tuple[str, Step]]) -> list[dict[str, int]]:
    """Right ones, ones of halves of transactions, and a strange one."""
    base: Base = {}
    found = [totals(base), {"a": 5}]
    for _, step in steps:
        for operation in step:
            base = apply(base, [operation])
            found.append(totals(base))
    return [*found, totals(base), totals(base)]
