"""Random worlds: a chain of relations over sources, transactions of one of three kinds.

A row is (key, left, right), and joins where one's right is the next one's left. There are few keys
and values, so rows meet and keys come back.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from random import Random

from belvedere.warehouse.machine import DELETE, INSERT, Transaction, Update
from belvedere.warehouse.rows import Equality, Key, Member, Row, Shape
from belvedere.warehouse.rules import ALL, Rules
from tests.warehouse.sources import Tables
from tests.warehouse.world import ALL_CARE, Begin, Care, Schedule, World

SINGLE, LOCAL, GLOBAL, APART = "single", "local", "global", "apart"
PLACES = ("xy", "xy", "xyz", "xyz", "xxy", "xyx", "xyy")
KEYS = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of world: `transactions` of one update, of one source, global, or global with
    parts that commit apart and in different orders.
    """

    transactions: str = SINGLE
    project: bool | None = None  # without join columns in the view; None: at random
    keys: bool = True  # the view shows the keys of all relations
    lag: float = 0.4
    crash: float = 0.04
    bias: float = 0.5
    places: tuple[str, ...] = PLACES
    lookup: bool = False  # the second relation is joined on its key
    updates: int = 0  # how many transactions; 0: a few
    twice: bool = False  # the second relation is the first once more
    alike: float = 0.0  # how many rows have the same join columns


def world(seed: int, kind: Kind, begin: Begin, rules: Rules = ALL, care: Care = ALL_CARE) -> World:
    random = Random(seed)
    place = random.choice(kind.places)
    project = random.random() < 0.5 if kind.project is None else kind.project
    shape = chain(place, project, kind.keys, kind.lookup)
    initial = {
        n: {(key,): _row(random, key, n, kind) for key in range(KEYS) if random.random() < 0.6}
        for n in range(len(place))
    }
    if kind.twice:
        initial[1] = dict(initial[0])
    transactions = _transactions(random, shape, initial, kind)
    apart = kind.transactions == APART
    if apart:
        transactions = _in_different_orders(random, shape, transactions)
    # a third of the schedules have the one channel of the paper, and no crash
    calm = random.random() < 0.33
    schedule = Schedule(0.0 if calm else kind.lag, apart, 0.0 if calm else kind.crash, kind.bias)
    return World(shape, initial, _positioned(transactions), begin, random, schedule, rules, care)


def chain(place: str, project: bool = False, keys: bool = True, lookup: bool = False) -> Shape:
    members = tuple(Member(f"r{n}", s, ("k", "l", "r"), (0,)) for n, s in enumerate(place))
    joined = [0 if lookup and n == 1 else 1 for n in range(len(place))]
    equalities = tuple(Equality(n, 2, n + 1, joined[n + 1]) for n in range(len(place) - 1))
    if not keys:
        return Shape(members, equalities, ((0, 1), (len(place) - 1, 2)))
    columns = (0,) if project else (0, 1, 2)
    return Shape(members, equalities, tuple((n, c) for n in range(len(place)) for c in columns))


def _row(random: Random, key: int, member: int, kind: Kind) -> Row:
    if random.random() < kind.alike:
        return (key, 0, 0)
    values = KEYS if kind.lookup and member == 0 else 2
    return (key, random.randrange(2), random.randrange(values))


def _transactions(random: Random, shape: Shape, initial: Tables, kind: Kind) -> list[Transaction]:
    """Valid in this order."""
    state = {n: dict(rows) for n, rows in initial.items()}
    found = []
    for number in range(kind.updates or random.randrange(3, 7)):
        names = list(shape.sources)
        crosses = kind.transactions in (GLOBAL, APART) and len(names) > 1
        taking = (
            random.sample(names, 2) if crosses and random.random() < 0.6 else [random.choice(names)]
        )
        parts = tuple(sorted(taking)) if len(taking) > 1 else ()
        for name in taking:
            updates = tuple(_updates(random, shape, state, name, kind))
            gid = f"g{number}" if parts else ""
            found.append(Transaction(f"{number}{name}", name, "", updates, gid, parts))
    return found


def _updates(random: Random, shape: Shape, state: Tables, source: str, kind: Kind) -> list[Update]:
    single = kind.transactions == SINGLE
    updates: list[Update] = []
    for _ in range(1 if single else random.choice([0, 1, 1, 1, 2, 2, 3, 3])):
        there = [n for n, m in enumerate(shape.members) if m.source == source]
        member = random.choice(there[:1] if kind.twice else there)
        key, rows = random.randrange(KEYS), state[member]
        if old := rows.pop((key,), None):
            updates.append(Update(DELETE, member, old))
        if not old or (not single and random.random() < 0.4):
            rows[key,] = _row(random, key, member, kind)
            updates.append(Update(INSERT, member, rows[key,]))
    if kind.twice:
        updates += [replace(u, member=1) for u in updates]
    return updates


def _in_different_orders(
    random: Random, shape: Shape, transactions: list[Transaction]
) -> list[Transaction]:
    """Sources commit global transactions that have nothing in common in different orders, as two-
    phase commit does.
    """
    touched: dict[str, set[tuple[int, Key]]] = defaultdict(set)
    for t in transactions:
        touched[t.gid or t.id] |= {(u.member, u.row[:1]) for u in t.updates}
    found = []
    for name in shape.sources:
        line = [t for t in transactions if t.source == name]
        for i in range(len(line) - 1):
            one, other = line[i], line[i + 1]
            if (
                random.random() < 0.5
                and not touched[one.gid or one.id] & touched[other.gid or other.id]
            ):
                line[i], line[i + 1] = other, one
        found += line
    return found


def _positioned(transactions: list[Transaction]) -> list[Transaction]:
    """The position behind a transaction is its number at its source."""
    numbers: dict[str, int] = defaultdict(int)
    found = []
    for t in transactions:
        numbers[t.source] += 1
        found.append(replace(t, position=str(numbers[t.source])))
    return found
