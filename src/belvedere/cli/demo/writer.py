"""The process that writes orders: begins at the first line of its standard input, ends when that is
closed.

python -m belvedere.cli.demo.writer PATH RATE OPENING SEED
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from belvedere.cli.demo.shop import Shop
from belvedere.database import open as open_database
from belvedere.table import Table

TICK = 0.05  # seconds between two transactions


@contextmanager
def writer(path: str, rate: int, opening: int, seed: int) -> Iterator[Writer]:
    """The process, ready to begin; it ends with the block, and also if we die."""
    command = [sys.executable, "-m", __name__, path, str(rate), str(opening), str(seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as child:
        try:
            yield Writer(child)
        finally:
            if child.stdin is not None:
                child.stdin.close()


class Writer:
    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def begin(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write("begin\n")
        self._child.stdin.flush()

    def end(self) -> None:
        """Returns when the last operation is durable."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()

    @property
    def failed(self) -> bool:
        return self._child.poll() is not None


def main(path: str, rate: int, opening: int, seed: int) -> None:
    # Ctrl-C reaches the whole group; the demo closes our input
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    shop = Shop(seed)
    shop.opening(opening)
    with open_database(path) as db:
        orders = db.table("orders")
        if not sys.stdin.readline():
            return
        ended = threading.Event()
        threading.Thread(target=_await_end, args=(ended,), daemon=True).start()
        _write(orders, shop, rate, ended)


def _await_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def _write(orders: Table, shop: Shop, rate: int, ended: threading.Event) -> None:
    """A transaction per tick, as long as the pace can be held; what was missed
    is not made up for.
    """
    due = time.monotonic()
    while not ended.is_set():
        orders.write_many(*shop.operations(max(1, round(rate * TICK))))
        due = max(due + TICK, time.monotonic() - TICK)
        ended.wait(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
