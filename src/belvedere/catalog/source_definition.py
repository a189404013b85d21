"""Definitions of sources, as the catalog keeps them: how each is reached, and never a secret."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from belvedere.catalog.damage import decodes
from belvedere.stores.base import TableId

# An option of sources of all kinds, which the plug-in does not see: what their transactions are.
TRANSACTIONS: Final = "transactions"
# Another one: which relations are kept here with all their rows, with commas, or * for all.
COPY: Final = "copy"


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

    @property
    def plug_in_options(self) -> dict[str, str]:
        ours = (TRANSACTIONS, COPY)
        return {o: value for o, value in self.options.items() if o not in ours}

    def is_kept(self, relation: str) -> bool:
        """Whether a relation is kept from the beginning."""
        return "*" in self.copied or relation.lower() in self.copied

    @property
    def copied(self) -> list[str]:
        """The names of option `copy`, in lower case."""
        return [name.strip().lower() for name in self.options.get(COPY, "").split(",")]

    @property
    def transactions(self) -> str:
        """`single`, `local` or `global`; "" if nobody said so."""
        return self.options.get(TRANSACTIONS, "")

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    @decodes("the definition of a source")
    def from_bytes(cls, data: bytes) -> SourceDefinition:
        found = json.loads(data)
        places = {option: SecretPlace(**place) for option, place in found["secrets"].items()}
        return cls(**{**found, "secrets": places})
