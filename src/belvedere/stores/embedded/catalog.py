"""The catalog: one small LMDB environment, so one transaction decides (rule R4). Its values are
sealed (`checked.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from belvedere.errors import SchemaError, StoreError
from belvedere.stores.base import CatalogTransaction
from belvedere.stores.embedded import parts
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.environment import Environment, Transaction

T = TypeVar("T")
_LONGEST_KEY = 511
_FIRST = b"\1"  # what stands before it is the store's own (`parts.py`)


def _encoded(key: str) -> bytes:
    encoded = key.encode()
    if not 0 < len(encoded) <= _LONGEST_KEY:
        raise SchemaError(
            f"a catalog key has 1 to {_LONGEST_KEY} bytes, not {len(encoded)}: choose a shorter"
            " name"
        )
    return encoded


def _opened(key: bytes, transaction: Transaction) -> bytes | None:
    stored = transaction.get(key)
    return None if stored is None else opened(key, stored)


class _Reading:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def get(self, key: str) -> bytes | None:
        return _opened(_encoded(key), self._transaction)

    def scan(self, prefix: str) -> list[tuple[str, bytes]]:
        start = prefix.encode() or _FIRST
        found: list[tuple[str, bytes]] = []
        cursor = self._transaction.cursor()
        if cursor.set_range(start):
            for key, value in cursor.iternext():
                if not key.startswith(prefix.encode()):
                    break
                found.append((key.decode(), opened(key, value)))
        return found

    def put(self, key: str, value: bytes) -> None:
        raise StoreError("a catalog read cannot write: use transact")

    def delete(self, key: str) -> None:
        raise StoreError("a catalog read cannot write: use transact")


class _Writing(_Reading):
    wrote = False

    def put(self, key: str, value: bytes) -> None:
        self.wrote = True
        encoded = _encoded(key)
        self._transaction.put(encoded, seal(encoded, value))

    def delete(self, key: str) -> None:
        self.wrote |= self._transaction.delete(_encoded(key))


class EmbeddedCatalog:
    def __init__(self, environment: Environment, others: Sequence[parts.Clock]) -> None:
        """`others` are the other parts."""
        self._environment, self._others = environment, others

    def transact(self, body: Callable[[CatalogTransaction], T]) -> T:
        def noting(transaction: Transaction) -> T:
            writing = _Writing(transaction)
            result = body(writing)
            if writing.wrote:  # else nothing is committed, and readers need not look again
                parts.note(transaction, self._others)
            return result

        return self._environment.write(noting)

    def read(self, body: Callable[[CatalogTransaction], T]) -> T:
        return self._environment.read(lambda transaction: body(_Reading(transaction)))

    def get_one(self, key: str) -> bytes | None:
        encoded = key.encode()
        return self._environment.read(lambda transaction: _opened(encoded, transaction))

    def mark(self) -> int:
        return self._environment.mark()

    def read_marked(self, body: Callable[[CatalogTransaction], T]) -> tuple[int, T]:
        return self._environment.read(
            lambda transaction: (transaction.id(), body(_Reading(transaction)))
        )
