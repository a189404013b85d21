"""The spectrum, and the price of it: python -m tests.warehouse.soak --schedules 2000 [--price]

Prints for each algorithm and each kind of transactions the worst level of all schedules, and how
many schedules reached which; exits with 1 if one differs from what is expected. `--price` prints
how many subqueries an update costs, where the sources change faster than the warehouse works.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.warehouse.price import NUMBERS, PRICED, price
from tests.warehouse.spectrum import ALGORITHMS, KINDS, REACHES, Tally, tally
from tests.warehouse.worlds import Kind

_TITLES = ("single updates", "source-local", "global", "global, apart")
_CHUNK = 250
Cell = tuple[str, str]


def count(cell: Cell, seeds: range) -> Tally:
    algorithm, kind = cell
    return tally(algorithm, Kind(kind), seeds)


def table(found: dict[Cell, Tally]) -> Iterator[str]:
    yield f"| {'':28}| " + " | ".join(f"{title:14}" for title in _TITLES) + " |"
    yield f"| {'---':28}| " + " | ".join(f"{'---':14}" for _ in _TITLES) + " |"
    for algorithm in ALGORITHMS:
        worst = [found[algorithm, kind].worst for kind in KINDS]
        yield f"| {algorithm:28}| " + " | ".join(f"{level:14}" for level in worst) + " |"


def surprises(found: dict[Cell, Tally]) -> Iterator[str]:
    for (algorithm, kind), tallied in found.items():
        wanted = REACHES[algorithm][KINDS.index(kind)]
        if tallied.worst != wanted:
            yield f"{algorithm}, {kind}: {tallied}, and should be {wanted}"


def soak(schedules: int, seed: int, jobs: int) -> int:
    began = time.monotonic()
    cells = [(algorithm, kind) for algorithm in ALGORITHMS for kind in KINDS]
    found = {cell: Tally() for cell in cells}
    with ProcessPoolExecutor(jobs) as pool:
        chunks = [
            (cell, range(at, min(at + _CHUNK, seed + schedules)))
            for cell in cells
            for at in range(seed, seed + schedules, _CHUNK)
        ]
        results = pool.map(count, [c for c, _ in chunks], [s for _, s in chunks])
        for (cell, _), part in zip(chunks, results, strict=True):
            found[cell] += part
    print("\n".join(table(found)), end="\n\n")
    for (algorithm, kind), tallied in found.items():
        print(f"{algorithm:28} {kind:7} {tallied}")
    crashes = sum(tallied.happened["crashes"] for tallied in found.values())
    wrong = list(surprises(found))
    seconds = time.monotonic() - began
    print(f"\n{schedules * len(cells):,d} schedules, {crashes:,d} crashes, {seconds:,.0f} s")
    print("\n".join(wrong) if wrong else "All as expected.")
    return 1 if wrong else 0


def print_prices(runs: int) -> None:
    """Of single updates, with relations that all are at sources of their own."""
    print("| relations | algorithm | subqueries per update | worst run | view states per run |")
    print("| --- | --- | --- | --- | --- |")
    for number in NUMBERS:
        for algorithm in PRICED:
            found = price(algorithm, number, runs)
            mean, worst, states = found.mean, found.worst, found.states
            print(f"| {number} | {algorithm} | {mean:.1f} | {worst:.1f} | {states:.1f} |")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.warehouse.soak", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--schedules", type=int, default=2_000, help="in each cell of the table")
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the first schedule")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--price", action="store_true", help="print what an update costs instead")
    parser.add_argument("--runs", type=int, default=100, help="for each price")
    options = parser.parse_args(arguments)
    if options.price:
        print_prices(options.runs)
        return 0
    return soak(options.schedules, options.seed, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
