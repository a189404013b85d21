"""A level chooses an algorithm that reaches it; what does not fit is refused with a way out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from belvedere.consistency import levels
from belvedere.errors import SqlError
from belvedere.warehouse.choice import (
    COMPLETE,
    GLOBAL,
    LEVELS,
    LOCAL,
    REACHES,
    SCENARIOS,
    SINGLE,
    STRONG,
    choose,
)
from tests.warehouse import spectrum
from tests.warehouse.worlds import chain

SHAPE = chain("xy")
TWICE = replace(SHAPE, members=(SHAPE.members[0], SHAPE.members[0]))


def test_levels_and_what_algorithms_reach_are_those_that_are_measured() -> None:
    assert LEVELS == levels.LEVELS
    for algorithm, reaches in REACHES.items():
        assert spectrum.REACHES[algorithm][:3] == reaches
        periodic = spectrum.REACHES.get(f"{algorithm} every 3")
        for column, scenario in enumerate(SCENARIOS if periodic else ()):
            found = choose(SHAPE, scenario, algorithm=algorithm, every=3)
            assert periodic is not None
            assert found.reaches == periodic[column]
            found = choose(SHAPE, scenario, algorithm=algorithm, period=10.0)
            assert found.reaches == spectrum.REACHES[f"{algorithm} when due"][column]


@pytest.mark.parametrize(("level", "scenario"), list(product(LEVELS, SCENARIOS)))
def test_a_level_alone_chooses_what_reaches_it(level: str, scenario: str) -> None:
    if (level, scenario) == (COMPLETE, GLOBAL):
        with pytest.raises(SqlError, match="must be shown at once"):
            choose(SHAPE, scenario, level)
    else:
        assert LEVELS.index(choose(SHAPE, scenario, level).reaches) >= LEVELS.index(level)


@pytest.mark.parametrize(
    ("level", "scenario", "algorithm"),
    [(STRONG, SINGLE, "strobe"), (STRONG, LOCAL, "t-strobe"), (STRONG, GLOBAL, "g-strobe")],
)
def test_strong_is_the_papers_algorithm(level: str, scenario: str, algorithm: str) -> None:
    assert choose(SHAPE, scenario, level).algorithm == algorithm
    assert choose(SHAPE, scenario, level, "auto").algorithm == algorithm


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_auto_and_nothing_said_is_asof(scenario: str) -> None:
    assert choose(SHAPE, scenario).algorithm == "asof"
    assert choose(SHAPE, scenario, algorithm="auto").algorithm == "asof"
    assert choose(SHAPE, scenario, STRONG, "auto", every=3).algorithm == "asof"
    assert choose(TWICE, scenario, STRONG, "auto").algorithm == "asof"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"consistency": "strict"}, "use one of convergent, weak, strong, complete"),
        ({"algorithm": "sweep"}, "use one of strobe, t-strobe"),
        (
            {"algorithm": "conventional", "consistency": levels.CONVERGENT},
            "diverges for local.*'strobe'",
        ),
        ({"consistency": STRONG, "algorithm": "strobe"}, "convergent for local.*'t-strobe'"),
        ({"consistency": COMPLETE, "algorithm": "c-strobe", "every": 5}, "leave `every` out"),
        ({"consistency": COMPLETE, "period": 10.0}, "every = '10 s' is strong.*leave `every` out"),
        ({"algorithm": "t-strobe", "every": 5}, "takes no batches"),
        ({"algorithm": "t-strobe", "period": 5.0}, "takes no batches"),
        ({"algorithm": "asof", "every": 0}, "use 1 or more"),
        ({"algorithm": "asof", "has_before": False}, "'t-strobe'"),
        ({"shape": TWICE, "algorithm": "c-strobe"}, "reads x.r0 twice.*'asof'"),
        ({"shape": chain("xy", keys=False), "algorithm": "strobe"}, "needs the keys.*'asof'"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(
    words: dict[str, object], message: str
) -> None:
    said: dict[str, object] = {"shape": SHAPE, "scenario": LOCAL, **words}
    with pytest.raises(SqlError, match=message):
        choose(**said)  # type: ignore[arg-type]  # the cases have the right types


def test_asof_reads_a_relation_twice() -> None:
    assert choose(TWICE, LOCAL).algorithm == "asof"
