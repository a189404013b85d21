"""An intent: exactly what an epoch does, written to the store before work starts (rules R4, R5).

After a crash an open intent is run again with the same vector. It pins everything that the result depends on: the
vector, the participating views with their watermarks, the slot count, and the versions of the engines.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version

from belvedere.types import Epoch, Position

CHANGES, LOAD, REPAIR = "changes", "load", "repair"


@dataclass(frozen=True, slots=True)
class Participant:
    """A view of this epoch; `watermark` is hex, None for a view that is loaded completely."""

    view: int
    watermark: str | None


@dataclass(frozen=True, slots=True)
class Load:
    """A step of loading views: the rows of a base table with low < key <= high (hex; high None: to the end)."""

    table: int
    views: tuple[int, ...]
    low: str
    high: str | None


@dataclass(frozen=True, slots=True)
class Intent:
    epoch: Epoch
    id: str
    fence: int
    kind: str
    low: dict[str, Position]
    high: dict[str, Position]
    participants: tuple[Participant, ...]
    tables: tuple[int, ...]
    slots: int
    started: float
    load: Load | None = None
    repair: str | None = None  # the name of the repair's Arrow file in the catalog
    engines: str = ""

    @property
    def operations(self) -> int:
        return sum(self.high[s] - self.low.get(s, 0) for s in self.high)

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Intent:
        d = json.loads(data)
        d["participants"] = tuple(Participant(**p) for p in d["participants"])
        d["tables"] = tuple(d["tables"])
        if d["load"]:
            d["load"] = Load(d["load"]["table"], tuple(d["load"]["views"]), d["load"]["low"], d["load"]["high"])
        return cls(**d)


@cache
def engines() -> str:
    """The versions that decide what an expression yields."""
    return ", ".join(f"{name} {version(name)}" for name in ("duckdb", "pyarrow", "numpy"))
