"""Sessions: a client that wrote reads its own writes in every view.

The token of a session is a vector: the positions that its writes returned, merged. A read waits
until the committed vector covers the token; from then on the session never sees an older epoch,
because epochs only grow.
"""

from __future__ import annotations

from belvedere.catalog.head import Head
from belvedere.catalog.state import committed
from belvedere.errors import Timeout
from belvedere.stores.base import Store
from belvedere.types import Vector
from belvedere.waiting import wait_until


def await_token(store: Store, token: Vector, timeout: float) -> Head:
    """The head that covers the token; Timeout says how far the views got."""

    def covering() -> Head | None:
        head = committed(store)
        return head if head.vector.covers(token) else None

    found = wait_until(covering, timeout)
    if found is not None:
        return found
    head = committed(store)
    raise Timeout(
        f"after {timeout:g} s the views are at epoch {head.epoch}, {head.vector.behind(token)}"
        " operation(s) before this session's last write: is a pipeline running? Start one"
        " (db.start() or `belvedere run`), or give the session a longer timeout",
        reached=head.vector,
    )
