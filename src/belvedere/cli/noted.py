"""What the engine notes while a command goes on, such as that a source does not answer: on standard
error, with the time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console


def say(out: Console, text: str) -> None:
    """A line that stays, with the time at which it was true."""
    said = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}"
    out.print(said, markup=False, soft_wrap=True)


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(Console(stderr=True, highlight=False), self.format(record))


@contextmanager
def noted() -> Iterator[None]:
    """Also what is no warning: that a source is followed again."""
    log, lines = logging.getLogger("belvedere"), _Lines()
    before = log.level
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(lines)
