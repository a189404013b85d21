"""The master property: for random views, operations and crashes, a maintained view is the recomputed view at every epoch.

`BELVEDERE_LAW_CASES=20000 pytest tests/laws` looks longer. A failure prints its smallest case and how to run it again.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from belvedere.pipeline.coordinator import Settings
from tests.laws.domains import Table, tables
from tests.laws.queries import views
from tests.laws.world import Case, Create, Run, World, Write

CASES = int(os.environ.get("BELVEDERE_LAW_CASES", "500"))
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    table = draw(tables())
    store = draw(st.sampled_from(["memory"] * 19 + ["embedded"]))
    choices = Settings(max_rows=draw(st.sampled_from([1, 4, 1000])), load_rows=draw(st.sampled_from([1, 2, 3, 1000])))
    script: list[Write | Create | Run] = []
    waiting = [draw(views(table)) for _ in range(draw(st.sampled_from([2, 2, 1])))]
    keys = [_key(draw, table) for _ in range(draw(st.sampled_from([6, 4, 8, 2])))]
    for _ in range(draw(st.sampled_from([5, 4, 6, 3, 7, 2]))):
        if waiting and draw(st.booleans()):
            script.append(Create(waiting.pop()))
        script.append(Write(tuple(_operation(draw, table, keys) for _ in range(draw(st.sampled_from([6, 4, 5, 3, 8, 2, 1]))))))
        script += [_run(draw) for _ in range(draw(st.sampled_from([1, 2, 1, 0])))]
    script += [Create(view) for view in waiting]
    streams = 1 if store == "embedded" else draw(st.sampled_from([1, 1, 2]))
    return Case(table, store, draw(st.sampled_from([1, 2, 4])), streams, draw(st.booleans()), choices, tuple(script))


def _key(draw: st.DrawFn, table: Table) -> tuple[Any, ...]:
    return tuple(draw(st.sampled_from(table.pools[name])) for name in table.schema.key)


def _operation(draw: st.DrawFn, table: Table, keys: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    key = draw(st.sampled_from(keys))
    if draw(st.sampled_from([False, False, False, True])):
        return key, None
    named = dict(zip(table.schema.key, key, strict=True))
    return key, tuple(named[n] if n in named else draw(st.sampled_from(table.pools[n])) for n in table.schema.names)


def _run(draw: st.DrawFn) -> Run:
    tasks = draw(st.sampled_from([1, 2]))
    if draw(st.sampled_from([True, True, True, True, False])):
        return Run(tasks)
    return Run(tasks, draw(st.sampled_from([-1, 0, 1, 2, 3])), draw(st.booleans()))


def test_a_maintained_view_is_the_recomputed_view_at_every_epoch() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=CASES, phases=_PHASES, suppress_health_check=list(HealthCheck))
    @given(cases())
    def law(case: Case) -> None:
        found = World(case).run()
        seen.update(["cases", f"store {case.store}", *(f"shape {a.view.shape}" for a in case.script if isinstance(a, Create))])
        seen.update(f"case with {what}" for what, count in found.items() if count)

    law()
    _assert_that_cases_mean_something(seen)


def _assert_that_cases_mean_something(seen: Counter[str]) -> None:
    """At least this share of the cases, in percent, meets what the law is about."""
    share = {what: 100 * count / seen["cases"] for what, count in seen.items()}
    least = {"rows": 70, "in error": 15, "recovered": 7, "moved": 15, "minimum lost": 3, "crash": 20, "epoch load": 80, "epoch changes": 70}
    rare = [f"{what}: {share.get(f'case with {what}', 0):.0f}%" for what, percent in least.items() if share.get(f"case with {what}", 0) < percent]
    assert not rare, f"too few of {seen['cases']} cases have {', '.join(rare)} in {dict(share)}"
