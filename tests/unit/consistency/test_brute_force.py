"""The judge against one that tries everything: random histories, for records and whole views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.consistency import LEVELS, judge
from belvedere.consistency.history import history_of

TABLE = {"table": "r", "key": ["k"], "columns": {"k": "VARCHAR", "g": "VARCHAR", "y": "BIGINT"}}
SELECT = "SELECT g, sum(y) AS s FROM r GROUP BY g"
Base = dict[str, tuple[str, int]]
Point = tuple[int, ...]
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


def points(lines: Sequence[Sequence[Any]]) -> list[Point]:
    return list(product(*(range(len(line) + 1) for line in lines)))


def below(a: Point, b: Point) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


def paths(lines: Sequence[Sequence[Any]], at: Point) -> list[list[Point]]:
    """All orders in which the steps can be taken."""
    found: list[list[Point]] = []
    for i, line in enumerate(lines):
        if at[i] < len(line):
            found += paths(lines, (*at[:i], at[i] + 1, *at[i + 1 :]))
    return [[at, *path] for path in found] or [[at]]


def level_by_force(
    lines: list[list[Step]],
    streams: list[list[Step]],
    states: list[Any],
    show: Callable[[Base], Any],
    first: tuple[Point, Point] | None = None,
) -> str | None:
    """Try every assignment of source states to what was seen; `first`: the view begins there, in
    lines and streams.
    """

    def value(of: list[list[Step]], point: Point) -> Any:
        base: Base = {}
        for line, count in zip(of, point, strict=True):
            for step in line[:count]:
                base = apply(base, step)
        return show(base)

    least, begin = first or ((0,) * len(lines), (0,) * len(streams))
    if value(streams, tuple(len(line) for line in streams)) != states[-1]:
        return None
    values = {p: value(lines, p) for p in points(lines) if below(least, p)}
    choices = [[p for p, shown in values.items() if shown == state] for state in states]
    if not all(choices):
        return "convergent"
    if not any(all(map(below, c, c[1:])) for c in product(*choices)):
        return "weak"
    shown = deduplicated([value(streams, begin), *states])
    for path in paths(streams, begin):
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


def stream_names(steps: list[tuple[str, Step]]) -> list[str]:
    return sorted({stream for stream, _ in steps})


def by_stream(steps: list[tuple[str, Step]]) -> list[list[Step]]:
    return [[step for stream, step in steps if stream == name] for name in stream_names(steps)]


def by_row(steps: list[tuple[str, Step]]) -> dict[str, list[Step]]:
    rows: dict[str, list[Step]] = {}
    for _, step in steps:
        for key, row in dict(step).items():
            rows.setdefault(key, []).append([(key, row)])
    return rows


def judged(
    steps: list[tuple[str, Step]],
    seen: list[dict[str, Any]],
    decode: str | None,
    select: str = SELECT,
    begin: int = 0,
) -> Any:
    since = {"log": begin, "two": begin}
    view = {"view": "d", "select": select, "key": ["g"], "decode": decode, "from": since}
    lines: list[dict[str, Any]] = [TABLE, view, *lines_of(steps), *seen, {"final": "d"}]
    (found,) = judge(history_of(lines), explain=False)
    assert not found.unknown
    return found


@settings(max_examples=60, deadline=None)
@given(operations([1, 1, 2, 3]), st.data())
def test_whole_views_are_judged_as_by_trying_everything(
    steps: list[tuple[str, Step]], data: st.DataObject
) -> None:
    shown = [totals(base) for base in some_bases(steps)]
    states = data.draw(st.lists(st.sampled_from([*shown, {"a": 5}]), min_size=1, max_size=3))
    seen = [
        {"whole": "d", "rows": [{"g": g, "s": s} for g, s in state.items()]} for state in states
    ]
    streams = by_stream(steps)
    assert judged(steps, seen, None).reached == level_by_force(streams, streams, states, totals)


Shown = tuple[tuple[tuple[str, Any], ...], ...]  # the rows of record a


def _rows(*rows: dict[str, Any]) -> Shown:
    return tuple(sorted(tuple({"g": "a", **row}.items()) for row in rows))


def summed(base: Base) -> Shown:
    ys = [y for g, y in base.values() if g == "a"]
    return _rows({"s": sum(ys)}) if ys else ()


def least(base: Base) -> Shown:
    ys = [y for g, y in base.values() if g == "a"]
    return _rows({"s": min(ys)}) if ys else ()


def listed(base: Base) -> Shown:
    return _rows(*({"k": k, "y": y} for k, (g, y) in base.items() if g == "a"))


def paired(base: Base) -> Shown:
    """No row tells alone what it adds: each is there once for every other one."""
    rows = [{"k": k, "y": y} for k, (g, y) in base.items() if g == "a"]
    return _rows(*(row for row in rows for _ in rows[1:]))


def ranked(base: Base) -> Shown:
    ys = [y for g, y in base.values() if g == "a"]
    return _rows(*({"k": k, "y": y} for k, (g, y) in base.items() if g == "a" and len(ys) > 1))


KINDS: dict[str, tuple[str, Callable[[Base], Shown], list[Shown]]] = {
    "sum": (SELECT, summed, [_rows({"s": 5}), _rows({"s": 3}), ()]),
    "minimum": (
        "SELECT g, min(y) AS s FROM r GROUP BY g",
        least,
        [_rows({"s": 0}), _rows({"s": 64}), ()],
    ),
    "list": ("SELECT g, k, y FROM r", listed, [_rows({"k": "k", "y": 5}), ()]),
    "pairs": (
        "SELECT r.g, r.k, r.y FROM r JOIN r AS other ON r.g = other.g AND r.k <> other.k",
        paired,
        [_rows({"k": "k", "y": 1}), ()],
    ),
    "ranked": (
        "SELECT g, k, y FROM (SELECT *, count(*) OVER (PARTITION BY g) AS n FROM r) AS c WHERE n > 1",
        ranked,
        [_rows({"k": "k", "y": 1}), ()],
    ),
}


def agree_on_record(
    kind: str, steps: list[tuple[str, Step]], data: st.DataObject, decode: str | None
) -> None:
    select, show, strange = KINDS[kind]
    shown = [show(base) for base in some_bases(steps)]
    states = data.draw(st.lists(st.sampled_from([*shown, *strange]), min_size=1, max_size=3))
    seen = [{"state": "d", "key": ["a"], "rows": list(map(dict, state))} for state in states]
    begun = data.draw(st.sampled_from([0, 0, 1, 2]))
    before = sum(len(step) for _, step in steps[:begun])
    rows, streams = by_row(steps), by_stream(steps)
    first = (
        tuple(len(line) for line in rows_of(steps[:begun], rows)),
        tuple(sum(stream == s for s, _ in steps[:begun]) for stream in stream_names(steps)),
    )
    wanted = level_by_force(list(rows.values()), streams, states, show, first)
    found = judged(steps, seen, decode, select, before)
    assert found.reached == wanted
    later = None if wanted is None else LEVELS.index(wanted)
    assert found.missed == (LEVELS[0] if later is None else (*LEVELS, None)[later + 1])


def rows_of(some: list[tuple[str, Step]], rows: dict[str, list[Step]]) -> list[list[Step]]:
    early = by_row(some)
    return [early.get(key, []) for key in rows]


@settings(max_examples=30, deadline=None)
@given(operations([1, 1, 2, 3]), st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_records_are_judged_as_by_trying_everything(
    kind: str, steps: list[tuple[str, Step]], data: st.DataObject
) -> None:
    agree_on_record(kind, steps, data, None)


@settings(max_examples=30, deadline=None)
@given(operations([1]), st.data(), st.randoms(use_true_random=False))
@pytest.mark.parametrize(
    ("kind", "decode"),
    [
        ("sum", "powers"),
        ("minimum", "minimum"),
        ("list", "elements"),
        ("pairs", "elements"),  # cannot be decoded, so it has to be searched
        ("ranked", "elements"),
        ("minimum", "powers"),
        ("sum", "minimum"),
    ],
)
def test_decoded_records_are_judged_as_by_trying_everything(
    kind: str, decode: str, steps: list[tuple[str, Step]], data: st.DataObject, random: Random
) -> None:
    bits = random.sample(range(10), 10)  # every put has an amount of its own
    distinct = [
        (stream, [(k, row and (row[0], 1 << bits.pop())) for k, row in step])
        for stream, step in steps
    ]
    agree_on_record(kind, distinct, data, decode)


def test_two_versions_of_one_row_are_no_state() -> None:
    """5 is 1 and 4, which are versions of one row; the sum of both transactions is 12."""
    steps: list[tuple[str, Step]] = [
        ("two", [("m", ("a", 1))]),
        ("two", [("m", ("a", 2)), ("m", ("a", 4))]),
        ("log", [("k", ("a", 8))]),
    ]
    seen = [{"state": "d", "key": ["a"], "row": {"g": "a", "s": s}} for s in (5, 12)]
    assert judged(steps, seen, "powers").reached == "convergent"


def test_a_sum_of_no_versions_is_no_state() -> None:
    seen = [{"state": "d", "key": ["a"], "rows": rows} for rows in ([{"g": "a", "s": 0}], [])]
    assert judged([("log", [("k", None)])], seen, "powers").reached == "convergent"


def some_bases(steps: list[tuple[str, Step]]) -> list[Base]:
    """Right ones, and ones of halves of transactions."""
    base: Base = {}
    found = [base]
    for _, step in steps:
        for operation in step:
            base = apply(base, [operation])
            found.append(base)
    return [*found, base, base]
