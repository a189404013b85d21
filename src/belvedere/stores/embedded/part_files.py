"""The files that a part needs beside its LMDB environment: those that its run lists name.

Nobody changes them after they were named, so they can be linked. This is the one place that knows
which files belong to a state of a part: to have it is to have the environment as of a transaction
and the files that are needed in that transaction.

    00000000 'r' ... u64    a run list; the last eight bytes of its key are its epoch or position,
                            and of keys that differ in them only the last one is the newest

Lists that are not the newest may name files that are gone: earlier versions removed files before
they had taken the names away, and may have been killed in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from belvedere.errors import StoreError
from belvedere.stores.embedded import run_lists
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.files import RESTORE
from belvedere.stores.embedded.runs import RunRef, is_small

_TRIES = 100


@dataclass(frozen=True, slots=True)
class Needed:
    """Files by name, each with the bytes that it must at least have."""

    by_newest: dict[str, int]
    by_any: dict[str, int]


def needed(transaction: Transaction, path: str) -> Needed:
    """What the run lists of a part name."""
    lists = list(run_lists.every(transaction))
    newest = {owner: data for owner, _, data in lists}
    decoded = {data: run_lists.decode(data, path) for _, _, data in lists}
    return Needed(
        _sizes(decoded[data] for data in newest.values()),
        _sizes(decoded.values()),
    )


def _sizes(lists: Iterable[Sequence[RunRef]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for runs in lists:
        for ref in (ref for run in runs for ref in run if not is_small(ref.file)):
            found[ref.file] = max(found.get(ref.file, 0), ref.offset + ref.size)
    return found


def check_there(environment: Environment) -> None:
    """Raise if a file that a newest run list names is missing or too short.

    Others may merge and collect meanwhile; then the newest list is another one when it is read
    again.
    """
    before: tuple[str, ...] = ()
    for _ in range(_TRIES):
        sizes = environment.read(lambda t: _newest_sizes(t, environment.path))
        wrong = tuple(_wrong(environment.path, sizes))
        if not wrong:
            return
        if wrong == before:
            raise StoreError(
                f"{wrong[0]}. A part of this store is lost, or this copy was not made in one piece:"
                f" use belvedere backup. {RESTORE}"
            )
        before = wrong
    raise StoreError(f"the runs in {environment.path} change faster than they can be looked at")


def _newest_sizes(transaction: Transaction, path: str) -> dict[str, int]:
    newest = {owner: data for owner, _, data in run_lists.every(transaction)}
    return _sizes(run_lists.decode(data, path) for data in newest.values())


def _wrong(folder: str, sizes: dict[str, int]) -> Iterator[str]:
    if not sizes:
        return
    with os.scandir(folder) as entries:
        there = {entry.name: entry for entry in entries}
    for name, least in sorted(sizes.items()):
        path = os.path.join(folder, name)
        if name not in there:
            yield f"{path} is missing"
        elif (size := _size(path)) < least:
            yield f"{path} is cut off: it has {size:,} bytes and should have {least:,}"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
