"""A whole run: peers and scenarios, each in a fresh process, so that memory and caches of one do not help another.

The peers run before and after the scenarios; ratios use the median, so a machine that changes its pace in between shows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from belvedere.bench import process
from belvedere.bench.peers import PeerResult, duckdb_refresh, lmdb_by_hand
from belvedere.bench.results import Results, merged
from belvedere.bench.scenarios.settings import Settings

SCENARIOS = ("ingest", "maintain", "end_to_end", "freshness", "flatness", "single_put", "reads", "base_write_with_views", "memory")
PEERS: dict[str, Callable[[Path, str, Path], PeerResult]] = {
    lmdb_by_hand.ENGINE: lmdb_by_hand.run,
    duckdb_refresh.ENGINE: duckdb_refresh.run,
}


def run(settings: Settings, scenarios: Sequence[str] = SCENARIOS, say: Callable[[str], None] = lambda _: None) -> Results:
    """All parts; `say` hears what is about to run."""
    unknown = set(scenarios) - set(SCENARIOS)
    if unknown:
        raise ValueError(f"there is no scenario {', '.join(sorted(unknown))}: use {', '.join(SCENARIOS)}")
    settings.log()  # written before anything is timed
    return merged(_parts(settings, scenarios, say))


def _parts(settings: Settings, scenarios: Sequence[str], say: Callable[[str], None]) -> Iterator[Results]:
    yield from _peers(settings, say)
    for name in scenarios:
        say(name)
        yield Results.from_json(process.run_json(f"belvedere.bench.scenarios.{name}", *settings.arguments()))
    yield from _peers(settings, say)


def _peers(settings: Settings, say: Callable[[str], None]) -> Iterator[Results]:
    state = settings.work / "peer"
    for engine, measure in PEERS.items():
        for view in settings.views:
            say(f"{engine} {view}")
            shutil.rmtree(state, ignore_errors=True)
            yield Results(peers=(measure(settings.log(), view, state),))
    shutil.rmtree(state, ignore_errors=True)
