"""An intent: exactly what an epoch does, written to the store before work starts (rules R4, R5).

After a crash an open intent is run again with the same vector. It pins everything that the result
depends on: the vector, the participating views, how far those that are being built have got, the
slot count, and the versions of the engines.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version

from belvedere.types import Epoch, Vector

CHANGES, LOAD, REPAIR = "changes", "load", "repair"
MEND = "mend"  # the picture of a foreign table is repaired, and the views with it


@dataclass(frozen=True, slots=True)
class Loading:
    """Views that are being built together: their new nodes, and per origin how far these are loaded
    (hex; None: completely).
    """

    group: int
    nodes: tuple[int, ...]
    marks: dict[int, str | None]


@dataclass(frozen=True, slots=True)
class Load:
    """A step of building a group: the rows of an origin with low < key <= high (hex; None: from the
    beginning, to the end). `table` has the rows of a relation whose changes only pass; 0: none has.
    """

    group: int
    origin: int
    low: str | None
    high: str | None
    first: bool  # the group's first step
    rows: int  # about so many
    table: int = 0

    @property
    def range(self) -> tuple[bytes, bytes | None]:
        """The half-open range of records: keys are prefix-free, so everything that begins with
        `low` lies below low + FF.
        """
        low = b"" if self.low is None else bytes.fromhex(self.low) + b"\xff"
        return low, None if self.high is None else bytes.fromhex(self.high) + b"\xff"


@dataclass(frozen=True, slots=True)
class Intent:
    epoch: Epoch
    id: str
    fence: int
    kind: str
    low: Vector
    high: Vector
    views: tuple[int, ...]
    tables: tuple[int, ...]
    slots: int
    started: float
    loading: tuple[Loading, ...] = ()
    load: Load | None = None
    repair: str | None = None  # the name of the repair's Arrow file in the catalog
    engines: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nobody needs what the epoch reads: then it can be committed without being run."""
        return self.kind == CHANGES and not self.tables

    @property
    def size(self) -> int:
        """About how many rows the epoch reads."""
        return self.operations if self.load is None else self.load.rows

    @property
    def operations(self) -> int:
        return self.low.behind(self.high)

    def to_bytes(self) -> bytes:
        vectors = {"low": self.low.to_json(), "high": self.high.to_json()}
        return json.dumps({**asdict(self), **vectors}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Intent:
        d = json.loads(data)
        for name in ("low", "high"):
            d[name] = Vector(d[name])
        if d["repair"]:
            d["repair"] = d["repair"].removeprefix("repair/")  # as it was written before
        for name in ("views", "tables"):
            d[name] = tuple(d[name])
        d["loading"] = tuple(
            Loading(g["group"], tuple(g["nodes"]), {int(o): m for o, m in g["marks"].items()})
            for g in d["loading"]
        )
        if d["load"]:
            d["load"] = Load(**d["load"])
        return cls(**d)


@cache
def engines() -> str:
    """The versions that decide what an expression yields."""
    return ", ".join(f"{name} {version(name)}" for name in ("duckdb", "pyarrow", "numpy"))
