"""Run the cases of many seeds; a failure is shrunk, kept as a file, and printed with the seed with
which it is found again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import SystemRandom

from tests.laws.kept_cases import keep
from tests.laws.script import Case, Create
from tests.laws.shrinking import shrunk
from tests.laws.world import World

_SEED = "20261116"
_SOME = 100  # cases from which shares mean something


def cases(default: int) -> int:
    return int(os.environ.get("BELVEDERE_LAW_CASES") or default)


def first_seed() -> int:
    """The same every time, so that a run says something about the change and not about luck;
    "random" for others.
    """
    seed = os.environ.get("BELVEDERE_LAW_SEED") or _SEED
    return SystemRandom().randrange(10**12) if seed == "random" else int(seed)


def hold_the_law(make: Callable[[int], Case], seed: int, count: int) -> Counter[str]:
    """Run the cases of so many seeds; returns how many cases met what."""
    seen: Counter[str] = Counter()
    for number in range(seed, seed + count):
        case = make(number)
        try:
            found = World(case).run()
        except Exception as error:  # whatever it is, the case that led to it is wanted
            _fail(number, case, error)
        views = [a.view for a in case.script if isinstance(a, Create)]
        seen.update(
            [
                "cases",
                case.store,
                *{shape for view in views for shape in (view.shape, *view.shapes)},
            ]
        )
        seen.update({what for what, times in found.items() if times})
    return seen


def _fail(seed: int, case: Case, error: Exception) -> None:
    smallest = shrunk(case, lambda c: type(error_of(c)) is type(error))
    path = keep(smallest, f"seed {seed}: {type(error).__name__}")
    again = f"BELVEDERE_LAW_SEED={seed} BELVEDERE_LAW_CASES=1 pytest tests/laws"
    raise AssertionError(
        f"run it again with: {again}\n"
        f"it is kept as {path}: commit that file with what mends it\n"
        f"{error_of(smallest)}\n{smallest}"
    ) from error


def error_of(case: Case) -> Exception | None:
    try:
        World(case).run()
    except Exception as error:  # a smaller case may fail in any way; the caller compares
        return error
    return None


def assert_that_cases_mean_something(
    seen: Counter[str], least: dict[str, int], most: dict[str, int] | None = None
) -> None:
    """At least this share of the cases, in percent, meets what the law is about, and at most that
    share what takes from it.
    """
    if seen["cases"] < _SOME:
        return
    share = {what: 100 * seen[what] / seen["cases"] for what in least}
    rare = [
        f"{what} {share[what]:.1f}%" for what, percent in least.items() if share[what] < percent
    ]
    assert not rare, f"too few of {seen['cases']} cases have {', '.join(rare)}: {dict(seen)}"
    often = [
        what for what, percent in (most or {}).items() if 100 * seen[what] / seen["cases"] > percent
    ]
    assert not often, f"too many of {seen['cases']} cases have {', '.join(often)}: {dict(seen)}"
