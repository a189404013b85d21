"""Transactions, questions and answers as sources tell and take them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from belvedere.sources.base import Answer, Part, Relation, RelationChange, SourceTransaction
from belvedere.types import Column, Schema, parse_type
from belvedere.warehouse.evaluation import Wanted
from belvedere.warehouse.exchange import found_in, is_far, questions, transaction_of
from belvedere.warehouse.machine import DELETE, INSERT, Update
from belvedere.warehouse.rows import Equality, Member, Shape, join
from tests.unit.capture.scripted import ScriptedSource, Server

SCHEMA = Schema(
    (
        Column("id", parse_type("STRING"), False),
        Column("note", parse_type("STRING"), True),
        Column("item", parse_type("BIGINT"), True),
    ),
    ("id",),
)
ORDERS = Relation("orders", SCHEMA)
SHAPE = Shape(
    (
        Member("orders", "shop", ("id", "item"), (0,)),
        Member("items", "crm", ("id", "item"), (0,)),
    ),
    (Equality(0, 0, 1, 0),),
    ((0, 0), (0, 1), (1, 0), (1, 1)),
)


SCRIPT = ScriptedSource(Server({"orders": SCHEMA}))


def shown_up_to(end: int) -> str:
    """The marker of an answer that shows t0, t1, ... before t<end>."""
    return json.dumps({"end": end, "hidden": []})


def orders(*rows: tuple[str, str | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA.arrow
    )


def told(part: Part | None, *changes: RelationChange) -> SourceTransaction:
    return SourceTransaction("t1", "p1", 0.0, changes, part)


def test_a_change_is_the_rows_that_travel_and_one_of_other_columns_is_none() -> None:
    change = RelationChange(
        "orders",
        orders(("a", "old", 1), ("b", "old", 1), ("c", None, 2)),
        orders(("a", "new", 1), ("b", "old", 7), ("d", None, None)),
    )
    other = RelationChange("unknown", orders(("z", None, 1)), orders())
    found = transaction_of(SHAPE, "shop", told(None, change, other))
    assert (found.id, found.source, found.position, found.parts) == ("t1", "shop", "p1", ())
    assert found.updates == (
        Update(DELETE, 0, ("b", 1)),
        Update(DELETE, 0, ("c", 2)),
        Update(INSERT, 0, ("b", 7)),
        Update(INSERT, 0, ("d", None)),
    )


def test_a_relation_of_the_same_name_at_another_source_is_another() -> None:
    change = RelationChange("orders", orders(), orders(("a", None, 1)))
    assert transaction_of(SHAPE, "crm", told(None, change)).updates == ()


def test_only_parts_at_sources_of_the_view_are_waited_for() -> None:
    found = transaction_of(SHAPE, "shop", told(Part("g", ("shop", "crm", "bank"))))
    assert (found.gid, found.parts) == ("g", ("crm", "shop"))
    found = transaction_of(SHAPE, "shop", told(Part("g", ("shop", "bank"))))
    assert (found.gid, found.parts) == ("", ())


def test_values_are_asked_in_chunks_and_every_column_that_travels_is() -> None:
    wanted = [Wanted(0, (0,), tuple((str(n),) for n in range(25)))]
    asked = questions(SHAPE, {0: ORDERS}, wanted, size=10)
    assert [q.keys.num_rows for _, q in asked if q.keys is not None] == [10, 10, 5]
    assert all(q.columns == ("id", "item") for _, q in asked)
    values = [v for _, q in asked if q.keys is not None for v in q.keys["id"].to_pylist()]
    assert values == [str(n) for n in range(25)]


def test_numbers_that_a_column_cannot_have_are_not_asked_for() -> None:
    schema = Schema((Column("id", parse_type("INT"), False),), ("id",))
    shape = Shape((Member("small", "shop", ("id",), (0,)),), (), ((0, 0),))
    numbers = [-(1 << 31) - 1, -(1 << 31), 7, (1 << 31) - 1, 1 << 31, 1 << 62]
    wanted = [Wanted(0, (0,), tuple((n,) for n in numbers))]
    [(_, question)] = questions(shape, {0: Relation("small", schema)}, wanted)
    assert question.keys is not None
    assert question.keys["id"].to_pylist() == numbers[1:4]


def test_all_rows_and_no_row_are_questions_too() -> None:
    [(_, everything)] = questions(SHAPE, {0: ORDERS}, [Wanted(0)])
    assert everything.keys is None
    [(_, nothing)] = questions(SHAPE, {0: ORDERS}, [Wanted(0, (1,), ())])
    assert nothing.keys is not None
    assert nothing.keys.num_rows == 0
    assert nothing.keys.schema.field("item").type == pa.int64()


def test_an_answer_with_rows_that_nobody_asked_for_is_compared_again() -> None:
    """Servers that compare texts without regard to case return too much."""
    asked = questions(SHAPE, {0: ORDERS}, [Wanted(0, (0,), (("a",),))])
    table = orders(("a", None, 1), ("A", None, 2)).select(["id", "item"])
    answer = Answer(shown_up_to(2), "2", (iter([table]),))
    found = found_in(SHAPE, asked, [answer], SCRIPT)
    assert (found.end, found.shows("t1"), found.shows("t2")) == ("2", True, False)
    known = [(None, ("a", 5))]
    assert join(SHAPE, known, {1}, 0, found.rows[0]) == [(("a", 1), ("a", 5))]


@pytest.mark.parametrize("ends", [(1, 3), (3, 1)])
def test_answers_of_several_moments_show_what_all_of_them_show_and_end_with_the_last(
    ends: tuple[int, int],
) -> None:
    asked = questions(SHAPE, {0: ORDERS}, [Wanted(0, (0,), (("a",), ("b",)))], size=1)
    rows = [orders((key, None, 1)).select(["id", "item"]) for key in "ab"]
    answers = [
        Answer(shown_up_to(end), str(end), (iter([table]),))
        for end, table in zip(ends, rows, strict=True)
    ]
    found = found_in(SHAPE, asked, answers, SCRIPT)
    assert found.rows == {0: [("a", 1), ("b", 1)]}
    assert (found.end, found.shows("t0"), found.shows("t1")) == ("3", True, False)


def test_many_values_are_asked_far_from_here() -> None:
    asked = questions(SHAPE, {0: ORDERS}, [Wanted(0, (0,), (("a",), ("b",)))], size=1)
    everything = questions(SHAPE, {0: ORDERS}, [Wanted(0)])
    assert is_far([asked], 1)
    assert is_far([asked[:1], asked[1:]], 1)
    assert not is_far([asked, everything], 2)


def test_null_is_joined_with_nothing() -> None:
    assert join(SHAPE, [(None, (None, 5))], {1}, 0, [(None, 1), ("a", 1)]) == []
