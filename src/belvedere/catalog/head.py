"""The head of history: what readers see."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from belvedere.catalog.damage import decodes
from belvedere.types import Epoch, Vector

_NUMBERS = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Head:
    """The last committed epoch, and the vector that it contains.

    `version` changes with definitions and states of views, so that others know when to read them.
    """

    epoch: Epoch
    version: int
    vector: Vector

    def to_bytes(self) -> bytes:
        return _NUMBERS.pack(self.epoch, self.version) + json.dumps(self.vector.to_json()).encode()

    @classmethod
    @decodes("the committed epoch")
    def from_bytes(cls, data: bytes | None) -> Head:
        if data is None:
            return cls(0, 0, Vector())
        epoch, version = _NUMBERS.unpack_from(data)
        return cls(epoch, version, Vector(json.loads(data[_NUMBERS.size :])))


def epoch_and_version(data: bytes) -> tuple[Epoch, int]:
    """What most readers want to know of a stored head, without reading its vector."""
    epoch, version = _NUMBERS.unpack_from(data)
    return epoch, version
