"""Spark without its start-up noise: what the JVM and its workers print goes to a file, which is kept if something fails."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from belvedere.errors import BelvedereError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STDOUT, _STDERR = 1, 2
_log: Path | None = None
_keep = False


def start(master: str) -> SparkSession:
    """A session of this process, with a spinner while it starts. Call it on the main thread: PySpark sets a signal handler."""
    from belvedere.pipeline.spark import session

    with _quiet() as terminal, Console(file=terminal).status("starting Spark ...", spinner="dots"):
        try:
            return session(master, **_options())
        except BelvedereError:
            raise
        except Exception as error:  # PySpark raises many kinds here; all mean that there is no session
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise PipelineError(f"Spark did not start: {first}") from error


def _options() -> dict[str, str]:
    """Comparisons of `verify` are small: as many partitions as cores, where Spark's own default is 200."""
    warehouse = os.path.join(tempfile.gettempdir(), "belvedere-warehouse")  # else Spark makes one in the current directory
    return {"spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 1)), "spark.sql.warehouse.dir": warehouse}


def log() -> Path | None:
    """Where Spark's messages are, once it was started."""
    return _log


def kept_log() -> Path | None:
    """The same, and the file will outlive this process."""
    global _keep
    _keep = True
    return _log


@contextmanager
def _quiet() -> Iterator[TextIO]:
    """Processes started inside the block print to the log; yields the terminal's own stderr."""
    sys.stdout.flush()
    sys.stderr.flush()
    file = _open_log()
    saved = {number: os.dup(number) for number in (_STDOUT, _STDERR)}
    try:
        for number in saved:
            os.dup2(file, number)
        with os.fdopen(os.dup(saved[_STDERR]), "w") as terminal:
            yield terminal
    finally:
        for number, copy in saved.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(file)


def _open_log() -> int:
    global _log
    file, name = tempfile.mkstemp(prefix="belvedere-spark-", suffix=".log")
    _log = Path(name)
    atexit.register(_remove, _log)
    return file


def _remove(path: Path) -> None:
    if not _keep:
        path.unlink(missing_ok=True)
