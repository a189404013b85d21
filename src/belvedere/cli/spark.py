"""Spark for a command: started with a spinner, because it takes seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start(master: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session of this process. Call it on the main thread: PySpark sets a signal handler."""
    from belvedere.spark.session import session

    with Console(stderr=True).status("starting Spark ...", spinner="dots"):
        return session(master, conf)
