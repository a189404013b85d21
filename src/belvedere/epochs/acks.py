"""What view managers send: parts to each other, and at the end what they did."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from belvedere.libraries import pa
from belvedere.types import Epoch


@dataclass(frozen=True, slots=True)
class Envelope:
    """A part for an operator in a later level, addressed to the owner of a slot."""

    level: int
    slot: int
    node: int
    part: int
    table: pa.Table


@dataclass(slots=True)
class Ack:
    """What one manager did in one level: for the manifest, the metrics, and the ring's weights."""

    epoch: Epoch
    level: int
    slots: tuple[int, ...]
    operations: int = 0
    changes: int = 0
    written: dict[int, int] = field(default_factory=dict)  # by state table
    errors: dict[int, dict[int, int]] = field(default_factory=dict)  # by error table and slot
    seconds: dict[str, float] = field(default_factory=dict)
    last_time: float = 0.0

    def took(self, stage: str, since: float) -> float:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - since
        return now


def ack_to_json(ack: Ack) -> dict[str, Any]:
    return {
        "epoch": ack.epoch,
        "level": ack.level,
        "slots": list(ack.slots),
        "operations": ack.operations,
        "changes": ack.changes,
        "written": ack.written,
        "errors": ack.errors,
        "seconds": ack.seconds,
        "last_time": ack.last_time,
    }
