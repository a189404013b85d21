"""That the parts of a store belong together, and that all of them are from one time.

Every environment says of which store it is, and which part of it. LMDB numbers the transactions of
an environment; these numbers are clocks. Each transaction of the catalog notes the numbers of all
other parts, and each transaction of another part that depends on the catalog notes the catalog's
number:

    00000000 'm' "store"     the store's id and the part's name
    00000000 'm' "parts"     in the catalog: the number of every other part
    the log's ends, a slot's floors: the number of the catalog

Parts of different times are then refused unless they are a consistent cut, that is a state in which
a crash could have left the store: no part has seen a catalog that is not there yet, and the catalog
has seen no part that is not there yet. What parts tell each other goes through the catalog: an
epoch reads the log as far as its intent says, and state that a commit has confirmed.

Numbers that are noted belong to transactions that are on disk, so no loss of power makes them
wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Protocol

from belvedere.errors import StoreError
from belvedere.stores.embedded import log, part_files, run_lists
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.files import RESTORE
from belvedere.stores.embedded.log_file import LogFile

STORE = b"\0\0\0\0mstore"
PARTS = b"\0\0\0\0mparts"
_NUMBER = Struct(">Q")
_COPY = "or this copy was not made in one piece: use belvedere backup"


def names(slots: int) -> list[str]:
    return ["catalog", "base", *(f"slots/{slot:03}" for slot in range(slots))]


def claim(transaction: Transaction, store: str, part: str) -> None:
    transaction.put(STORE, f"{store} {part}".encode())


def owner(transaction: Transaction) -> str | None:
    """The id of the store and the name of the part, as `claim` wrote them."""
    found: bytes | None = transaction.get(STORE)
    return None if found is None else found.decode(errors="replace")


def is_blank(transaction: Transaction) -> bool:
    return not transaction.stat()["entries"]


class Clock(Protocol):
    """Of a part: it only goes on."""

    def number(self) -> int: ...


def note(transaction: Transaction, others: Sequence[Clock]) -> None:
    """In a transaction of the catalog: how far the other parts are. What is noted only grows."""
    before = noted(transaction)
    before += [0] * (len(others) - len(before))  # formats up to 5 had no clock of the log
    numbers = b"".join(
        _NUMBER.pack(max(each.number(), old)) for each, old in zip(others, before, strict=True)
    )
    transaction.put(PARTS, seal(PARTS, numbers))


def noted(transaction: Transaction) -> list[int]:
    """The numbers of the other parts; none before the first transaction."""
    stored = transaction.get(PARTS)
    known = opened(PARTS, stored) if stored else b""
    return [number for (number,) in _NUMBER.iter_unpack(known)]


def check(folder: str, store: str, environments: Sequence[Environment], file: LogFile) -> None:
    """Raise unless all parts are of this store, from one time, and have their files.

    Other processes may write meanwhile: clocks only go on.
    """
    found = names(len(environments) - 2)
    for name, environment in zip(found, environments, strict=True):
        _check_owner(folder, store, name, environment.read(owner))
    catalog, *others = environments
    read_seen: list[Callable[[Transaction], int]] = [
        log.seen,
        *[run_lists.seen] * (len(others) - 1),
    ]
    seen = [environment.read(read) for environment, read in zip(others, read_seen, strict=True)]
    now, needed = catalog.read(lambda transaction: (transaction.id(), noted(transaction)))
    for name, number in zip(found[1:], seen, strict=True):
        if number > now:
            raise mixed(folder, "catalog", name)
    for name, environment, number in zip(found[1:], others, needed, strict=False):
        if environment.number() < number:
            raise mixed(folder, name, "the catalog")
    for environment in others:
        part_files.check_there(environment)
    _check_log(folder, store, catalog, others, file)


def _check_log(
    folder: str, store: str, catalog: Environment, others: Sequence[Environment], file: LogFile
) -> None:
    """Its clock is its end, and its records say what catalog their writers have seen."""
    base = others[0]
    file.check(store)
    _, seen = file.last()
    now, known = catalog.read(lambda transaction: (transaction.id(), noted(transaction)))
    if seen > now:
        raise mixed(folder, "catalog", "base/log")
    noted_by_base, by_catalog = base.read(log.noted_end), max(known[len(others) :], default=0)
    file.reach(max(noted_by_base, by_catalog))
    if file.end < noted_by_base:
        raise mixed(folder, "base/log", "base")
    if file.end < by_catalog:
        raise mixed(folder, "base/log", "the catalog")


def _check_owner(folder: str, store: str, name: str, found: str | None) -> None:
    path = os.path.join(folder, name)
    if found == f"{store} {name}":
        return
    if found is None:
        raise StoreError(
            f"{path} has no mark of this store: it was made anew, or is from before this store."
            f" {RESTORE}"
        )
    other, _, place = found.partition(" ")
    if other == store:
        raise StoreError(f"{path} is {place} of this store, in the wrong place. {RESTORE}")
    raise StoreError(f"{path} belongs to another store than format.json says. {RESTORE}")


def mixed(folder: str, older: str, newer: str) -> StoreError:
    what = f"the parts of {folder} are not from one time: {older} is older than {newer}"
    return StoreError(f"{what}. A part was replaced alone, {_COPY}. {RESTORE}")
