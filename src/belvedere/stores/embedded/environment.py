"""One LMDB environment: opened once per process, again after a fork, grown when it is full.

All keys are in LMDB's main database, so that opening never waits for a writer (a named one must be
opened in a write transaction). A record's key is a table id of four bytes and the record's own key.
Table 0 is never given out; its keys hold everything that is not a record.

    00000000 'm' ...                   floors, ends, counts
    00000000 'r' table u32 epoch u64   a run list; 's' name, a small section
    table u32, key                     a record

LMDB forbids to open an environment twice in a process, and to touch it after a fork. Hence the
registry below.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import lmdb

from belvedere.errors import BelvedereError, Damaged, StoreError, StoreFull
from belvedere.libraries import pa
from belvedere.stores.embedded import files, soundness
from belvedere.stores.embedded.checked import Broken
from belvedere.stores.embedded.holder import Holder
from belvedere.stores.embedded.marks import mark_of

T = TypeVar("T")
Transaction = Any  # lmdb.Transaction

_READERS = 1024
_PAGE = 4096
_RESERVE = 1 << 20
# LMDB says EIO when a disk took only a part
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_DAMAGED = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.PanicError,
)
_TRIES = 100  # to find a meta page that others do not replace meanwhile
_PATIENCE = 5.0  # seconds that growing waits for transactions of other threads


def unreadable() -> tuple[type[Exception], ...]:
    """What damaged values raise; asked when something was raised, because it loads Arrow."""
    values = struct.error, UnicodeDecodeError, json.JSONDecodeError, pa.ArrowInvalid, Broken
    return lmdb.Error, *values


class Environment:
    """`begin_read` and `end_read` are a pair; `write` runs a function in a write transaction, again
    after growing.
    """

    writable = True

    def __init__(self, path: str, map_size: int, max_size: int) -> None:
        self.path, self.max_size = path, max_size
        self._data = os.path.join(path, "data.mdb")
        self.references = 0
        self._map_size = map_size
        self._inherited: Any = None  # the parent's environment, in a forked child
        self._unusable = False
        self._number = 0
        self._reset()

    def _reset(self) -> None:
        self._lmdb: Any = None
        self._holder: Holder | None = None
        self._opening = threading.Lock()
        # one writer of this process at a time, so that the holder's entry is his
        self._writing = threading.Lock()
        self._writer = 0
        self._active: list[None] = []  # one element per open transaction; append and pop are atomic
        self._gate = threading.Event()  # closed while the map is replaced
        self._gate.set()
        self._shut = False
        self._left = threading.Event()  # a transaction has ended since the gate was shut
        self._file: tuple[int, int] | None = None  # device and inode of the file that is open
        self._begin: Callable[..., Transaction] = self._open_and_begin
        # differs after every commit of any process
        self.mark: Callable[[], int] = self._open_and_mark

    # ------------------------------------------------------------ reading

    def begin_read(self, buffers: bool = False) -> Transaction:
        """With `buffers` values are views of LMDB's memory, valid until `end_read`."""
        self._active.append(None)
        if self._shut:
            self._wait_at_gate()
        try:
            return self._begin(None, None, False, buffers)
        except lmdb.Error as error:
            self._leave()
            self._cure(error)
        except BaseException:  # whatever it was, no transaction is open
            self._leave()
            raise
        return self.begin_read(buffers)

    def end_read(self, transaction: Transaction) -> None:
        transaction.abort()
        self._active.pop()
        if self._shut:
            self._left.set()

    def _leave(self) -> None:
        self._active.pop()
        self._left.set()

    def read(self, body: Callable[[Transaction], T], buffers: bool = False) -> T:
        transaction = self.begin_read(buffers)
        try:
            return self.inside(transaction, body)
        finally:
            self.end_read(transaction)

    def inside(self, transaction: Transaction, body: Callable[[Transaction], T]) -> T:
        """What a function finds in a read transaction that is open."""
        try:
            return body(transaction)
        except unreadable() as error:
            raise translated(self.path, error) from error

    def copy_to(self, transaction: Transaction, descriptor: int) -> None:
        """Write the environment as of a read transaction to a file, without its free pages.

        Nobody waits for it. LMDB numbers the copy from 1 on: see `files.renumber`.
        """
        self._lmdb.copyfd(descriptor, compact=True, txn=transaction)

    # ------------------------------------------------------------ writing

    def write(self, body: Callable[[Transaction], T], frees: bool = False) -> T:
        """Run `body` in a durable write transaction.

        It runs again if the map had to grow, so it must have no other effects.

        To free room takes a little room first: with `frees`, the map may grow beyond its largest
        size for that.
        """
        if self._writer == threading.get_ident():
            raise StoreError(
                "a write transaction of this thread is open already: finish it before the next one"
            )
        while True:
            try:
                with self._writing:
                    return self._write_once(body)
            except lmdb.MapFullError:
                self._grow(_RESERVE if frees else 0)
            except lmdb.Error as error:
                self._cure(error)
            except unreadable() as error:
                raise translated(self.path, error) from error

    def _write_once(self, body: Callable[[Transaction], T]) -> T:
        self._active.append(None)
        if self._shut:
            self._wait_at_gate()
        try:
            transaction = self._begin(None, None, True)
            if self.replaced:
                transaction.abort()
                raise gone(self.path)
            self._writer = threading.get_ident()
            self._holder.began()  # type: ignore[union-attr]  # _begin has opened it
            try:
                result = body(transaction)
                transaction.commit()
            except BaseException:  # whatever it was, nothing may be written
                transaction.abort()
                raise
            finally:
                self._holder.ended()  # type: ignore[union-attr]  # the same
                self._writer = 0
            return result
        finally:
            self._leave()

    # ------------------------------------------------------------ opening, growing, closing

    def _open_and_begin(self, *arguments: Any) -> Transaction:
        with self._opening:
            if self._lmdb is None:
                self._close_inherited()
                opened = self._open_whole()
                self._lmdb = opened
                self._begin = opened.begin
                self.mark = mark_of(opened, self.path)
        return self._lmdb.begin(*arguments)

    def _open_whole(self) -> Any:
        """Compacting may replace the file at the moment of opening: then it is the wrong one."""
        while True:
            self._file = self._file_there()
            opened = self._open(files.check_whole(self.path))
            if not self.replaced:
                return opened
            opened.close()

    def _open(self, length: int) -> Any:
        opened = self._open_lmdb()
        self._check_sound(opened)
        if length:
            with opened.begin(write=True):
                files.lengthen(self.path, length)
        opened.reader_check()  # entries of killed processes would pin old pages
        self._holder = Holder(self.path)
        return opened

    def _check_sound(self, opened: Any) -> None:
        """Before anything but the meta pages is read through LMDB."""
        try:
            for _ in range(_TRIES):
                with opened.begin() as transaction:  # its pages stay until it ends
                    if soundness.check(self.path, transaction.id()):
                        return
            raise Damaged(f"{self.path} has no meta page of its last transaction")
        except BaseException:  # whatever it was, nobody gets it, so nobody would close it
            opened.close()
            raise

    def _open_lmdb(self, **options: Any) -> Any:
        return lmdb.open(
            self.path, map_size=self._map_size, max_readers=_READERS, max_spare_txns=0, **options
        )

    @property
    def replaced(self) -> bool:
        """Whether the file that is open is no longer the one at its path: what is written to it,
        nobody else will see.
        """
        return self._file is not None and self._file != self._file_there()

    def _file_there(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._data)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def number(self) -> int:
        """Of the last commit that is on disk, of any process.

        The mark may be ahead of it: a loss of power could take that one back.

        A forked child that cannot use this environment says what its parent knew, which is all that
        it can depend on.
        """
        if not self._unusable and self.mark() != self._number:
            transaction = self.begin_read()
            self._number = int(transaction.id())
            self.end_read(transaction)
        return self._number

    def _open_and_mark(self) -> int:
        self.end_read(self.begin_read())
        return self.mark()

    def _wait_at_gate(self) -> None:
        while self._shut:
            self._leave()
            self._gate.wait()
            self._active.append(None)

    def _alone(self, action: Callable[[], None]) -> None:
        """Run `action` while this process has no transaction on this environment; set_mapsize would
        pull the map from under it.
        """
        with self._writing:
            self._gate.clear()
            self._shut = True
            try:
                patience = time.monotonic() + _PATIENCE
                self._left.clear()
                while self._active:
                    if not self._left.wait(patience - time.monotonic()):
                        raise StoreFull(
                            f"{self.path} must grow, but this process keeps a snapshot of it open:"
                            " close it and try again"
                        )
                    self._left.clear()
                action()
            finally:
                self._shut = False
                self._gate.set()

    def _grow(self, reserve: int) -> None:
        def grow() -> None:
            size = self._lmdb.info()["map_size"]
            new = min(2 * size, self.max_size) // _PAGE * _PAGE
            if new <= size and not reserve:
                raise StoreFull(
                    f"{self.path} has reached its largest size of {self.max_size} bytes; nothing"
                    " was written. Let the log be trimmed, drop tables, or open the store with a"
                    " larger max_size"
                )
            self._lmdb.set_mapsize(max(new, size + reserve))

        self._alone(grow)

    def _cure(self, error: lmdb.Error) -> None:
        """Do what makes a failed begin work the next time, or raise the error in our words."""
        if isinstance(error, lmdb.MapResizedError):  # another process has grown the map
            self._alone(lambda: self._lmdb.set_mapsize(0))
        elif not isinstance(error, lmdb.ReadersFullError) or self._lmdb.reader_check() == 0:
            raise translated(self.path, error) from error

    @property
    def used_bytes(self) -> int:
        self.end_read(self.begin_read())
        return int((self._lmdb.info()["last_pgno"] + 1) * self._lmdb.stat()["psize"])

    def check_readers(self) -> int:
        self.end_read(self.begin_read())
        return int(self._lmdb.reader_check())

    def close(self) -> None:
        with self._opening:
            self._begin = self.mark = self._closed
            if self._lmdb is not None:
                self._lmdb.close()
            if self._holder is not None:
                self._holder.close()
            self._lmdb = self._holder = None

    def _closed(self, *arguments: Any) -> Any:
        raise StoreError(f"{self.path} is closed: open the store again")

    def abandon(self) -> None:
        """In a forked child: leave the parent's environment alone, and open another one when it is
        needed.
        """
        if self._lmdb is not None:
            self._inherited, self._unusable = self._lmdb, bool(self._active)
            _abandoned.append(self._holder)  # its entry belongs to the parent
        if self._begin != self._closed:
            self._reset()

    def _close_inherited(self) -> None:
        """Closing aborts the transactions that were open at the fork, which would take the parent's
        snapshots from it.
        """
        if self._unusable:
            in_use = f"a thread was reading or writing {self.path} when this process was forked"
            raise StoreError(
                f"{in_use}: close snapshots and let writes end before a fork, or start processes"
                " with 'spawn'"
            )
        if self._inherited is not None:
            self._inherited.close()
            self._inherited = None


