"""The database of a command. It starts Spark only when it must, and shows that it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from belvedere.cli import spark
from belvedere.cli.place import Place, url_of
from belvedere.database import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from belvedere.epochs.intent import Intent
    from belvedere.epochs.manager import Ack
    from belvedere.spark.runner import SparkRunner
    from belvedere.stores.base import RowRange, TableId

MASTER = "local[*]"


class TerminalDatabase(Database):
    """A database that starts Spark only when an epoch or a recomputation needs it, and quietly.

    So `catch-up` beside a running pipeline only waits, and statements that need no Spark answer at
    once.
    """

    def __init__(
        self,
        path: str,
        master: str = MASTER,
        spark_conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            path, master=master, spark_conf=spark_conf, runner=_WhenNeeded(self), **options
        )

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = spark.start(self.master, self.spark_conf)
        return self._spark

    def warm_up(self) -> None:
        """Have Spark start its workers now, and not in the first epoch."""
        self._spark_runner().warm_up()


class _WhenNeeded:
    """A runner that becomes Spark's at its first epoch."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @cached_property
    def _runner(self) -> SparkRunner:
        """One for all epochs: it keeps its planned jobs, and what it learned of times."""
        return self._db._spark_runner()

    def run(self, intent: Intent) -> list[Ack]:
        return self._runner.run(intent)

    def scan(self, table: TableId, ranges: Sequence[RowRange]) -> None:
        self._runner.scan(table, ranges)


@contextmanager
def database(
    ctx: typer.Context, master: str = MASTER, conf: Sequence[str] | None = None
) -> Iterator[TerminalDatabase]:
    """The database of a command, closed at the end."""
    place = ctx.obj if isinstance(ctx.obj, Place) else Place()
    options = {"read_only": True} if place.read_only else {}  # not every store has the option
    with TerminalDatabase(url_of(place), master, settings(conf or ()), **options) as db:
        yield db


def settings(given: Sequence[str]) -> dict[str, str]:
    """What --conf says, each as name=value."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(
                f"{one!r} is not name=value, as in spark.driver.memory=4g", param_hint="--conf"
            )
        if name.strip() in found:
            raise typer.BadParameter(f"{name.strip()} is given twice", param_hint="--conf")
        found[name.strip()] = value.strip()
    return found
