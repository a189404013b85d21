"""How following a source goes, noted in the catalog by who follows it, for every process to see."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from belvedere.catalog import layout
from belvedere.errors import BelvedereError, SourceLost, SourceUnreachable
from belvedere.stores.base import Store

FOLLOWING, IDLE, UNREACHABLE, LOST, FAILED = "following", "idle", "unreachable", "lost", "failed"


@dataclass(frozen=True, slots=True)
class Condition:
    """`state` at a time, and what is wrong; how many bytes of the source's log are not read yet,
    and how many it keeps for us. `idle`: no relation of it is named by anybody.
    """

    state: str
    time: float
    message: str = ""
    lag_bytes: int = 0
    kept_bytes: int = 0
    note: str = ""

    @property
    def is_wrong(self) -> bool:
        return self.state in (UNREACHABLE, LOST, FAILED)

    @classmethod
    def of_error(cls, error: BaseException) -> Condition:
        if isinstance(error, SourceLost):
            state = LOST
        else:
            state = UNREACHABLE if isinstance(error, SourceUnreachable) else FAILED
        kind = "" if isinstance(error, BelvedereError) else f"{type(error).__name__}: "
        return cls(state, time.time(), f"{kind}{error}")


def note_condition(store: Store, source: str, condition: Condition) -> None:
    """Of a source that is still there."""

    def body(t: Any) -> None:
        if layout.SOURCES.get(t, source.lower()) is not None:
            layout.CONDITIONS.put(t, source.lower(), asdict(condition))

    store.catalog.transact(body)


def read_conditions(store: Store) -> dict[str, Condition]:
    """By the names of sources, in lower case."""
    found = store.catalog.read(layout.CONDITIONS.all)
    return {name: Condition(**said) for name, said in found.items()}
