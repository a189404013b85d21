"""What a scenario is told: sizes, seeds, views and a directory to work in."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from belvedere.bench import workload, workload_join
from belvedere.bench.results import Results
from belvedere.bench.views import NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The defaults are the sizes that the targets are stated for."""

    work: Path = Path("bench-out")
    ops: int = 1_000_000
    keys: int = 250_000
    groups: int = 1_000
    dist: str = "uniform"
    seed: int = 7
    views: tuple[str, ...] = NAMES
    call: int = 10_000  # operations per write call
    epoch: int = 200_000
    probes: int = 30
    flat_rows: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    flat_ops: tuple[int, ...] = (1_000, 10_000)
    flat_repeats: int = 5
    puts: int = 1_000
    reads: int = 20_000
    memory_ops: int = 10_000_000
    sustained_ops: int = 5_000_000
    overwrites: int = 700_000
    overwritten: int = 20_000  # rows
    transactions: int = 500  # for a complete view
    waiting: int = 100_000  # operations that nobody has settled
    matches: tuple[int, ...] = (1, 10, 100, 1_000)  # rows of r per row of s
    variants: tuple[int, ...] = (1, 20)  # views per aggregate, of ten aggregates
    tpch_scales: tuple[float, ...] = (0.01, 0.1)
    tpch_orders: int = 500  # orders that come, change and go in an epoch
    fan_out: int = 1_000_000
    source_rows: int = 500_000  # of a table at a server
    source_ops: int = 200_000  # rows that are changed, of a backlog
    source_commits: int = 2_000  # of a writer, in a turn
    source_rounds: int = 5
    hbase_ops: int = 200_000  # of a backlog, and so of an epoch
    hbase_puts: int = 20_000  # of a client, in a turn
    hbase_rounds: int = 3
    hbase_views: tuple[str, ...] = ("V1", "V2", "V5")
    hbase_tasks: tuple[int, ...] = (1, 2, 4)  # of V2; of others two
    timeout: float = 600.0

    def log(self, number: int = 0, ops: int | None = None) -> Path:
        """The log of the first seed, or of a later one; keys grow along with
        an `ops` of its own.
        """
        keys = self.keys if ops is None else self.keys * ops // self.ops
        return workload.cached(
            self.work / "logs",
            ops or self.ops,
            keys,
            self.groups,
            self.dist,
            seed=self.seed + number,
        )

    def join_log(self, number: int = 0) -> Path:
        """The same for the log of the join."""
        return workload_join.cached(
            self.work / "logs",
            self.ops,
            self.keys,
            self.groups,
            dist=self.dist,
            seed=self.seed + number,
        )

    def arguments(self) -> list[str]:
        """The command line that `parsed` reads back."""
        return [
            part
            for f in fields(self)
            for part in (f"--{f.name.replace('_', '-')}", _text(getattr(self, f.name)))
        ]


def parsed(arguments: list[str]) -> Settings:
    parser = argparse.ArgumentParser(
        description="one benchmark scenario; prints its results as one JSON line"
    )
    for name, default in asdict(Settings()).items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=_parser(default),
            default=default,
            help=f"default {_text(default)}",
        )
    return Settings(**vars(parser.parse_args(arguments)))


def main(run: Callable[[Settings], Results]) -> None:
    """The body of `python -m`."""
    print(json.dumps(asdict(run(parsed(sys.argv[1:])))), flush=True)


def _parser(default: object) -> Callable[[str], object]:
    if not isinstance(default, tuple):
        return Path if isinstance(default, Path) else type(default)
    kind = type(default[0])
    return lambda text: tuple(kind(part) for part in text.split(","))


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
