"""The sources that this process talks to: each is opened when it is first needed, with its secrets
read here.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.sources.base import Source
from belvedere.sources.registry import open_source
from belvedere.sources.secrets import read_secret

_NAMED = ("slot", "publication")  # options with names of what is made for one follower


def connect(definition: SourceDefinition) -> Source:
    """A source of its own; whoever asks for it closes it."""
    secrets = {o: read_secret(o, place.kind, place.name) for o, place in definition.secrets.items()}
    return open_source(definition.kind, definition.name, {**definition.plug_in_options, **secrets})


def open_for(definition: SourceDefinition, table: TableDefinition) -> Source:
    """A source that is followed for one table of joined rows, by names of its own."""
    own = {
        option: f"{value}_{table.id}" if option in _NAMED else value
        for option, value in definition.options.items()
    }
    return connect(replace(definition, name=f"{definition.name}_{table.id}", options=own))


class Connections:
    """For all threads of a process."""

    def __init__(self) -> None:
        self._open: dict[int, Source] = {}
        self._lock = threading.Lock()

    def of(self, definition: SourceDefinition) -> Source:
        with self._lock:
            if definition.id not in self._open:
                self._open[definition.id] = connect(definition)
            return self._open[definition.id]

    def close_one(self, definition: SourceDefinition) -> None:
        with self._lock:
            found = self._open.pop(definition.id, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        with self._lock:
            found, self._open = list(self._open.values()), {}
        for source in found:
            source.close()
