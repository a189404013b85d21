"""Which algorithm keeps a view, and why another one does not fit.

A level of consistency chooses, an algorithm that is named overrides. What an algorithm reaches
depends on the transactions of the sources: of one update each (single), at one source each (local),
or over several of them (global).
"""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.catalog.definitions import batches_text
from belvedere.errors import SqlError
from belvedere.warehouse.cuts import WHEN_DUE
from belvedere.warehouse.rows import Shape

CONVERGENT, WEAK, STRONG, COMPLETE = LEVELS = ("convergent", "weak", "strong", "complete")
DIVERGES = "diverges"  # less than any level
SINGLE, LOCAL, GLOBAL = SCENARIOS = ("single", "local", "global")
AUTO = "auto"

# what is reached for single, local and global transactions; tests/warehouse measures it
REACHES: dict[str, tuple[str, str, str]] = {
    "strobe": (STRONG, CONVERGENT, CONVERGENT),
    "t-strobe": (STRONG, STRONG, WEAK),
    "g-strobe": (STRONG, STRONG, STRONG),
    "c-strobe": (COMPLETE, COMPLETE, STRONG),
    "asof": (COMPLETE, COMPLETE, STRONG),
    "conventional": (DIVERGES, DIVERGES, DIVERGES),
}
PERIODIC = ("c-strobe", "asof")
# a deletion must tell the whole row, not the key alone
NEED_ROWS_BEFORE = ("c-strobe", "asof")
NEED_DIFFERENT_RELATIONS = ("strobe", "t-strobe", "g-strobe", "c-strobe", "conventional")
_CHOSEN: dict[str, tuple[str, str, str]] = {
    CONVERGENT: ("strobe", "strobe", "strobe"),
    WEAK: ("strobe", "t-strobe", "t-strobe"),
    STRONG: ("strobe", "t-strobe", "g-strobe"),
    COMPLETE: ("asof", "asof", ""),
}


@dataclass(frozen=True, slots=True)
class Choice:
    algorithm: str
    every: int  # transactions that are taken together; WHEN_DUE: all of a period
    reaches: str
    period: float = 0.0  # seconds


def choose(
    shape: Shape,
    scenario: str,
    consistency: str | None = None,
    algorithm: str | None = None,
    every: int = 1,
    has_before: bool = True,
    period: float = 0.0,
) -> Choice:
    """Raises SqlError for what does not fit, with the reason and the way out.

    `auto` with a level is what asks least and reaches it, without one what does with the fewest
    conditions: no keys, no quiet moment. `has_before`: the sources tell whole rows before changes.
    A `period` is the time between batches, in seconds, and stands for `every`.
    """
    every = WHEN_DUE if period else every
    if not period and every < 1:
        raise SqlError(f"every = {every} is no number of transactions: use 1 or more")
    _check_word("consistency", consistency, LEVELS)
    _check_word("algorithm", algorithm, (*REACHES, AUTO))
    column = SCENARIOS.index(scenario)
    is_left_to_us = algorithm in (None, AUTO)
    chosen = _least(shape, consistency, column, every) if is_left_to_us else str(algorithm)
    _check_fits(shape, chosen, every, has_before)
    reached = _reached(chosen, column, every)
    if consistency is not None and _is_below(reached, consistency):
        batches = batches_text(every, period)
        raise SqlError(_too_weak(chosen, batches, reached, consistency, column))
    return Choice(chosen, every, reached, period)


def _check_word(option: str, word: str | None, known: tuple[str, ...]) -> None:
    if word is not None and word not in known:
        raise SqlError(f"{option} = '{word}' is not known: use one of {', '.join(known)}")


def _least(shape: Shape, consistency: str | None, column: int, every: int) -> str:
    """What asks least and reaches the level; `asof` if no level is wanted, or nothing else fits."""
    if consistency is None or every != 1 or not shape.has_keys or _twice(shape):
        return "asof"
    return _CHOSEN[consistency][column] or "asof"


def _twice(shape: Shape) -> list[tuple[str, str]]:
    """Relations that are read more than once."""
    relations = [(m.source, m.name) for m in shape.members]
    return [name for n, name in enumerate(relations) if name in relations[:n]]


def _reached(algorithm: str, column: int, every: int) -> str:
    """Batches of several transactions skip states."""
    level = REACHES[algorithm][column]
    return STRONG if every != 1 and level == COMPLETE else level


def _is_below(level: str, wanted: str) -> bool:
    return level == DIVERGES or LEVELS.index(level) < LEVELS.index(wanted)


def _check_fits(shape: Shape, algorithm: str, every: int, has_before: bool) -> None:
    if every != 1 and algorithm not in PERIODIC:
        raise SqlError(
            f"{algorithm} takes no batches: leave `every` out, or use"
            f" algorithm = '{PERIODIC[0]}' or '{PERIODIC[1]}'"
        )
    if not has_before and algorithm in NEED_ROWS_BEFORE:
        raise SqlError(
            f"{algorithm} needs rows as they were before a change, and a source of this view tells"
            " only their keys: use algorithm = 't-strobe', or have the source log whole rows"
        )
    twice = _twice(shape)
    if twice and algorithm in NEED_DIFFERENT_RELATIONS:
        raise SqlError(
            f"{algorithm} cannot maintain a view that reads {'.'.join(twice[0])} twice: use"
            " algorithm = 'asof'"
        )
    if not shape.has_keys and algorithm != "asof":
        raise SqlError(
            f"{algorithm} needs the keys of all relations in the view: use algorithm = 'asof'"
        )


def _too_weak(algorithm: str, every: str, reached: str, wanted: str, column: int) -> str:
    scenario = SCENARIOS[column]
    batches = f" with every = '{every}'" if every else ""
    gives = reached if reached == DIVERGES else f"is {reached}"
    text = f"{algorithm}{batches} {gives} for {scenario} transactions, and {wanted} is wanted"
    if every and REACHES[algorithm][column] == wanted:
        return f"{text}: leave `every` out"
    if _CHOSEN[wanted][column]:
        return f"{text}: leave `algorithm` out, or use '{_CHOSEN[wanted][column]}'"
    return (
        f"{text}. Two global transactions may come in one order at one source and in another order"
        " at the next; then both must be shown at once: use consistency = 'strong'"
    )
