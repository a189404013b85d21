"""The start of Spark's JVM, which takes seconds and may be broken off at any moment.

PySpark starts a script that becomes the JVM, waits for the file in which it tells its port, and
connects. If Ctrl-C comes meanwhile it forgets the process, and as the file's directory is then gone
too, that JVM fails half-way and never ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belvedere.errors import PipelineError
from belvedere.spark.archive import with_archive
from belvedere.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ASKED = {signal.SIGINT, signal.SIGTERM}
_SIMILAR = 0.88  # one letter of a short name too much or too little; of 1,355 names of Spark 4.3
_PATIENCE = 10.0  # seconds that a JVM gets to remove its files


def is_running() -> bool:
    """Whether this process has a Spark session already, ours or the user's, whose JVM is alive."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is None or pyspark.SparkContext._active_spark_context is None:
        return False
    process = getattr(pyspark.SparkContext._gateway, "proc", None)
    if process is None or process.poll() is None:
        return True
    _forget()
    return False


def launched(
    master: str, settings: Mapping[str, str], wanted: Mapping[str, str], log: Path
) -> SparkSession:
    """A session in a JVM of its own, which prints to the log."""
    ensure_java()
    # else workers run the system's interpreter, without our packages
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with log.open("ab") as output, _ended_on_failure(output):
        session = made(master, with_archive(settings, wanted))
        _check_known(session, wanted)
    _log_errors_of(session.sparkContext._accumulatorServer, log)
    return session


def _check_known(session: SparkSession, wanted: Iterable[str]) -> None:
    """Refuse a setting that is nearly one of Spark's own.

    Others may belong to a plug-in, or to a part that is not loaded.
    """
    entries: Any = getattr(session._jvm, "org.apache.spark.internal.config.ConfigEntry$")
    known = getattr(entries, "MODULE$").knownConfigs().keySet().toString()[1:-1].split(", ")
    for key in set(wanted) - set(known):
        for meant in get_close_matches(key, known, 1, _SIMILAR):
            raise PipelineError(
                f"Spark has no setting {key}: write {meant}, if that is what you mean"
            )


def _log_errors_of(server: Any, log: Path) -> None:
    """PySpark's server for accumulators prints a traceback when the JVM goes away."""

    def noted(request: Any, address: Any) -> None:
        with log.open("a", encoding="utf-8") as file:
            traceback.print_exc(file=file)

    server.handle_error = noted


def made(master: str, settings: Mapping[str, str]) -> SparkSession:
    """A session in the JVM that is running, or in a new one."""
    from pyspark.sql import SparkSession

    cores = master[6:-1] if master.startswith("local[") and "," not in master else ""
    builder = SparkSession.builder.master(f"local[{cores},4]" if cores else master).appName(
        "belvedere"
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # PySpark raises many kinds here; all mean that there is no session
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise PipelineError(f"Spark did not start: {first}") from error


@contextmanager
def _ended_on_failure(output: Any) -> Iterator[None]:
    """Whatever is raised in the block, the JVM that was started in it is
    ended before it goes on.
    """
    java_gateway: Any = import_module("pyspark.java_gateway")
    started: list[subprocess.Popen[bytes]] = []
    # PySpark puts one of its own in place
    handlers = {number: signal.getsignal(number) for number in _ASKED}
    usual = java_gateway.Popen
    java_gateway.Popen = _noting(started, output)
    try:
        yield
    except BaseException:  # above all KeyboardInterrupt
        _forget()
        for process in started:
            _end(process)
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)
        raise
    finally:
        java_gateway.Popen = usual


def _noting(
    started: list[subprocess.Popen[bytes]], output: Any
) -> Callable[..., subprocess.Popen[bytes]]:
    """What PySpark calls to start the JVM: the process is noted, in a group of its own, and prints
    to the log.
    """

    def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        prepare = options.pop("preexec_fn")
        # Between the fork and the note no signal may come; the child gets back what its parent had.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED)

        def prepared() -> None:
            prepare()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

        try:
            options |= {
                "stdout": output,
                "stderr": output,
                "process_group": 0,
                "preexec_fn": prepared,
            }
            started.append(subprocess.Popen(command, **options))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return started[-1]

    return start


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its group, asking first: a JVM that is asked removes its temporary
    directories.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass  # all have ended
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            continue
    if process.stdin is not None:
        process.stdin.close()


def _forget() -> None:
    """Let PySpark start anew the next time, not look for the JVM that is gone."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    if gateway is not None:
        gateway.close()


@contextmanager
def terminated_by_exception() -> Iterator[None]:
    """SIGTERM as an exception, where it would just end the process and nobody could clean up."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return

    def exit(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
