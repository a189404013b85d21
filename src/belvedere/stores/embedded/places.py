"""Where runs are: lists in an LMDB environment, sections in files beside it; and how new ones get
there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from belvedere.errors import Damaged, StoreError, StoreFull
from belvedere.libraries import pa, pc
from belvedere.stores.embedded import merging, run_files, run_lists
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.log import Log
from belvedere.stores.embedded.log_file import LogFile
from belvedere.stores.embedded.run_files import RunFiles, RunWriter
from belvedere.stores.embedded.run_lists import Owner
from belvedere.stores.embedded.runs import Run, RunRef
from belvedere.types import Epoch

TRIES = 20  # a file may be merged away between its run list and its opening


class Place:
    """A slot's state tables, or all base rows."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.files = RunFiles(environment.path)

    def where(self, owner: Owner) -> str:
        return f"table {run_lists.table_of(owner)} in {self.environment.path}"

    def check_room(self) -> None:
        used, most = self.files.used_bytes(), self.environment.max_size
        if used > most:
            raise StoreFull(
                f"{self.environment.path} would have {used:,} bytes of at most {most:,}; nothing"
                " was written. Open the store with a larger max_size, or drop views and tables"
            )

    def open_runs(self, refs: Sequence[RunRef]) -> tuple[Run, ...]:
        """Raises FileNotFoundError if a part of them is gone."""
        small = self.environment.read(lambda t: run_lists.sections_of(t, refs))
        return self.files.open_runs(refs, small)

    def load(self, find: Callable[[Transaction], bytes], owner: Owner) -> tuple[Run, ...]:
        """The runs of the run list that `find` finds, all of them mapped."""

        def read(transaction: Transaction) -> tuple[bytes, Sequence[RunRef], dict[str, bytes]]:
            data = find(transaction)
            refs = run_lists.decode(data, self.where(owner))
            return data, refs, run_lists.sections_of(transaction, refs)

        before = None
        for _ in range(TRIES):
            data, refs, small = self.environment.read(read)
            try:
                return self.files.open_runs(refs, small)
            except FileNotFoundError as error:
                if data == before:
                    raise self.missing(error, owner) from error
                before = data
        raise StoreError(f"the runs of {self.where(owner)} change faster than they can be opened")

    def missing(self, error: FileNotFoundError, owner: Owner) -> Damaged:
        return Damaged(f"{error.filename} is missing, which has records of {self.where(owner)}")

    def forget_unnamed(self, transaction: Transaction) -> None:
        """Small sections that no run list names any more."""
        named = run_lists.named_files(transaction, self.environment.path)
        run_lists.remove_sections(transaction, named)

    def remove_unnamed(self, keep: Epoch) -> None:
        """Files of attempts that are too late by now, and of runs that were merged.

        In a write transaction that changes nothing: who names a file looks in his whether it is
        still there. It comes after the one that took the names away, else who is killed in it would
        leave lists of files that are gone.
        """

        def body(transaction: Transaction) -> None:
            named = run_lists.named_files(transaction, self.environment.path)
            for name in set(self.files.names()) - named - self.files.in_flight:
                if run_files.epoch_of(name) <= keep:
                    self.files.remove(name)

        self.environment.write(body, frees=True)


class BasePlace(Place):
    """All base rows, and the log that they are made of."""

    def __init__(self, environment: Environment, file: LogFile) -> None:
        super().__init__(environment)
        self.log = Log(file, environment)


class NewRun:
    """What an owner gets, in files already (rule R10): sorted keys with their new values, and those
    of the newest runs that it is worth to write again with them.

    `before` are the values that they replace, for the count of records.
    """

    def __init__(
        self,
        place: Place,
        writer: RunWriter,
        owner: Owner,
        columns: tuple[pa.BinaryArray, pa.BinaryArray, pa.BinaryArray],
        base: bytes,
    ) -> None:
        keys, values, before = columns
        self.owner, self.base = owner, base
        known: tuple[RunRef, ...] = run_lists.decode(base, place.where(owner))
        joined = merging.joins(len(keys), known)
        rest = known[joined:]
        older = place.open_runs(known[:joined])
        table = run_lists.table_of(owner)
        run = writer.add(table, merging.with_older(keys, values, older, not rest))
        self.runs = (run, *rest) if run else rest
        self.records = before.null_count - values.null_count
        self.size = _size(keys, values) - _size(keys, before)

    def apply(self, transaction: Transaction, epoch: Epoch) -> None:
        run_lists.put(transaction, self.owner, epoch, self.runs)
        run_lists.add_to_count(transaction, self.owner, self.records, self.size)


def _size(keys: pa.BinaryArray, values: pa.BinaryArray) -> int:
    """Bytes of the records that are there."""
    present = keys.filter(values.is_valid()) if values.null_count else keys
    return (pc.sum(pc.binary_length(present)).as_py() or 0) + (
        pc.sum(pc.binary_length(values)).as_py() or 0
    )


def name_files(
    place: Place,
    writer: RunWriter,
    prepare: Callable[[], Sequence[NewRun]],
    name: Callable[[Transaction, Sequence[NewRun]], bool],
    frees: bool = False,
) -> bool:
    """Write files, then name them in one transaction; whether that was done.

    If it was not, runs that were built upon have been merged meanwhile: try again. With `frees` it
    leads to more room than it takes, so it may take a little more than there is.
    """

    def write() -> bool:
        new = prepare()
        if writer.names:
            writer.finish()
            if not frees:
                place.check_room()
        return place.environment.write(partial(naming, new), frees)

    def naming(new: Sequence[NewRun], transaction: Transaction) -> bool:
        is_there = all(place.files.has(file) for file in writer.names)
        return is_there and name(transaction, new)

    return writer.keep_if(write)
