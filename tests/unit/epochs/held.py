"""Epochs that last as long as a test wants."""

from __future__ import annotations

import threading

from belvedere.epochs.intent import Intent
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack

LONG, MANY = 60.0, 100


class Held:
    """A runner that waits inside every epoch until it is let go."""

    def __init__(self) -> None:
        self.entered, self.let_go = threading.Semaphore(0), threading.Semaphore(0)
        self.inner: LocalRunner | None = None

    def run(self, intent: Intent) -> list[Ack]:
        self.entered.release()
        assert self.let_go.acquire(timeout=LONG)
        assert self.inner is not None
        return self.inner.run(intent)
