"""Follows the source of a database in a process of its own, without epochs, until its standard
input is closed.

    child:  opens the database, follows         prints  following
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from belvedere.bench import process
from belvedere.bench.scenarios.source_servers import SOURCE
from belvedere.capture.follower import Follower

_POLL = 0.2  # seconds


def new_follower(db: Any, stop: threading.Event | None = None) -> Follower:
    definition = db.state().source(SOURCE)
    return Follower(db.store, definition, db.connections.of(definition), stop)


@contextmanager
def following(path: Path) -> Iterator[None]:
    """A child that follows while the block runs."""
    line = process.command(__name__, str(path))
    with subprocess.Popen(
        line, env=process.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            if child.stdout.readline() != b"following\n":
                raise RuntimeError("the follower's process has ended: see its messages above")
            yield
        finally:
            assert child.stdin is not None
            child.stdin.close()


def main(path: Path) -> None:
    db: Any = import_module("belvedere").open(str(path))
    stop = threading.Event()
    follower = new_follower(db, stop)
    follower.step(0)
    print("following", flush=True)

    def wait_for_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    while not stop.is_set():
        follower.step(_POLL)
    follower.close()
    db.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
