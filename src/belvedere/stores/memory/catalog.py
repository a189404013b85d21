"""The catalog in memory: a dict; a transaction has a copy of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from belvedere.errors import StoreError
from belvedere.stores.base import CatalogTransaction

T = TypeVar("T")


class _Transaction:
    """A private copy of the catalog; a read-only one refuses to write."""

    def __init__(self, entries: dict[str, bytes], writable: bool) -> None:
        self.entries, self.writable = dict(entries), writable

    def get(self, key: str) -> bytes | None:
        return self.entries.get(key)

    def put(self, key: str, value: bytes) -> None:
        self._check()
        self.entries[key] = bytes(value)

    def delete(self, key: str) -> None:
        self._check()
        self.entries.pop(key, None)

    def scan(self, prefix: str) -> list[tuple[str, bytes]]:
        return sorted((key, value) for key, value in self.entries.items() if key.startswith(prefix))

    def _check(self) -> None:
        if not self.writable:
            raise StoreError("a catalog read cannot write: use transact")


class MemoryCatalog:
    def __init__(self, point: Callable[[str], None]) -> None:
        self._point = point
        self._entries: dict[str, bytes] = {}
        self._commits = 0

    def transact(self, body: Callable[[CatalogTransaction], T]) -> T:
        """Optimistic: `body` may come to points of its own, so it runs again if somebody else wrote
        meanwhile.
        """
        self._point("catalog transact")
        while True:
            found = self._entries
            transaction = _Transaction(found, writable=True)
            try:
                result = body(transaction)
            except Exception:  # of an outdated reading, or a true answer: only the second is told
                if self._entries is found:
                    raise
                continue
            if self._entries is found:
                self._entries = transaction.entries
                self._commits += 1
                return result

    def read(self, body: Callable[[CatalogTransaction], T]) -> T:
        self._point("catalog read")
        return body(_Transaction(self._entries, writable=False))

    def get_one(self, key: str) -> bytes | None:
        self._point("catalog read")
        return self._entries.get(key)

    def mark(self) -> int:
        self._point("catalog read")
        return self._commits

    def read_marked(self, body: Callable[[CatalogTransaction], T]) -> tuple[int, T]:
        self._point("catalog read")
        return self._commits, body(_Transaction(self._entries, writable=False))
