"""A backup: the store as of one cut, taken while others use it.

    backup.json          which store, what files with how many bytes; it is there when all are
    backup.json.new      while they are brought
    catalog/ base/ ...   each environment as of its transaction, and the files that it needs

The cut is an end of the log, and a read transaction in every part, between whose beginnings no
transaction of the catalog was committed: the catalog's is begun first, so no part is older than the
catalog says, and none has seen a catalog that is not there. That is a state in which a crash could
have left the store (`parts.py`).

Files that are needed go when others merge and collect. So they are linked, or held open, before
anything long is done, and if one was gone, the cut is taken again: what was brought stays.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from belvedere.errors import StoreError
from belvedere.stores.embedded import copies, layout, log, log_copies, part_files, parts
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.layout import BACKUP, BACKUP_BEGUN, Format
from belvedere.stores.embedded.log_file import LogFile
from belvedere.stores.embedded.log_segments import Segment
from belvedere.stores.embedded.part_files import Needed

_CUTS = 10_000  # tries; a transaction of the catalog takes longer than to begin ten others
_TRIES = 100  # to find all files that a cut needs
_HELD = 256  # files that are open at once


@dataclass(frozen=True, slots=True)
class Listed:
    """What `backup.json` says."""

    format: Format
    taken: str
    sizes: dict[str, int]  # of every file, by its path below the directory
    checksums: dict[str, int]  # of files that have none inside

    def to_bytes(self) -> bytes:
        said = {
            "belvedere": "backup",
            "format": self.format.version,
            "slots": self.format.slots,
            "id": self.format.id,
            "taken": self.taken,
            "sizes": self.sizes,
            "checksums": self.checksums,
        }
        text = json.dumps(said)
        return json.dumps({"content": text, "checksum": crc32(text.encode())}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Listed:
        outer = json.loads(data)
        if crc32(outer["content"].encode()) != outer["checksum"]:
            raise ValueError("its checksum is wrong")
        said = json.loads(outer["content"])
        made = Format(int(said["format"]), int(said["slots"]), str(said["id"]))
        return cls(made, said["taken"], said["sizes"], said["checksums"])


@dataclass(frozen=True, slots=True)
class Taken:
    """What a backup cost."""

    path: str
    files: int
    bytes: int
    copied_bytes: int  # the rest are links to files that the store, or an earlier backup, has


def read(folder: Path) -> Listed:
    """What a backup says of itself; raises if the directory is none, or an interrupted one."""
    try:
        return Listed.from_bytes((folder / BACKUP).read_bytes())
    except FileNotFoundError:
        if (folder / BACKUP_BEGUN).exists():
            what = f"the backup in {folder} was interrupted, or is under way"
            raise StoreError(f"{what}: take another one, into another directory") from None
        raise StoreError(
            f"{folder} is not a backup, it has no {BACKUP}: name a directory that belvedere backup"
            " has made"
        ) from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder / BACKUP} is damaged ({error}): use another backup") from error


def take(
    store: Path,
    found: Format,
    environments: Sequence[Environment],
    file: LogFile,
    target: Path,
    base: Path | None = None,
) -> Taken:
    """Make a backup of the store in a new directory.

    `base` is an earlier one on the same file system as the new one: what it has already is linked.
    """
    layout.check_free(target, store)
    earlier = {} if base is None else read(base).sizes
    with copies.new_folder(target, BACKUP_BEGUN, BACKUP):
        taking = _Taking(store, environments, file, target, base, earlier)
        listed = taking.run(found)
        (target / BACKUP_BEGUN).write_bytes(listed.to_bytes())
    sizes = listed.sizes
    return Taken(str(target), len(sizes), sum(sizes.values()), taking.copied)


@contextlib.contextmanager
def cut(environments: Sequence[Environment]) -> Iterator[list[Transaction]]:
    """Read transactions of all parts, the catalog's first, that belong together."""
    for _ in range(_CUTS):
        with contextlib.ExitStack() as stack:
            transactions = [_begin(each, stack) for each in environments]
            if environments[0].mark() == transactions[0].id():
                yield transactions
                return
    raise StoreError("the catalog changes faster than a backup can begin: try again")


def _begin(environment: Environment, stack: contextlib.ExitStack) -> Transaction:
    transaction = environment.begin_read()
    stack.callback(environment.end_read, transaction)
    return transaction


