"""Which database a command works on. Only `init` and `demo` create one: a mistyped path must not become an empty database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from belvedere.cli import spark
from belvedere.database import Database
from belvedere.errors import StoreError
from belvedere.pipeline.intent import Intent
from belvedere.pipeline.manager import Ack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[*]"


@dataclass(frozen=True, slots=True)
class Place:
    """What the shared options say."""

    db: str | None = None
    traceback: bool = False
    read_only: bool = False

    def overridden(self, other: Place) -> Place:
        return Place(other.db or self.db, other.traceback or self.traceback, other.read_only or self.read_only)


def is_database(path: str | Path) -> bool:
    return (Path(path) / "format.json").is_file()


def path_of(place: Place) -> str:
    """The directory of a database that exists."""
    path = (place.db or ".").removeprefix("belvedere:")
    if is_database(path):
        return path
    if place.db is None:
        raise StoreError("this directory is not a Belvedere database: name one with --db PATH or BELVEDERE_DB, or run belvedere init PATH")
    raise StoreError(f"{path} is not a Belvedere database: check the path, or run belvedere init {path}")


class TerminalDatabase(Database):
    """A database that starts Spark only when an epoch or a recomputation needs it, and quietly.

    So `catch-up` beside a running pipeline only waits, and statements that need no Spark answer at once.
    """

    def __init__(self, path: str, master: str = MASTER, **options: Any) -> None:
        super().__init__(path, master=master, runner=_WhenNeeded(self), **options)

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = spark.start(self.master)
        return self._spark


class _WhenNeeded:
    """A runner that becomes Spark's at its first epoch."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def run(self, intent: Intent) -> list[Ack]:
        return self._db._spark_runner().run(intent)


@contextmanager
def database(ctx: typer.Context, master: str = MASTER) -> Iterator[TerminalDatabase]:
    """The database of a command, closed at the end."""
    place = ctx.obj if isinstance(ctx.obj, Place) else Place()
    with TerminalDatabase(path_of(place), master, read_only=place.read_only) as db:
        yield db
