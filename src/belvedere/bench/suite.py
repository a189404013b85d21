"""A whole run: peers and scenarios, each in a fresh process, so that memory and caches of one do
not help another.

The peers run before and after the scenarios; ratios use the median, so a machine that changes its
pace in between shows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from belvedere.bench import process
from belvedere.bench.peers import PeerResult, duckdb_refresh, duckdb_refresh_join, lmdb_by_hand
from belvedere.bench.results import Results, merged
from belvedere.bench.scenarios.settings import Settings
from belvedere.bench.views import JOIN
from belvedere.errors import StoreError
from belvedere.stores.hbase import jars

ONE_TABLE = (
    "ingest",
    "maintain",
    "end_to_end",
    "freshness",
    "flatness",
    "single_put",
    "reads",
    "keyed",
    "base_write_with_views",
    "memory",
    "disk",
)
HBASE = "hbase"
SCENARIOS = (*ONE_TABLE, "join", "many_views", "tpch", "fan_out", HBASE)
_Measure = Callable[[Path, str, Path], PeerResult]
PEERS: dict[str, _Measure] = {
    lmdb_by_hand.ENGINE: lmdb_by_hand.run,
    duckdb_refresh.ENGINE: duckdb_refresh.run,
}


def run(
    settings: Settings,
    scenarios: Sequence[str] = SCENARIOS,
    say: Callable[[str], None] = lambda _: None,
) -> Results:
    """All parts; `say` hears what is about to run. HBase is left out where it is not installed,
    unless it is all that is asked for.
    """
    unknown = set(scenarios) - set(SCENARIOS)
    if unknown:
        raise ValueError(
            f"there is no scenario {', '.join(sorted(unknown))}: use {', '.join(SCENARIOS)}"
        )
    missing = jars.missing() if HBASE in scenarios else ""
    if missing and tuple(scenarios) == (HBASE,):
        raise StoreError(f"the scenario {HBASE} cannot run: {missing}")
    if missing:
        say(f"nothing of HBase: {missing}")
        scenarios = [name for name in scenarios if name != HBASE]
    if set(scenarios) != {HBASE}:
        settings.log()  # written before anything is timed
    return merged(_parts(settings, scenarios, say))


def _parts(
    settings: Settings, scenarios: Sequence[str], say: Callable[[str], None]
) -> Iterator[Results]:
    yield from _peers(settings, scenarios, say)
    for name in scenarios:
        say(name)
        yield Results.from_json(
            process.run_json(f"belvedere.bench.scenarios.{name}", *settings.arguments())
        )
    yield from _peers(settings, scenarios, say)


def _peers(
    settings: Settings, scenarios: Sequence[str], say: Callable[[str], None]
) -> Iterator[Results]:
    state = settings.work / "peer"
    for engine, view, log, measure in _comparisons(settings, scenarios):
        say(f"{engine} {view}")
        shutil.rmtree(state, ignore_errors=True)
        yield Results(peers=(measure(log, view, state),))
    shutil.rmtree(state, ignore_errors=True)


def _comparisons(
    settings: Settings, scenarios: Sequence[str]
) -> Iterator[tuple[str, str, Path, _Measure]]:
    """Only what a chosen scenario is held against."""
    if set(scenarios) & set(ONE_TABLE):
        for engine, measure in PEERS.items():
            yield from ((engine, view, settings.log(), measure) for view in settings.views)
    if "join" in scenarios:
        yield duckdb_refresh.ENGINE, JOIN, settings.join_log(), duckdb_refresh_join.run
