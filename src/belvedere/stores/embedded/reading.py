"""Stores that are only read: because a user wants it so, or because their files cannot be written.

LMDB's lock file tells writers which pages readers still need; to be told there, a reader must write
to it. Where it cannot, it reads without: pages that belong to transaction n stay as they are until
transaction n + 3 begins, because a writer leaves alone what the last two have freed. So what was
read is right if after reading no more than transaction n + 1 is there, and is read again if not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from belvedere.errors import Damaged, StoreError
from belvedere.stores.embedded import parts, soundness
from belvedere.stores.embedded.environment import Environment, Transaction, translated, unreadable
from belvedere.stores.embedded.files import DATA, LOCK

T = TypeVar("T")
HOLDER = "holder"
_TRIES = 20
_KEPT = 1  # transactions that may follow the one that is read


def why_not_writable(folder: Path, slots: int) -> str:
    """Why the files of the store in `folder` cannot be written, or "" if they can."""
    for part in parts.names(slots):
        for name in (DATA, LOCK, HOLDER):
            path = folder / part / name
            place = path if path.exists() else path.parent
            if place.exists() and not os.access(place, os.W_OK):
                is_mount = os.statvfs(place).f_flag & os.ST_RDONLY
                return (
                    f"{folder} is on a read-only mount"
                    if is_mount
                    else f"there is no right to write {place}"
                )
    return ""


class ReadOnly:
    """An environment of which only reads are allowed.

    Another object of this process may have it to write.
    """

    def __init__(self, environment: Environment, why: str) -> None:
        self._environment, self._why = environment, why

    def write(self, body: Any, frees: bool = False) -> NoReturn:
        raise StoreError(f"nothing can be written: {self._why}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


class ReadingEnvironment(Environment):
    """Opened by LMDB for reading, with its lock file."""

    writable = False

    def _open(self, length: int) -> Any:
        opened = self._open_lmdb(readonly=True)
        self._check_sound(opened)
        return opened


class UnlockedEnvironment(ReadingEnvironment):
    """The same without a lock file: what was read counts if no writer can have been in the way."""

    def _open(self, length: int) -> Any:
        opened = self._open_lmdb(readonly=True, lock=False)
        self._check_unlocked(opened)
        return opened

    def _check_unlocked(self, opened: Any) -> None:
        for _ in range(_TRIES):
            number = opened.info()["last_txnid"]
            try:
                if soundness.check(self.path, number):
                    return
            except Damaged:
                if opened.info()["last_txnid"] <= number + _KEPT:
                    opened.close()
                    raise
        # a writer was in the way each time: whoever reads will look for himself

    def read(self, body: Callable[[Transaction], T], buffers: bool = False) -> T:
        for _ in range(_TRIES):
            transaction = self.begin_read(buffers)
            try:
                return self.inside(transaction, body)
            except _Overtaken:
                continue
            finally:
                self.end_read(transaction)
        raise _Overtaken(self.path)

    def inside(self, transaction: Transaction, body: Callable[[Transaction], T]) -> T:
        number = transaction.id()
        try:
            result = body(transaction)
        except Exception as error:
            # whatever it was: pages that were overwritten can look like anything
            self._check(number)
            known = isinstance(error, unreadable())
            raise (translated(self.path, error) if known else error) from error
        self._check(number)
        return result

    def _check(self, number: int) -> None:
        if self.replaced:  # without a lock file, who compacts the store cannot see us
            raise StoreError(f"{self.path} was replaced while it was open: open the store again")
        if self.mark() > number + _KEPT:
            raise _Overtaken(self.path)


class _Overtaken(StoreError):
    def __init__(self, path: str) -> None:
        why = (
            f"{path} was written while it was read, and without the right to write its lock file"
            " that cannot be prevented"
        )
        super().__init__(
            f"{why}: try again, or ask for the right to write {os.path.join(path, LOCK)}"
        )


def kind_of(path: str) -> type[Environment]:
    """How an environment that is only read is opened."""
    return (
        ReadingEnvironment if os.access(os.path.join(path, LOCK), os.W_OK) else UnlockedEnvironment
    )
