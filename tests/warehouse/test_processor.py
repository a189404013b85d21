"""The processor keeps little of what it has received, and never a query that is answered."""

from __future__ import annotations

from belvedere.warehouse.machine import DELETE, INSERT, Apply, Transaction, Update
from belvedere.warehouse.processor import Found, Processor, Subquery
from belvedere.warehouse.strobe import TStrobe
from tests.warehouse.worlds import chain

SHAPE = chain("xy")


def processor(unseen: int = 1_000) -> Processor:
    begin = Apply((), {"x": "0", "y": "0"})
    machine = TStrobe(SHAPE, begin.covered)
    return Processor(SHAPE, machine, lambda *positions: True, begin=begin, unseen=unseen)


def deletion(number: int) -> Transaction:
    return Transaction(f"t{number}", "x", str(number), (Update(DELETE, 0, (number, 0, 0)),))


def test_a_source_that_is_not_asked_for_long_is_asked_for_nothing() -> None:
    driven = processor(unseen=10)
    todo = [one for number in range(25) for one in driven.received(deletion(number))]
    [look] = [one for one in todo if isinstance(one, Subquery)]
    assert look.wanted == ()
    [again] = driven.answered(look, Found({}, {"t0"}.__contains__, "0"))
    assert isinstance(again, Subquery)  # it had received more than this answer shows
    assert driven.answered(again, Found({}, lambda transaction: True, "25")) == []
    [apply] = driven.received(deletion(25))
    assert isinstance(apply, Apply)
    assert list(apply.unseen["x"]) == ["t25"]


def test_an_answered_query_leaves_nothing_behind() -> None:
    driven = processor()
    inserted = Transaction("t1", "x", "1", (Update(INSERT, 0, (1, 0, 7)),))
    [asked] = driven.received(inserted)
    assert isinstance(asked, Subquery)
    assert (asked.source, asked.wanted[0].values) == ("y", ((7,),))
    assert driven.open_queries == 1
    found = Found({1: [(5, 7, 0), (5, 7, 0), (6, 8, 0)]}, lambda transaction: True, "0")
    [apply] = driven.answered(asked, found)
    assert isinstance(apply, Apply)
    assert apply.covered == {"x": "1", "y": "0"}
    assert driven.open_queries == 0
    assert driven.answered(asked, found) == []  # it comes again


def test_an_answer_waits_until_its_source_has_told_all_that_it_shows() -> None:
    """A source that has nothing to tell says how far it is."""
    begin = Apply((), {"x": "0", "y": "0"})
    machine = TStrobe(SHAPE, begin.covered)
    driven = Processor(SHAPE, machine, lambda s, a, b: int(a) >= int(b), begin=begin)
    [asked] = driven.received(Transaction("t1", "x", "1", (Update(INSERT, 0, (1, 0, 7)),)))
    assert isinstance(asked, Subquery)
    found = Found({1: [(5, 7, 0)]}, lambda transaction: True, "3")
    assert driven.answered(asked, found) == []
    assert driven.reached("y", "2") == []
    [apply] = driven.reached("y", "3")
    assert isinstance(apply, Apply)
