"""Pace: under load the next epoch waits a little, so that it is larger.

An epoch has a fixed cost, and on a small machine it competes with the writers for the cores: many small epochs cost both
more than a few large ones. So while operations keep coming, the next epoch waits up to twice as long as the last one took. The
wait ends as soon as nothing has come for a moment, so the last operation is never late, and small epochs never wait.
"""

from __future__ import annotations

import threading
import time

from belvedere.pipeline.coordinator import EpochReport
from belvedere.stores.base import Store

_MANY = 20_000  # operations in an epoch that mean load
_ENOUGH = 500_000  # operations that are worth an epoch at once
_LOOK = 0.05  # how often the log's end is looked at
_LONGEST = 2.0  # seconds


def gather(store: Store, last: EpochReport, stop: threading.Event) -> None:
    """Wait while operations keep coming after a large epoch."""
    if last.operations < _MANY:
        return
    deadline = time.monotonic() + min(2 * last.seconds, _LONGEST)
    covered = sum(last.high.values())
    seen = -1
    while time.monotonic() < deadline and not stop.wait(_LOOK):
        end = sum(store.base.end().values())
        if end == seen or end - covered >= _ENOUGH:
            return
        seen = end
