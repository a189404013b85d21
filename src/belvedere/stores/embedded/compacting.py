"""Room given back to the file system: by a store that nobody else has open.

    runs     all runs of a table become one, so that what was overwritten or deleted goes; files
             that no list names any more are removed
    LMDB     each environment is copied without its free pages, and the copy takes its place

A table is merged as at any other time (`merging.py`). A copy has the same records and the same
transaction number as what it replaces, and it is whole on disk before it is given its name. So
whatever is killed when, each part is as before or as after, and all of them belong together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb

from belvedere.errors import StoreError
from belvedere.stores.embedded import copies, files, layout, merging, parts, run_lists
from belvedere.stores.embedded.environment import Transaction, translated
from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.merging import Merge
from belvedere.stores.embedded.places import Place
from belvedere.stores.embedded.reading import why_not_writable
from belvedere.stores.embedded.run_lists import Owner
from belvedere.stores.embedded.runs import Ref, is_small
from belvedere.stores.embedded.store import EmbeddedStore

_COPY = "data.mdb.compact"
_ROOM = 1 << 20


@dataclass(frozen=True, slots=True)
class Compacted:
    """Bytes of all files of a store."""

    before: int
    after: int


def compact(folder: Path, clean: Callable[[EmbeddedStore], None]) -> Compacted:
    """`clean` removes what nobody needs any more, as far as the store cannot know it."""
    found = layout.current(folder, "then compact it")
    if why := why_not_writable(folder, found.slots):
        raise StoreError(f"{folder} cannot be compacted: {why}")
    names = [folder / part for part in parts.names(found.slots)]
    # who opens the store to write it waits here until all is done
    with copies.told(folder, "the store is as it was"), layout.locked(folder):
        for part in names:
            layout.check_unused(part, _in_use(folder))
            (part / _COPY).unlink(missing_ok=True)  # of one that was killed
        before = _bytes(names)
        with EmbeddedStore.of(folder, found, layout.SMALL_MAP) as store:
            clean(store)
            for place in store.places:
                _merge_all(place)
        for part in names:
            with layout.alone(part, _in_use(folder)):
                _replace(part)
        return Compacted(before, _bytes(names))


def _in_use(folder: Path) -> str:
    return (
        f"{folder} is open, in this or another process, and can only be compacted alone: stop"
        " belvedere run and whoever reads or writes it, then try again"
    )


def _bytes(folders: list[Path]) -> int:
    """What a store takes; LMDB's files may have holes, which take nothing."""
    entries = (entry for folder in folders for entry in folder.rglob("*"))
    return sum(entry.stat().st_blocks * 512 for entry in entries)


# ---------------------------------------------------------------- runs


def _merge_all(place: Place) -> None:
    environment = place.environment
    for owner in environment.read(lambda t: sorted({owner for owner, _, _ in run_lists.every(t)})):
        if _merge(place, owner):
            # one table after the other, so that no more room is needed than for the largest
            environment.write(lambda t: _remove_unnamed(t, place), frees=True)


def _merge(place: Place, owner: Owner) -> bool:
    """Whether that was worth it. A thread of this process may merge at the same time."""
    while True:
        wanted = place.environment.read(lambda t: merging.whole_merge(t, owner))
        if wanted is None or not _is_worth_it(place, wanted):
            return False
        if merging.do(place.environment, place.files, wanted, lambda: False):
            return True


def _is_worth_it(place: Place, wanted: Merge) -> bool:
    """Several runs, or one that shares its file with something dead."""
    if len(wanted.runs) > 1:
        return True
    live = place.environment.read(lambda t: _live_bytes(t, place))
    names = {ref.file for run in wanted.runs for ref in run if not is_small(ref.file)}
    return any(live[name] < place.files.size(name) for name in names)


def _live_bytes(transaction: Transaction, place: Place) -> dict[str, int]:
    found: dict[str, int] = {}
    for ref in set(_refs(transaction, place)):
        found[ref.file] = found.get(ref.file, 0) + ref.size
    return found


def _refs(transaction: Transaction, place: Place) -> Iterator[Ref]:
    for owner, _, data in run_lists.every(transaction):
        for run in run_lists.decode(data, place.where(owner)):
            yield from run


def _remove_unnamed(transaction: Transaction, place: Place) -> None:
    """All of them: nobody else writes one."""
    named = {ref.file for ref in _refs(transaction, place)}
    run_lists.remove_sections(transaction, named)
    for name in set(place.files.names()) - named - place.files.in_flight:
        place.files.remove(name)


# ---------------------------------------------------------------- LMDB


def _replace(part: Path) -> None:
    """Nobody has the environment open, and we have not either: no lock file is needed."""
    old, new = part / DATA, part / _COPY
    try:
        _copy(part, new)
        _take_rights(old, new)
        copies.sync_file(new)
        if new.stat().st_blocks < old.stat().st_blocks:
            new.rename(old)
    finally:
        new.unlink(missing_ok=True)
    copies.sync_folder(part)


def _copy(part: Path, new: Path) -> None:
    try:
        with (
            lmdb.open(str(part), readonly=True, lock=False, map_size=_ROOM) as environment,
            environment.begin() as transaction,
            new.open("xb") as file,
        ):
            number = transaction.id()
            environment.copyfd(file.fileno(), compact=True, txn=transaction)
    except lmdb.Error as error:
        raise translated(str(part), error) from error
    files.renumber(str(new), number)


def _take_rights(old: Path, new: Path) -> None:
    found, made = old.stat(), new.stat()
    new.chmod(found.st_mode & 0o7777)
    if (found.st_uid, found.st_gid) != (made.st_uid, made.st_gid):
        os.chown(new, found.st_uid, found.st_gid)
