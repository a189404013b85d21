"""The catalog: one small LMDB environment, so one transaction decides (rule R4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from belvedere.errors import SchemaError, StoreError
from belvedere.stores.base import CatalogTransaction
from belvedere.stores.embedded.environment import Environment, Transaction

T = TypeVar("T")
_LONGEST_KEY = 511


def _encoded(key: str) -> bytes:
    encoded = key.encode()
    if not 0 < len(encoded) <= _LONGEST_KEY:
        raise SchemaError(f"a catalog key has 1 to {_LONGEST_KEY} bytes, not {len(encoded)}: choose a shorter name")
    return encoded


class _Reading:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def get(self, key: str) -> bytes | None:
        value: bytes | None = self._transaction.get(_encoded(key))
        return value

    def scan(self, prefix: str) -> list[tuple[str, bytes]]:
        start = prefix.encode()
        found: list[tuple[str, bytes]] = []
        cursor = self._transaction.cursor()
        if cursor.set_range(start):
            for key, value in cursor.iternext():
                if not key.startswith(start):
                    break
                found.append((key.decode(), value))
        return found

    def put(self, key: str, value: bytes) -> None:
        raise StoreError("a catalog read cannot write: use transact")

    def delete(self, key: str) -> None:
        raise StoreError("a catalog read cannot write: use transact")


class _Writing(_Reading):
    def put(self, key: str, value: bytes) -> None:
        self._transaction.put(_encoded(key), value)

    def delete(self, key: str) -> None:
        self._transaction.delete(_encoded(key))


class EmbeddedCatalog:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def transact(self, body: Callable[[CatalogTransaction], T]) -> T:
        return self._environment.write(lambda transaction: body(_Writing(transaction)))

    def read(self, body: Callable[[CatalogTransaction], T]) -> T:
        return self._environment.read(lambda transaction: body(_Reading(transaction)))

    def get_one(self, key: str) -> bytes | None:
        value: bytes | None = self._environment.read(lambda transaction: transaction.get(key.encode()))
        return value

    def mark(self) -> int:
        return self._environment.mark()

    def read_marked(self, body: Callable[[CatalogTransaction], T]) -> tuple[int, T]:
        return self._environment.read(lambda transaction: (transaction.id(), body(_Reading(transaction))))
