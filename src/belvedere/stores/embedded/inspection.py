"""Reads everything in the directory of a store and says what is damaged, also of one that cannot be
opened; others may have it open and write meanwhile.

LMDB's files are read without LMDB (`trees.py`), so that a damaged page is a finding and no signal.
A read transaction keeps the pages of one moment, if LMDB can be opened; else what is found counts
if no writer was in the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from belvedere.errors import BelvedereError, Damaged, StoreError
from belvedere.stores.embedded import (
    checked,
    environment,
    files,
    layout,
    log,
    parts,
    reading,
    run_lists,
    trees,
)
from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.log_inspection import LogFound
from belvedere.stores.embedded.run_inspection import Damage, RunList, RunsFound

_TRIES = 20
_PLACES = (layout.FORMAT_FILE, "catalog", "base", "slots")
_MAP_SIZE, _MAX_SIZE = 64 << 30, 1 << 40
_END = b"\0\0\0\0mend"
_FIRST_TABLE, _CATALOG = b"\0\0\0\1", b"\1"


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of a store has."""

    name: str
    path: str
    size: int = 0  # of its files, in bytes
    entries: int = 0
    log_blocks: int = 0
    lists: int = 0
    sections: int = 0
    records: int = 0  # of sections, or rows in LMDB
    unnamed: tuple[str, ...] = ()  # files that nothing names: no damage
    damages: tuple[Damage, ...] = ()

    @property
    def can_be_opened(self) -> bool:
        """Whether at most runs are damaged, which are of one table each."""
        return all(each.keys is not None for each in self.damages)


@dataclass(frozen=True, slots=True)
class StoreInspection:
    path: str
    slots: int
    parts: tuple[Part, ...]
    catalog: dict[str, bytes]  # its entries, as far as they can be read


def inspect(path: str) -> StoreInspection:
    """Raises only if there is no store of this format at `path`."""
    folder = Path(os.path.realpath(path))
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a directory: check the path")
    layout.check_no_backup(folder)
    if not any((folder / name).exists() for name in _PLACES):
        raise StoreError(
            f"{folder} is not a Belvedere database: it has nothing of one, check the path"
        )
    first, slots = _format(folder)
    found, catalog = [first], dict[str, bytes]()
    for name in parts.names(slots):
        contents, part = _inspect_part(folder, name)
        found.append(part)
        if name == "catalog":
            catalog = contents.catalog
    return StoreInspection(str(folder), slots, tuple(found), catalog)


def _format(folder: Path) -> tuple[Part, int]:
    """The part that says how many others there are; if it cannot be read, those that are there."""
    path = folder / layout.FORMAT_FILE
    size = path.stat().st_size if path.exists() else 0
    try:
        found = layout.read_format(folder)
    except FileNotFoundError:
        damage = Damage(str(path), "it is missing")
    except StoreError as error:
        damage = Damage(str(path), str(error).partition(". ")[0])
    else:
        if found.version < layout.FORMAT:
            layout.current(folder, "older formats have no checksums to compare")
        return Part(layout.FORMAT_FILE, str(path), size), found.slots
    slots = len([each for each in (folder / "slots").glob("[0-9]*") if each.is_dir()])
    return Part(layout.FORMAT_FILE, str(path), size, damages=(damage,)), max(slots, 1)


def _inspect_part(folder: Path, name: str) -> tuple[_Contents, Part]:
    path = str(folder / name)
    runs = RunsFound(path)
    before: list[RunList] | None = None
    for _ in range(_TRIES):
        contents = _read(path)
        runs.read(contents.lists, contents.sections)
        if not runs.missing or contents.lists == before:
            break
        before = contents.lists  # merged meanwhile, if the lists are others now
    found = LogFound()
    if name == "base":
        found.read(path, contents.store, log.trim_point(contents.end), log.noted_end(contents.end))
    # sections in LMDB that its damaged pages have are not told one by one
    lost = contents.damages and [each for each in runs.damages if each.file == path]
    of_runs = (each for each in runs.damages if each not in lost)
    damages = *contents.damages, *of_runs, *found.damages
    return contents, Part(
        name,
        path,
        _size(path),
        contents.entries,
        found.records,
        len(contents.lists),
        len(runs.sections),
        runs.rows + contents.rows,
        tuple(runs.unnamed()) if os.path.isdir(path) else (),
        damages,
    )


