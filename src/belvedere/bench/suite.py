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
from belvedere.bench.scenarios import source_servers
from belvedere.bench.scenarios.settings import Settings
from belvedere.bench.views import JOIN
from belvedere.errors import BelvedereError
from belvedere.stores.hbase import jars

ONE_TABLE = (
    "ingest",
    "maintain",
    "end_to_end",
    "freshness",
    "flatness",
    "single_put",
    "transactions",
    "reads",
    "keyed",
    "base_write_with_views",
    "memory",
    "disk",
    "feeds",
    "why",
)
HBASE, SOURCES = "hbase", "sources"
SCENARIOS = (*ONE_TABLE, "join", "many_views", "tpch", "fan_out", SOURCES, HBASE)
# What scenarios need of this machine beside us: what is missing, or nothing.
_NEEDS: dict[str, Callable[[], str]] = {HBASE: jars.missing, SOURCES: source_servers.missing}
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
    """All parts; `say` hears what is about to run. What needs servers that are not installed is
    left out, unless it is all that is asked for.
    """
    unknown = set(scenarios) - set(SCENARIOS)
    if unknown:
        raise ValueError(
            f"there is no scenario {', '.join(sorted(unknown))}: use {', '.join(SCENARIOS)}"
        )
    scenarios = _possible(scenarios, say)
    if not set(scenarios) <= _NEEDS.keys():
        settings.log()  # written before anything is timed
    return merged(_parts(settings, scenarios, say))


def _possible(scenarios: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Those whose servers are there."""
    found = []
    for name in scenarios:
        missing = _NEEDS[name]() if name in _NEEDS else ""
        if missing and len(scenarios) == 1:
            raise BelvedereError(f"the scenario {name} cannot run: {missing}")
        if missing:
            say(f"nothing of {name}: {missing}")
        else:
            found.append(name)
    return found


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