def gone(path: str) -> StoreError:
    what = f"{path} was removed or replaced while it was open; nothing was written"
    return StoreError(f"{what}. Open the store again")


def translated(path: str, error: Exception) -> BelvedereError:
    """An error of LMDB, or of what reads values that it keeps, in our words."""
    if isinstance(error, Broken):
        return Damaged(f"{path}: {error}")
    if not isinstance(error, lmdb.Error):
        return Damaged(f"{path} has a value that cannot be read ({error})")
    if isinstance(error, lmdb.DiskError) or getattr(error, "code", 0) in _NO_ROOM:
        return StoreFull(
            f"the disk of {path} is full, over a limit or failing; nothing was written. Make room,"
            f" retry ({error})"
        )
    if isinstance(error, lmdb.ReadersFullError):
        return StoreError(
            f"{path} has more than {_READERS} readers at once: close snapshots or stop some"
            " processes"
        )
    if isinstance(error, _DAMAGED):
        return StoreError(
            f"{path} is damaged or not an LMDB environment of this version ({error})."
            f" {files.RESTORE}"
        )
    if "already open in this process" in str(error):
        return StoreError(
            f"{path} is open in this process under another path: close it there first"
        )
    return StoreError(
        f"{path}: {error}. If no other process has moved or removed the store, please report this"
    )


