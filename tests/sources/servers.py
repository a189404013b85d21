"""Real servers for tests: one of each kind for a whole session, with a database per test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from belvedere.sources.servers import Server


@contextmanager
def running(kind: type[Server]) -> Iterator[Server]:
    """A server of this kind with data of its own, up until the end."""
    with tempfile.TemporaryDirectory(prefix=f"belvedere-{kind.kind}-") as directory:
        server = kind(Path(directory) / kind.kind)
        server.up()
        try:
            yield server
        finally:
            server.down()
