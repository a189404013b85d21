"""Up to three tables whose columns meet: few types, one small pool of values per type, many NULLs.

A column of another table's key type is a foreign key, with values that are there and values that
are not; two columns of one type that are keys of nothing join many to many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Column,
    Schema,
    SqlType,
    decimal,
)
from tests.laws.domains import Table, long_values, values

KEY_KINDS = (STRING, STRING, INT, INT, BIGINT, DATE, decimal(10, 2), BINARY, TIMESTAMP, DOUBLE)
VALUE_KINDS = (*KEY_KINDS, BOOLEAN, DOUBLE, decimal(5, 2))
_NEGATIVE_ZERO = -0.0
_MOST = 6  # values of a type


@dataclass(frozen=True)
class Odds:
    """What a case has or has not: each of these makes other constructs impossible to judge."""

    # equal to 0.0 and yet another key: ties between them have no order, so no top-k
    negative_zero: bool
    long: bool  # texts of any length, also in keys of tables
    huge: bool  # the same, and a few much longer ones


def random_odds(dice: Random) -> Odds:
    luck = dice.random()
    return Odds(dice.random() < 0.1, luck < 0.25, luck < 0.03)


def related_tables(dice: Random, odds: Odds) -> tuple[Table, ...]:
    """Tables over two to four types; numbers are always among them, else
    nothing could be summed.
    """
    keys = [dice.choice(KEY_KINDS) for _ in range(dice.choice([1, 2]))]
    kinds = [*keys, INT, *(dice.choice(VALUE_KINDS) for _ in range(dice.choice([0, 1])))]
    if odds.long:
        kinds = [*kinds, *[STRING] * len(kinds)]
    pools = {kind: _pool(dice, kind, odds) for kind in kinds}
    return tuple(_table(dice, keys, kinds, pools) for _ in range(dice.choice([1, 2, 2, 3, 3])))


def _table(
    dice: Random, keys: list[SqlType], kinds: list[SqlType], pools: dict[SqlType, list[Any]]
) -> Table:
    key = [Column(f"k{i}", dice.choice(keys), False) for i in range(dice.choice([1, 1, 1, 2]))]
    others = [
        Column(f"v{i}", dice.choice(kinds), dice.random() < 0.8) for i in range(dice.randint(1, 3))
    ]
    found = {c.name: pools[c.type] for c in key}
    found |= {
        c.name: [*_some(dice, pools[c.type]), *([None] if c.nullable else [])] for c in others
    }
    return Table(Schema((*key, *others), tuple(c.name for c in key)), found)


def _some(dice: Random, pool: list[Any]) -> list[Any]:
    """A small part of a pool, so that rows meet in groups and some keys are never referred to."""
    few = pool[:3]
    return dice.sample(few, min(len(few), dice.choice([2, 2, 3])))


def _pool(dice: Random, kind: SqlType, odds: Odds) -> list[Any]:
    if kind in (STRING, BINARY) and odds.long:
        return long_values(dice, kind, odds.huge)[:_MOST]
    found = (
        list(range(-1, _MOST - 1))
        if kind in (INT, BIGINT)
        else [v for v in values(kind, key=True) if _plain(v)][:_MOST]
    )
    if kind == DOUBLE and odds.negative_zero:
        found.append(_NEGATIVE_ZERO)
    dice.shuffle(found)
    return found


def _plain(value: Any) -> bool:
    """Sums of such values are exact in any order, and small enough for sums of sums."""
    if isinstance(value, float):
        return not math.isfinite(value) or (
            (value * 4).is_integer() and abs(value) < 100 and repr(value) != "-0.0"
        )
    if isinstance(value, bool | str | bytes):
        return True
    return not isinstance(value, int) or abs(value) <= 5
