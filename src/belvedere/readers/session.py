"""Sessions: a client that wrote reads its own writes in every view.

The token of a session is the positions that its writes returned. A read waits until the committed
vector covers the token; from then on the session never sees an older epoch, because epochs only
grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from belvedere.catalog.state import Head
from belvedere.errors import Timeout
from belvedere.readers.waiting import wait_until
from belvedere.stores.base import Store
from belvedere.types import Position


@dataclass(slots=True)
class Token:
    """What a session must see: positions by stream."""

    positions: dict[str, Position] = field(default_factory=dict)

    def wrote(self, stream: str, position: Position) -> None:
        self.positions[stream] = max(position, self.positions.get(stream, 0))

    def covered_by(self, vector: dict[str, Position]) -> bool:
        return all(vector.get(stream, 0) >= position for stream, position in self.positions.items())

    def missing_in(self, vector: dict[str, Position]) -> int:
        return sum(
            max(0, position - vector.get(stream, 0)) for stream, position in self.positions.items()
        )


def await_token(store: Store, token: Token, timeout: float) -> Head:
    """The head that covers the token; Timeout says how far the views got."""

    def covering() -> Head | None:
        head = Head.from_bytes(store.catalog.get_one("head"))
        return head if token.covered_by(head.vector) else None

    found = wait_until(covering, timeout)
    if found is not None:
        return found
    head = Head.from_bytes(store.catalog.get_one("head"))
    raise Timeout(
        f"after {timeout:g} s the views are at epoch {head.epoch}, {token.missing_in(head.vector)}"
        " operation(s) before this session's last write: is a pipeline running? Start one"
        " (db.start() or `belvedere run`), or give the session a longer timeout",
        reached=head.vector,
    )
