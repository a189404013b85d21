"""A standalone Spark cluster of processes on this machine: a master and two workers.

These are the commands of the documents, with the script that the package pyspark has for it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from belvedere.waiting import wait_until

_HOME = Path(pyspark.__file__).parent
_SECONDS = 60


@contextmanager
def spark_cluster(directory: Path, workers: int = 2) -> Iterator[str]:
    """The master's URL; the processes end with the block."""
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        master = directory / "master.log"
        arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        _start(ending, master, "master.Master", arguments)
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            log = directory / f"worker-{number}.log"
            work = str(directory / f"work-{number}")
            options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
            options += ["--webui-port", "0", "--work-dir", work, url]
            _start(ending, log, "worker.Worker", options)
            _said(log, r"(Successfully registered with master)")
        yield url


def _start(ending: ExitStack, log: Path, main: str, arguments: list[str]) -> None:
    command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments]
    output = ending.enter_context(log.open("wb"))
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    ending.callback(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(_SECONDS)


def _said(log: Path, pattern: str) -> str:
    def found() -> str | None:
        match = re.search(pattern, log.read_text(errors="replace"))
        return match[1] if match else None

    said = wait_until(found, _SECONDS)
    assert said is not None, log.read_text(errors="replace")[-3000:]
    return said
