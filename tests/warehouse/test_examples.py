"""The examples of the paper, event by event.

Relations are r1(A, B), r2(B, C), r3(C, D) at x, y and z, each with a key before its columns. Some
numbers in the paper's text are one too high: the scenario of "Example 1" is that of example 0.
"""

from __future__ import annotations

from random import Random

from belvedere.consistency.levels import COMPLETE, CONVERGENT, STRONG, WEAK
from belvedere.warehouse.evaluation import Evaluation
from belvedere.warehouse.machine import DELETE, INSERT, Query, Transaction, Update, substituted
from belvedere.warehouse.rows import Row
from tests.warehouse.levels import DIVERGES, reached
from tests.warehouse.sources import Tables
from tests.warehouse.spectrum import ALGORITHMS
from tests.warehouse.world import Schedule, World
from tests.warehouse.worlds import chain

R1, R2, R3 = (1, None, 2), (23, 2, 3), (4, 3, None)
JOINED = (*R1, *R2, *R3)


def tables(*relations: list[Row]) -> Tables:
    return {n: {(row[0],): row for row in rows} for n, rows in enumerate(relations)}


def scripted(algorithm: str, place: str, initial: Tables, transactions: list[Transaction]) -> World:
    """Parts commit when the script says so, and answers go to the left neighbour first."""
    return World(
        chain(place),
        initial,
        transactions,
        ALGORITHMS[algorithm],
        Random(0),
        Schedule(stagger=True),
        choose=min,
    )


def play(world: World, script: str) -> list[list[Row]]:
    """`deliver` is from the source's log over the spool to the process."""
    for event in script.split(", "):
        kind, name = event.split()
        for step in ("append", "receive") if kind == "deliver" else (kind,):
            assert (step, name) in world.events(), (event, world.events())
            world.step(step, name)
        while ("apply", "") in world.events():
            world.step("apply", "")
    assert not world.events()
    return [sorted(row for row, _ in state) for state in world.states]


def change(
    number: int, source: str, *updates: tuple[int, int, Row], position: int = 1, parts: str = ""
) -> Transaction:
    gid = f"g{number}" if parts else ""
    return Transaction(
        f"t{number}{source}",
        source,
        str(position),
        tuple(Update(*u) for u in updates),
        gid,
        tuple(parts),
    )


INSERT_R2 = change(1, "y", (INSERT, 1, R2))
DELETE_R1 = change(2, "x", (DELETE, 0, R1))
START = tables([R1], [], [R3])
LATE = "commit y, deliver y, evaluate x, answer x, commit x, deliver x, evaluate z, answer z"
EARLY = "commit y, deliver y, commit x, deliver x, evaluate x, answer x"


def test_example_0_conventional_maintenance_ends_with_a_row_that_should_not_be_there() -> None:
    world = scripted("conventional", "xyz", START, [INSERT_R2, DELETE_R1])
    assert play(world, LATE) == [[], [JOINED]]
    assert reached(world) == DIVERGES


def test_example_1_the_next_source_is_a_neighbour_of_what_is_known() -> None:
    shape = chain("xyz")
    query = Query(1, tuple(substituted(shape, [Update(INSERT, 1, R2)])))
    evaluation = Evaluation(shape, query, min)
    [to_x] = evaluation.start()
    assert (to_x.source, to_x.wanted[0].values) == ("x", ((2,),))
    [to_z] = evaluation.go_on(to_x, lambda term, member: [R1])
    assert (to_z.source, to_z.wanted[0].values) == ("z", ((3,),))
    assert not evaluation.go_on(to_z, lambda term, member: [R3])
    assert evaluation.answers == [[(R1, R2, R3)]]


def test_example_2_strobe_takes_a_deletion_out_of_the_answer() -> None:
    world = scripted("strobe", "xyz", START, [INSERT_R2, DELETE_R1])
    assert play(world, LATE) == [[]]
    assert reached(world) == COMPLETE


def test_example_3_strobe_shows_half_a_transaction_and_t_strobe_does_not() -> None:
    a, b = (1, None, 2), (3, None, 4)
    moved = change(1, "x", (DELETE, 0, a), (INSERT, 0, b))
    strobe = scripted("strobe", "x", tables([a]), [moved])
    assert play(strobe, "commit x, deliver x") == [[a], [], [b]]
    assert reached(strobe) == CONVERGENT
    t_strobe = scripted("t-strobe", "x", tables([a]), [moved])
    assert play(t_strobe, "commit x, deliver x") == [[a], [b]]
    assert reached(t_strobe) == COMPLETE


def test_example_4_t_strobe_shows_half_a_global_transaction_and_g_strobe_does_not() -> None:
    s34, s35, r13, r23 = (4, 3, None), (5, 3, None), (1, None, 3), (2, None, 3)
    transactions = [
        change(1, "x", (INSERT, 0, r13)),
        change(2, "y", (DELETE, 1, s34), parts="xy"),
        change(2, "x", (INSERT, 0, r23), position=2, parts="xy"),
    ]
    script = (
        "commit x, deliver x, commit y, commit x, evaluate y, deliver y, answer y,"
        " deliver x, evaluate y, answer y"
    )
    first, second = (*r13, *s35), (*r23, *s35)
    t_strobe = scripted("t-strobe", "xy", tables([], [s34, s35]), transactions)
    assert play(t_strobe, script) == [[], [first], [first, second]]
    assert reached(t_strobe) == WEAK
    g_strobe = scripted("g-strobe", "xy", tables([], [s34, s35]), transactions)
    assert play(g_strobe, script) == [[], [first, second]]
    assert reached(g_strobe) == STRONG


def test_example_5_c_strobe_compensates_a_deletion_that_comes_after_the_first_answer() -> None:
    world = scripted("c-strobe", "xyz", START, [INSERT_R2, DELETE_R1])
    assert play(world, f"{LATE}, evaluate z, answer z") == [[], [JOINED], []]
    assert reached(world) == COMPLETE


def test_example_6_c_strobe_compensates_a_deletion_that_the_first_answer_shows() -> None:
    world = scripted("c-strobe", "xyz", START, [INSERT_R2, DELETE_R1])
    assert play(world, f"{EARLY}, evaluate z, answer z") == [[], [JOINED], []]
    assert reached(world) == COMPLETE
