"""A pipeline in a process of its own, driven over its standard input and output.

child:  warms up, opens the database            prints  {"ready": true}
start:  keeps views up to date until a line comes on its input, then stops
catch_up: waits for that line, catches up once
child:                                          prints  {"epochs": [...], "seconds": ...}
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belvedere.bench import process
from belvedere.bench.scenarios.database import Database, opened, operations, warm_up


@dataclass(slots=True)
class Pipeline:
    """The parent's side. After `finish`, `report` holds the child's last line."""

    child: subprocess.Popen[str]
    report: dict[str, Any] = field(default_factory=dict)

    def finish(self) -> tuple[int, ...]:
        """Tells the child to go on to its end; the sizes of its epochs."""
        if not self.report:
            self._input().write("\n")
            self._input().flush()
            self.report = self.read()
            self.child.wait()
        return tuple(self.report["epochs"])

    def read(self) -> dict[str, Any]:
        assert self.child.stdout
        for line in self.child.stdout:
            if line.startswith("{"):  # Spark prints to the same place
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise RuntimeError(
            f"the pipeline process ended with {self.child.wait()} and no answer: see its messages"
            " above"
        )

    def _input(self) -> Any:
        assert self.child.stdin
        return self.child.stdin


@contextmanager
def pipeline(path: Path, work: Path, mode: str, max_rows: int = 0) -> Iterator[Pipeline]:
    """A child that is ready; it is told to finish, or ended if the block failed."""
    line = process.command(__name__, str(path), str(work), mode, str(max_rows))
    with subprocess.Popen(
        line, env=process.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        handle = Pipeline(child)
        try:
            handle.read()
            yield handle
            handle.finish()
        finally:
            if child.poll() is None:
                child.terminate()


def _say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def _keep_running(database: Database) -> list[Any]:
    database.db.catch_up()  # views are live before the clock starts
    handle = database.db.start()
    _say(ready=True)
    sys.stdin.readline()
    handle.stop()
    return list(getattr(handle, "recent_progress", ()))


def _catch_up_once(database: Database, max_rows: int) -> list[Any]:
    _say(ready=True)
    sys.stdin.readline()
    return database.catch_up(max_rows) if max_rows else list(database.db.catch_up())


def main(path: Path, work: Path, mode: str, max_rows: int) -> None:
    warm_up(work / "pipeline", 10_000)
    with opened(path, ()) as database:
        start = time.perf_counter()
        epochs = _keep_running(database) if mode == "start" else _catch_up_once(database, max_rows)
        _say(epochs=operations(epochs), seconds=time.perf_counter() - start)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
