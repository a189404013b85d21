"""A case: tables, a store, and a script of writes, views that come and go, and epochs that may
crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.epochs.settings import Settings
from tests.laws.domains import Table
from tests.laws.queries import View

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Base:
    """A base table of a case."""

    name: str
    table: Table
    before_images: bool


@dataclass(frozen=True)
class Write:
    """Operations of one transaction on one table: key values, and a row or None for a delete."""

    operations: tuple[tuple[Row, Row | None], ...]
    table: int = 0


@dataclass(frozen=True)
class Create:
    view: View
    name: str
    replace: bool = False


@dataclass(frozen=True)
class Drop:
    name: str


@dataclass(frozen=True)
class Run:
    """One epoch.

    The coordinator dies before or after its `dies_at`-th slot commit, or with -1 when all work is
    done.
    """

    tasks: int
    dies_at: int | None = None
    after: bool = False


@dataclass(frozen=True)
class Settle:
    """Epochs until nothing is left to do: all views are live."""


Action = Write | Create | Drop | Run | Settle


@dataclass(frozen=True)
class Case:
    law: str  # "single" or "trees": who says what a view must show
    tables: tuple[Base, ...]
    store: str  # "memory", "rows" or "embedded"
    slots: int
    streams: int
    settings: Settings
    script: tuple[Action, ...]
    longest_key: int | None = None  # that the store takes