def _size(path: str) -> int:
    found = [each for each in Path(path).rglob("*") if each.suffix in (".mdb", ".run", ".log")]
    return sum(each.stat().st_size for each in found if each.exists())


def _read(path: str) -> _Contents:
    """What the LMDB file of a part has, as of one moment."""
    for _ in range(_TRIES):
        with _kept(path) as (number, trouble):
            contents = _Contents(os.path.join(path, DATA))
            is_whole = contents.read(number)
        if not contents.damages and trouble:
            contents.report(trouble)
        if is_whole:
            break
    return contents


@contextmanager
def _kept(path: str) -> Iterator[tuple[int | None, str]]:
    """The number of a transaction whose pages stay meanwhile. If nobody can promise that: None, and
    why the part cannot be opened.
    """
    if not os.path.isdir(path):
        yield None, "it is missing"
        return
    held = environment.acquire(path, _MAP_SIZE, _MAX_SIZE, reading.kind_of(path))
    transaction, trouble = None, ""
    try:
        try:
            transaction = held.begin_read()
        except BelvedereError as error:
            trouble = error.what if isinstance(error, Damaged) else str(error).partition(". ")[0]
        yield (None if transaction is None else transaction.id()), trouble
    finally:
        if transaction is not None:
            held.end_read(transaction)
        environment.release(held)


@dataclass
class _Contents:
    """The entries of an LMDB file by kind."""

    file: str
    damages: list[Damage] = field(default_factory=list)
    entries: int = 0
    rows: int = 0
    lists: list[RunList] = field(default_factory=list)
    sections: dict[str, bytes] = field(default_factory=dict)
    catalog: dict[str, bytes] = field(default_factory=dict)
    end: dict[bytes, bytes] = field(default_factory=dict)  # of the log, as it is kept
    store: str = ""  # whose part it is

    def report(self, what: str, table: int = 0) -> None:
        self.damages.append(Damage(self.file, what, table))

    def read(self, number: int | None) -> bool:
        """All of it as of a transaction, or of the newest; whether no writer was in the way."""
        try:
            with open(self.file, "rb") as file:
                meta = files.newest_meta(file)
                if number is not None:
                    meta = files.meta_of(file, number)
                    if meta is None:
                        return False
                if meta is None:
                    self.report("it is empty, or no file of LMDB")
                    return True
                for key, value in trees.entries(file.fileno(), meta, self.report):
                    self._add(key, value)
                newest = files.newest_meta(file)
                return number is not None or not self.damages or newest == meta
        except FileNotFoundError:
            self.report("it is missing")
            return True

    def _add(self, key: bytes, value: bytes) -> None:
        self.entries += 1
        if not checked.is_known(key):
            self.report(f"there is {checked.describe(key)}, which cannot be")
        elif not checked.is_sealed(key):
            self._add_known(key, value)
        elif checked.is_whole(key, value):
            self._add_known(key, value if key == _END else checked.opened(key, value))
        else:
            table = _table(key) if key.startswith(run_lists.LIST) else 0
            self.report(f"{checked.describe(key)} is not what was written", table)

    def _add_known(self, key: bytes, value: bytes) -> None:
        """A value without its seal."""
        if key >= _CATALOG:
            self.catalog[key.decode(errors="replace")] = value
        elif key >= _FIRST_TABLE:
            self.rows += 1
        elif key.startswith(run_lists.LIST):
            self.lists.append(RunList(_table(key), int.from_bytes(key[-8:], "big"), value))
        elif key.startswith(run_lists.SECTION):
            self.sections[key[len(run_lists.SECTION) :].decode(errors="replace")] = value
        elif key == _END:
            self.end = {key: value}
        elif key == parts.STORE:
            self.store = value.decode(errors="replace").partition(" ")[0]


def _table(key: bytes) -> int:
    return int.from_bytes(key[5:9], "big")
