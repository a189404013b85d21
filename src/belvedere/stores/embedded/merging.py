"""Few runs instead of many: small ones join what an epoch writes, larger ones are merged beside it.

A get looks into one run after the other, so they should be few; each merge writes records again, so
it should be rare. Runs grow by a ratio from the newest to the oldest: then a record is written
about log(rows) times, and there are about as many runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from belvedere.libraries import pa
from belvedere.stores.embedded import run_lists, sections
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.run_files import RunFiles, RunWriter
from belvedere.stores.embedded.run_lists import Owner
from belvedere.stores.embedded.runs import Batch, Ref, Run, RunRef, is_small, merge, scan
from belvedere.stores.embedded.sections import Section
from belvedere.types import Epoch

RATIO = 3  # a run is merged with the one behind it unless that has so many times its rows
LAST_RATIO = 1  # the same before the last and largest run, which is the dearest to write again
MOST_RUNS = 8  # an epoch that would make more of them merges small ones itself
MOST_EVER = 16  # and large ones too: after many large epochs merging beside them is behind
INLINE_ROWS = 1 << 17  # a commit does not merge more than that, unless there are far too many runs
_BATCH, _BATCH_BYTES = 1 << 18, 256 << 20  # that are merged at once


def rows_of(run: RunRef) -> int:
    return sum(ref.rows for ref in run)


def joins(new: int, runs: Sequence[RunRef]) -> int:
    """How many of the runs, newest first, are written again together with so many new rows."""
    taken, rows = 0, new
    while taken < len(runs):
        following = rows_of(runs[taken])
        left = len(runs) - taken + 1
        is_wanted = left > MOST_RUNS or _is_due(rows, runs, taken)
        if not (left > MOST_EVER or (is_wanted and rows + following <= INLINE_ROWS)):
            break
        taken, rows = taken + 1, rows + following
    return taken


def _is_due(rows: int, runs: Sequence[RunRef], number: int) -> bool:
    """Whether so many newer rows are too many to stay before a run."""
    ratio = LAST_RATIO if number == len(runs) - 1 else RATIO
    return rows * ratio >= rows_of(runs[number])


def due(runs: Sequence[RunRef]) -> range:
    """The runs that should be merged with each other next; an empty range if none."""
    for first in range(len(runs) - 1):
        rows, last = rows_of(runs[first]), first + 1
        while last < len(runs) and _is_due(rows, runs, last):
            rows, last = rows + rows_of(runs[last]), last + 1
        if last - first > 1:
            return range(first, last)
    return range(0)


def merged(runs: Sequence[Run], drop_deleted: bool) -> Iterator[Batch]:
    return scan(runs, b"", None, _BATCH, drop_deleted)


def with_older(
    keys: pa.BinaryArray, values: pa.BinaryArray, older: Sequence[Run], drop_deleted: bool
) -> Iterator[Batch]:
    """New records, merged with those of the newest runs."""
    if sum(run.rows for run in older) <= _BATCH and _size(older) <= _BATCH_BYTES:
        parts = [(keys, values), *(run.slice(0, run.rows) for run in older)]
        yield merge(parts, drop_deleted)
        return
    yield from merged([in_memory(keys, values), *older], drop_deleted)


def _size(runs: Sequence[Run]) -> int:
    return sum(ref.size for run in runs for ref in run.refs)


def in_memory(keys: pa.BinaryArray, values: pa.BinaryArray) -> Run:
    """A run of sorted keys that is in no file."""
    made: list[tuple[Ref, Section]] = []
    for start in range(0, len(keys), _BATCH):
        some = keys.slice(start, _BATCH)
        data = b"".join(sections.encode(0, some, values.slice(start, _BATCH), stays=False))
        ref = Ref(str(start), 0, len(data), len(some), some[0].as_py())
        made.append((ref, Section(data, 0, len(data), "a section in memory", stays=False)))
    by_ref = dict(made)
    return Run(tuple(by_ref), by_ref.__getitem__)


@dataclass(frozen=True, slots=True)
class Merge:
    """Runs of a table that stand one behind the other; with the last one of all, what was deleted
    needs no mark any more.
    """

    owner: Owner
    epoch: Epoch
    runs: tuple[RunRef, ...]
    has_last: bool


def next_merge(transaction: Transaction) -> Merge | None:
    newest: dict[Owner, tuple[Epoch, bytes]] = {}
    for owner, epoch, data in run_lists.every(transaction):
        newest[owner] = epoch, data
    for owner, (epoch, data) in newest.items():
        runs = run_lists.decode(data, _where(owner))
        chosen = due(runs)
        if chosen:
            some = runs[chosen.start : chosen.stop]
            return Merge(owner, epoch, some, chosen.stop == len(runs))
    return None


def _where(owner: Owner) -> str:
    return f"table {run_lists.table_of(owner)}"


def whole_merge(transaction: Transaction, owner: Owner) -> Merge | None:
    """All runs of a table, if that gives room back: what was overwritten or deleted goes.

    Not those of a table that has no file.
    """
    lists = run_lists.of_owner(transaction, owner)
    if not lists:
        return None
    epoch, data = lists[-1]
    runs = run_lists.decode(data, _where(owner))
    in_files = any(not is_small(ref.file) for run in runs for ref in run)
    return Merge(owner, epoch, runs, True) if in_files else None


def do(
    environment: Environment, files: RunFiles, wanted: Merge, is_stopped: Callable[[], bool]
) -> bool:
    """Write one run instead of several, and name it in every run list that names them. Whether that
    was done: somebody else may have been first, or it was stopped.
    """
    writer = RunWriter(files, wanted.epoch)

    def write() -> bool:
        small = environment.read(lambda t: run_lists.sections_of(t, wanted.runs))
        opened = files.open_runs(wanted.runs, small)
        batches = _until_stopped(merged(opened, wanted.has_last), is_stopped)
        try:
            run = writer.add(run_lists.table_of(wanted.owner), batches)
        except _Stopped:
            return False
        writer.finish()
        return environment.write(lambda t: _rename(t, files, writer, wanted, run))

    return writer.keep_if(write)


class _Stopped(Exception):
    pass


def _until_stopped(batches: Iterator[Batch], is_stopped: Callable[[], bool]) -> Iterator[Batch]:
    for batch in batches:
        if is_stopped():
            raise _Stopped
        yield batch


def _rename(
    transaction: Transaction, files: RunFiles, writer: RunWriter, wanted: Merge, run: RunRef
) -> bool:
    """In all run_lists of the table that have these runs; the others keep them.

    What deletes hid is hidden by nothing any more if an older run follows, so runs with the last
    one stand for each other only where they are the last ones.
    """
    if not all(files.has(name) for name in writer.names):
        return False
    found = False
    for epoch, data in run_lists.of_owner(transaction, wanted.owner):
        runs = run_lists.decode(data, _where(wanted.owner))
        start = _place(runs, wanted)
        if start is not None:
            new = (run,) if run else ()
            changed = (*runs[:start], *new, *runs[start + len(wanted.runs) :])
            run_lists.put(transaction, wanted.owner, epoch, changed)
            found = True
    return found


def _place(runs: tuple[RunRef, ...], wanted: Merge) -> int | None:
    count = len(wanted.runs)
    for start in range(len(runs) - count + 1):
        if runs[start : start + count] == wanted.runs:
            return start if not wanted.has_last or start + count == len(runs) else None
    return None
