"""Definitions of sources, as the catalog keeps them: how each is reached, and never a secret."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from belvedere.catalog.damage import decodes
from belvedere.stores.base import TableId


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """Where the value of an option is found by the process that connects: `env` or `file`, and its
    name.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """`progress` is the internal table that says how far the source was followed. `generation`
    grows with every wish to load all of it again. `dropping`: nobody follows it any more.
    """

    id: int
    name: str
    kind: str
    options: dict[str, str]
    secrets: dict[str, SecretPlace]
    progress: TableId
    generation: int = 0
    dropping: bool = False

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    @decodes("the definition of a source")
    def from_bytes(cls, data: bytes) -> SourceDefinition:
        found = json.loads(data)
        places = {option: SecretPlace(**place) for option, place in found["secrets"].items()}
        return cls(**{**found, "secrets": places})