class _Taking:
    """One backup under way."""

    def __init__(
        self,
        store: Path,
        environments: Sequence[Environment],
        file: LogFile,
        target: Path,
        base: Path | None,
        earlier: dict[str, int],
    ) -> None:
        self._store, self._target, self._base = store, target, base
        self._earlier, self._file = earlier, file
        names = parts.names(len(environments) - 2)
        self._parts = list(zip(names, environments, strict=True))
        self._environments = environments
        self._environment_files = [f"{name}/{DATA}" for name in names]
        self._log_files: list[str] = []
        self._brought: dict[str, int] = {}  # files beside LMDB's, by path, with their bytes
        self.copied = 0
        for name, _ in self._parts:
            (target / name).mkdir(parents=True)

    def run(self, found: Format) -> Listed:
        """First without a cut: while one is held, LMDB cannot use free pages again."""
        for name, environment in self._parts:
            self._bring(name, environment.read(_needed(environment)).by_any)
        self._take_cut()
        copied = [*self._environment_files, *self._log_files]
        checksums = {path: copies.checksum(self._target / path) for path in copied}
        paths = [*checksums, *sorted(self._brought)]
        sizes = {path: (self._target / path).stat().st_size for path in paths}
        return Listed(found, _now(), sizes, checksums)

    def _take_cut(self) -> None:
        before: list[int] = []
        for _ in range(_TRIES):
            with cut(self._environments) as transactions, contextlib.ExitStack() as stack:
                held = self._hold_log(transactions, stack)
                named = None if held is None else self._bring_all(transactions, before)
                if held is not None and named is not None:
                    self._remove_others(named)
                    self._copy_log(held)
                    self._copy_environments(transactions)
                    return
                before = [each.id() for each in transactions]
        raise StoreError(
            f"the runs of {self._store} were merged {_TRIES} times while they were linked: try"
            " again, or stop the pipeline meanwhile"
        )

    def _hold_log(
        self, transactions: list[Transaction], stack: contextlib.ExitStack
    ) -> list[tuple[Segment, int]] | None:
        """The log up to its end, whose writers have seen no catalog that the cut has not."""
        end, base = self._file.end, self._environments[1]
        if self._environments[0].mark() != transactions[0].id():
            return None
        trimmed = base.inside(transactions[1], log.trim_point)
        return log_copies.hold(self._file.path, trimmed, end, stack)

    def _copy_log(self, held: list[tuple[Segment, int]]) -> None:
        part = self._parts[1][0]
        sizes = log_copies.bring(held, self._target / part)
        self._log_files = [f"{part}/{name}" for name in sizes]
        self.copied += sum(sizes.values())

    def _bring_all(self, transactions: list[Transaction], before: list[int]) -> set[str] | None:
        """The files that a cut needs; None if one of them was gone, and the next cut may need
        others.
        """
        found: set[str] = set()
        for number, (name, environment) in enumerate(self._parts):
            transaction = transactions[number]
            wanted = environment.inside(transaction, _needed(environment))
            missing = self._bring(name, wanted.by_any)
            # If the part is the same as before, nobody has merged what is gone: it was collected,
            # and the list that names it goes with it, or it is lost.
            if missing and transaction.id() not in before[number : number + 1]:
                return None
            if lost := missing & set(wanted.by_newest):
                raise StoreError(
                    f"{os.path.join(environment.path, min(lost))} is missing or cut off, a part of"
                    " this store is lost: restore an earlier backup"
                )
            found |= {f"{name}/{file}" for file in set(wanted.by_any) - missing}
        return found

    def _bring(self, part: str, wanted: dict[str, int]) -> set[str]:
        """Link or copy files of a part that are not there yet; returns those that are gone."""
        gone: set[str] = set()
        new = [name for name in sorted(wanted) if f"{part}/{name}" not in self._brought]
        for some in copies.chunks(new, _HELD):
            with contextlib.ExitStack() as stack:
                held = {name: self._hold(f"{part}/{name}", stack) for name in some}
                for name, descriptor in held.items():
                    if descriptor is None or os.fstat(descriptor).st_size < wanted[name]:
                        gone.add(name)
                    else:
                        self._bring_one(f"{part}/{name}", descriptor)
        return gone

    def _hold(self, path: str, stack: contextlib.ExitStack) -> int | None:
        try:
            descriptor = os.open(self._store / path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        stack.callback(os.close, descriptor)
        return descriptor

    def _bring_one(self, path: str, descriptor: int) -> None:
        target, size = self._target / path, os.fstat(descriptor).st_size
        if not self._link(path, target, size):
            copies.copy_open(descriptor, target)
            self.copied += size
        self._brought[path] = size

    def _link(self, path: str, target: Path, size: int) -> bool:
        with contextlib.suppress(FileNotFoundError):  # removed now, but open: it is copied
            if copies.link(self._store / path, target):
                return True
        if self._base is not None and self._earlier.get(path) == size:
            source = self._base / path
            return source.stat().st_size == size and copies.link(source, target)
        return False

    def _remove_others(self, named: set[str]) -> None:
        """What was brought for a cut that did not count."""
        for path in set(self._brought) - named:
            (self._target / path).unlink()
            del self._brought[path]

    def _copy_environments(self, transactions: list[Transaction]) -> None:
        for path, environment, transaction in zip(
            self._environment_files, self._environments, transactions, strict=True
        ):
            copies.copy_environment(environment, transaction, self._target / path)
            self.copied += (self._target / path).stat().st_size


def _needed(environment: Environment) -> Callable[[Transaction], Needed]:
    return lambda transaction: part_files.needed(transaction, environment.path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
