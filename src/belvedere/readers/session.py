"""Sessions: a client that wrote reads its own writes in every view.

A read of a session waits until the committed vector covers the positions that its writes returned,
merged; from then on the session never sees an older epoch, because epochs only grow.

A session goes on elsewhere with its token: these positions and an epoch that is not older than any
that it has read. As text it is

    s1-    base64 of: CRC-32 (4 bytes), then JSON of the store's id, positions and epoch
"""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from zlib import crc32

from belvedere.catalog.head import Head
from belvedere.catalog.state import committed
from belvedere.errors import Timeout, TokenError
from belvedere.stores.base import Store
from belvedere.types import Epoch, Vector
from belvedere.waiting import wait_until

_FORM = "s1-"


@dataclass(frozen=True, slots=True)
class Token:
    """What a session has written, and how far it may have read."""

    store: str
    positions: Vector
    epoch: Epoch

    def to_text(self) -> str:
        content = [self.store, self.positions.to_json(), self.epoch]
        data = json.dumps(content, separators=(",", ":")).encode()
        return _FORM + urlsafe_b64encode(_checksum(data) + data).decode().rstrip("=")

    @classmethod
    def from_text(cls, text: str) -> Token:
        if not isinstance(text, str):
            raise TokenError(f"a session's token is text: pass a str, not {type(text).__name__}")
        try:
            store, positions, epoch = json.loads(_content(text))
            return cls(store, Vector(positions), epoch)
        except (ValueError, TypeError, AttributeError) as error:
            raise TokenError(
                "this is not a session's token, or a part of one: pass the whole text that"
                " session.token() gave"
            ) from error


def _content(text: str) -> bytes:
    """ValueError if it is not what was made into a text."""
    if not text.startswith(_FORM):
        raise ValueError("another form")
    encoded = text.removeprefix(_FORM).encode("ascii")
    data = b64decode(encoded + b"=" * (-len(encoded) % 4), b"-_", validate=True)
    if data[:4] != _checksum(data[4:]):
        raise ValueError("a wrong checksum")
    return data[4:]


def _checksum(data: bytes) -> bytes:
    return crc32(data).to_bytes(4, "big")


def resumed(store: Store, text: str | None) -> Token:
    """The token of a session that begins here, or goes on."""
    if text is None:
        return Token("", Vector(), 0)
    found = Token.from_text(text)
    if found.store != store.id:
        raise TokenError(
            f"this session's token is of another database than {store.url}: of one that was there"
            " before, or that this one is a restored backup of. Begin a session without a token"
        )
    return found


def await_token(store: Store, token: Vector, timeout: float, epoch: Epoch = 0) -> Head:
    """The head that covers the token, and is not before the epoch; Timeout says how far the views
    got.
    """

    def covering() -> Head | None:
        head = committed(store)
        return head if head.epoch >= epoch and head.vector.covers(token) else None

    found = wait_until(covering, timeout)
    if found is not None:
        return found
    head = committed(store)
    behind = head.vector.behind(token)
    missing = (
        f"{behind} operation(s) before this session's last write"
        if behind
        else f"and this session has read epoch {epoch}"
    )
    raise Timeout(
        f"after {timeout:g} s the views are at epoch {head.epoch}, {missing}: is a"
        " pipeline running? Start one (db.start() or `belvedere run`), or give the session a longer"
        " timeout",
        reached=head.vector,
    )