_environments: dict[str, Environment] = {}
_replaced: list[Environment] = []  # whose files were removed while they were open
_registry = threading.Lock()
_abandoned: list[Any] = []


def acquire(
    path: str, map_size: int, max_size: int, kind: type[Environment] = Environment
) -> Environment:
    """This process's environment at `path`, as large as anybody allows.

    Give it back with `release`.
    """
    path = os.path.realpath(path)
    with _registry:
        environment = _environments.get(path)
        if environment is not None and environment.replaced:  # who has it keeps it
            _replaced.append(_environments.pop(path))
            environment = None
        if environment is None:
            environment = _environments[path] = kind(path, map_size, max_size)
        if kind is Environment and not environment.writable:
            raise StoreError(
                f"{path} is open in this process to be read only: close it there first"
            )
        environment.max_size = max(environment.max_size, max_size)
        environment.references += 1
        return environment


def release(environment: Environment) -> None:
    with _registry:
        environment.references -= 1
        if environment.references == 0:
            if environment in _replaced:
                _replaced.remove(environment)
            else:
                del _environments[environment.path]
            environment.close()


def is_open(path: str) -> bool:
    """Whether this process has the environment at `path` open."""
    with _registry:
        return os.path.realpath(path) in _environments


def _after_fork() -> None:
    global _registry
    _registry = threading.Lock()  # another thread of the parent may have held it
    for environment in [*_environments.values(), *_replaced]:
        environment.abandon()


os.register_at_fork(after_in_child=_after_fork)
