"""Standby: a coordinator that waits for the lease of another one, and takes it at once.

On one host the holder's process is looked at, so a killed one is followed at the next look, 50 ms
later at most. On another host its lease has to end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.lease import Lease, read_lease


@dataclass(frozen=True, slots=True)
class Takeover:
    """A lease that was waited for, and is ours now."""

    holder: str  # who had it
    has_died: bool  # without giving it back
    seconds: float  # between the last look at which the holder had it and our having it


@dataclass(slots=True)
class Standby:
    coordinator: Coordinator
    _holder: Lease | None = None
    _seen: float = field(default_factory=time.monotonic)

    def look(self) -> Takeover | None:
        """Take the lease if its holder is gone. Nothing is written while it is there."""
        found = self.coordinator.store.catalog.read(read_lease)
        looked = time.monotonic()
        if found is not None and found.alive(self.coordinator.now()):
            self._holder, self._seen = found, looked
            return None
        if not self.coordinator.acquire():
            return None  # a third one was faster
        has_died = found is not None and found.owner != ""
        name = "another coordinator" if self._holder is None else str(self._holder)
        return Takeover(name, has_died, time.monotonic() - self._seen)
