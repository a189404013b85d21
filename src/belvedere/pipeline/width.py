"""Width: whether an epoch runs in one task or in many, by measured times.

An exchange costs a fixed time, parallel tasks save a share of the time per row. The threshold starts where both were
level on two cores (200,000 operations) and follows the times of the epochs that were run: of each width a smoothed
time per operation is kept, beyond its fixed cost, and the width that would have been faster is taken.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from belvedere.pipeline.intent import Intent

_START = 200_000
_SMALL, _LARGE = 20_000, 2_000_000


@dataclass(slots=True)
class Width:
    tasks: int = 2
    fixed: str | None = None  # "narrow" or "wide" for tests and benchmarks
    threshold: int = _START
    _rates: dict[bool, float] = field(default_factory=dict)
    _probes: int = 0

    def wide(self, intent: Intent, depth: int) -> bool:
        if self.fixed is not None:
            return self.fixed == "wide"
        return self.tasks > 1 and intent.size > self.threshold

    @contextmanager
    def measured(self, intent: Intent, wide: bool) -> Iterator[None]:
        began = time.perf_counter()
        yield
        if intent.operations >= _SMALL:
            self._learn(wide, (time.perf_counter() - began) / intent.operations)

    def _learn(self, wide: bool, seconds: float) -> None:
        """Move the threshold towards the size at which the two widths were equally fast."""
        self._rates[wide] = seconds if wide not in self._rates else 0.7 * self._rates[wide] + 0.3 * seconds
        if len(self._rates) == 2:
            factor = 0.9 if self._rates[True] < self._rates[False] else 1.1
            self.threshold = int(min(_LARGE, max(_SMALL, self.threshold * factor)))
