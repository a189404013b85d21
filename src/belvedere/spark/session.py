"""A Spark session of our own: quiet, with our settings, and nothing is left of one whose start was
broken off.

What the JVM and its workers print goes to a file, which is kept if something fails. The JVM has a
process group of its own: a Ctrl-C at the terminal is for this process alone, and all that was
started for a session can be ended together.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from belvedere.errors import PipelineError
from belvedere.spark.choices import NICE, check_conf, check_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# small jobs: half the start-up, and less compiling beside the tasks
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# nice: a ninth of what an ordinary process gets, so writers come first, and a busy machine does not
# starve tasks
_PRIORITY = "10"
_lock = threading.Lock()
_log: Path | None = None
_keep = False


def session(master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """A Spark session for this process, made if there is none; in local mode failed tasks are
    retried.
    """
    check_master(master)
    check_conf(conf or {})
    from belvedere.spark.launch import is_running, launched, made, terminated_by_exception

    wanted = conf or {}
    settings = {**_settings(master), **wanted}
    with _lock, terminated_by_exception():
        if not is_running():
            return launched(master, settings, wanted, _open_log())
        _check_same(
            _started_with(),
            {key: value for key, value in wanted.items() if not key.startswith("spark.sql.")},
        )
        found = made(master, settings)
        _check_same(lambda key: found.conf.get(key, None), wanted)
        return found


def _started_with() -> Callable[[str], str | None]:
    """The settings of the session that is running."""
    from pyspark import SparkContext

    return SparkContext.getOrCreate().getConf().get


def _check_same(present: Callable[[str], str | None], wanted: Mapping[str, str]) -> None:
    """A process has one JVM: most settings are those of the session that was first."""
    for key, value in wanted.items():
        if present(key) != value:
            advice = "stop it first, or give it that setting"
            raise PipelineError(
                f"{key} cannot be changed, this process has a Spark session already: {advice}"
            )


def _settings(master: str) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.adaptive.enabled": "false",
        # comparisons of `verify` are small; Spark's default is 200
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 1)),
        # else one in the current directory
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "belvedere-warehouse"),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.python.unix.domain.socket.enabled": "true",  # TCP's delayed acks cost 40 ms per task
        "spark.pyspark.python": sys.executable,
        "spark.log.level": "ERROR",
        **({f"spark.executorEnv.{NICE}": _PRIORITY} if master.startswith("local") else {}),
    }


def log() -> Path | None:
    """Where Spark's messages are, once a session of ours was started."""
    return _log


def with_log(text: str) -> str:
    """What went wrong, and where Spark tells more; the file will then outlive this process."""
    global _keep
    if _log is None or str(_log) in text:
        return text
    _keep = True
    return f"{text}: Spark's own messages are in {_log}"


def _open_log() -> Path:
    global _log
    file, name = tempfile.mkstemp(prefix="belvedere-spark-", suffix=".log")
    os.close(file)
    _log = Path(name)
    atexit.register(_remove, _log, os.getpid())
    _redirect(_log)
    return _log


class _ConnectionLog(logging.Filter):
    """Takes what PySpark's connection logs, also at the root, to a file: when the JVM dies, a
    traceback for every call that follows.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._handler = logging.FileHandler(file, delay=True)
        self._handler.setFormatter(
            logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s")
        )

    def filter(self, record: logging.LogRecord) -> bool:
        if Path(record.pathname).parent.name != "py4j":
            return True
        self._handler.handle(record)
        return False


def _redirect(file: Path) -> None:
    taken = _ConnectionLog(file)
    for name in (None, "py4j", "py4j.java_gateway", "py4j.clientserver"):
        logger = logging.getLogger(name)
        for old in [f for f in logger.filters if isinstance(f, _ConnectionLog)]:
            logger.removeFilter(old)
        logger.addFilter(taken)


def _remove(path: Path, process: int) -> None:
    if not _keep and process == os.getpid():  # a forked child must not take it from its parent
        path.unlink(missing_ok=True)
