"""The catalog: one transaction domain for lease, intents, commits and definitions (rule R4)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

T = TypeVar("T")


class CatalogTransaction(Protocol):
    """Keys are short text such as `view/17`; values are small (below 1 MB)."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...
    def delete(self, key: str) -> None: ...
    def scan(self, prefix: str) -> list[tuple[str, bytes]]: ...


class Catalog(Protocol):
    def transact(self, body: Callable[[CatalogTransaction], T]) -> T:
        """Run `body` as one serializable transaction, durable when this returns.

        If `body` raises, nothing is written.

        `body` may run more than once (check-and-mutate stores retry on conflict), so it must have
        no other effects. A time-out whose outcome is unknown must be resolved by reading again
        before this returns or raises.
        """

    def read(self, body: Callable[[CatalogTransaction], T]) -> T:
        """Run `body` on one snapshot of the whole catalog. Writing in it raises StoreError."""

    def get_one(self, key: str) -> bytes | None:
        """One committed value."""

    def mark(self) -> Hashable:
        """Something that is different after every committed transaction, of any process; made for
        latency.

        Every point read of a view begins with it: while it is that of `read_marked`, what was read
        there is current. It may change a moment before readers see the transaction, never after.
        """

    def read_marked(self, body: Callable[[CatalogTransaction], T]) -> tuple[Hashable, T]:
        """The same as `read`, and the mark of the snapshot that was read."""
