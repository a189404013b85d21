"""Many schedules: python -m tests.simulation.soak --schedules 10000 [--seed S] [--jobs 2]

Takes the mixes in turn, at every place: both specifications in memory, with one stream and three. Prints what was injected and what was violated, with the seed and the end
of the trace of every violation; exits with 1 if there is one. `--place PLACE --mix NAME --seed S --schedules 1` runs one schedule again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.mixes import PLACES, at, mixes
from tests.simulation.schedule import Outcome, run

_CHUNK = 20
_SHOWN = 3  # violations with their traces
INJECTED = (
    "commits",
    "kills",
    "duplicates",
    "late attempts",
    "outputs lost",
    "coordinator crashes",
    "coordinator pauses",
    "coordinators fenced",
    "creations",
    "replacements",
    "drops",
    "collections",
    "trims",
    "reads",
    "long reads",
)
Result = tuple[dict[str, Counter[str]], list[Outcome]]


def run_chunk(place: str, names: list[str], seeds: range) -> Result:
    """Seed s runs mix number s mod the number of mixes."""
    counts = {name: Counter[str]() for name in names}
    bad = []
    for seed in seeds:
        name = names[seed % len(names)]
        outcome = run(at(mixes()[name], place), seed)
        counts[name] += outcome.counts
        counts[name]["schedules"] += 1
        if outcome.violation is not None:
            counts[name]["VIOLATIONS"] += 1
            bad.append(outcome)
    return counts, bad


def run_all(place: str, names: list[str], seeds: range, jobs: int) -> Iterator[Result]:
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    if jobs == 1:
        yield from (run_chunk(place, names, chunk) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(run_chunk, place, names), chunks)


def table(counts: dict[str, Counter[str]]) -> str:
    names = [name for name in counts if counts[name]["schedules"]]
    total = sum(counts.values(), Counter[str]())
    lines = [f"{'':20s}" + "".join(f"{name[:12]:>13s}" for name in [*names, "all"])]
    for what in ("schedules", *INJECTED, "VIOLATIONS"):
        cells = [counts[name][what] for name in names] + [total[what]]
        lines.append(f"{what:20s}" + "".join(f"{cell:13,d}" for cell in cells))
    return "\n".join(lines)


def soak(place: str, names: list[str], seeds: range, jobs: int) -> int:
    """Run the schedules at one place, and print what happened; returns the violations."""
    counts = {name: Counter[str]() for name in names}
    shown, began, done = 0, time.monotonic(), 0
    for found, bad in run_all(place, names, seeds, jobs):
        for name in names:
            counts[name] += found[name]
        for outcome in bad[: max(0, _SHOWN - shown)]:
            print(outcome.report(), flush=True)
        shown += len(bad)
        done = sum(c["schedules"] for c in counts.values())
        if sys.stderr.isatty():
            line = f"\r{done:,d} of {len(seeds):,d} schedules, {shown} violation(s)"
            print(line, end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - began
    print(
        f"\n{place}\n{table(counts)}\n\n{done:,d} schedules in {seconds:,.0f} s"
        f" ({done / max(seconds, 0.001):.1f} a second), {shown} violation(s)"
    )
    return shown


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.soak", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--schedules", type=int, default=10_000, help="over all places")
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the first schedule")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mix", choices=sorted(mixes()), help="only this one")
    parser.add_argument("--place", choices=sorted(PLACES), help="only this one")
    options = parser.parse_args(arguments)
    names = [options.mix] if options.mix else sorted(mixes())
    places = [options.place] if options.place else list(PLACES)
    each = max(1, options.schedules // len(places))
    seeds = range(options.seed, options.seed + each)
    shown = sum(soak(place, names, seeds, options.jobs) for place in places)
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
