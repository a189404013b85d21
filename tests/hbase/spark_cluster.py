"""A standalone Spark cluster of processes on this machine: a master and two workers.

These are the commands of the documents, with the script that the package pyspark has for it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from belvedere.waiting import wait_until
from tests.hbase.processes import child_ids, command_of

_HOME = Path(pyspark.__file__).parent
_SECONDS = 60


class SparkCluster:
    """`url` is the master's; workers have numbers from 0 on."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.url = self._start_master()
        self.workers = range(workers)
        for number in self.workers:
            self.start_worker(number)

    def _start_master(self) -> str:
        arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = self._start("master", "master.Master", arguments)
        return _said(log, r"Starting Spark master at (spark://\S+)")

    def start_worker(self, number: int) -> None:
        work = str(self._directory / f"work-{number}")
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
        options += ["--webui-port", "0", "--work-dir", work, self.url]
        log = self._start(f"worker-{number}", "worker.Worker", options)
        _said(log, r"(Successfully registered with master)")

    def kill_worker(self, number: int) -> None:
        process = self._processes[f"worker-{number}"]
        process.send_signal(signal.SIGKILL)
        process.wait(_SECONDS)

    def executors(self) -> list[int]:
        """Process ids of the executors that workers have started."""
        workers = [self._processes[f"worker-{number}"].pid for number in self.workers]
        children = [child for worker in workers for child in child_ids(worker)]
        return [pid for pid in children if "CoarseGrainedExecutorBackend" in command_of(pid)]

    def close(self) -> None:
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            process.wait(_SECONDS)

    def _start(self, name: str, main: str, arguments: list[str]) -> Path:
        """Start a process, or start it again; returns what it prints to."""
        log = self._directory / f"{name}.log"
        script = str(_HOME / "bin" / "spark-class")
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        with log.open("wb") as output:
            self._processes[name] = subprocess.Popen(
                [script, f"org.apache.spark.deploy.{main}", *arguments],
                stdout=output,
                stderr=output,
                env=environment,
            )
        return log


@contextmanager
def spark_cluster(directory: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """The processes end with the block."""
    cluster = SparkCluster(directory, workers)
    try:
        yield cluster
    finally:
        cluster.close()


def _said(log: Path, pattern: str) -> str:
    def found() -> str | None:
        match = re.search(pattern, log.read_text(errors="replace"))
        return match[1] if match else None

    said = wait_until(found, _SECONDS)
    assert said is not None, log.read_text(errors="replace")[-3000:]
    return said
