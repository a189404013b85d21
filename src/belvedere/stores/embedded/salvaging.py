"""What is left when sections of runs are damaged: the damaged ones are taken out of all run lists
of a part, in one transaction. Of views nothing is left: they are built anew.

A section has rows of a stretch of keys in one slot. Without it a row of that stretch is what an
older run or a newer one says: it may be lost, older than it was, or back although it was deleted.
What is still in the log counts as before. Files that nobody names any more go with the next
collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from belvedere.libraries import pc
from belvedere.stores.base import Slot, TableId
from belvedere.stores.embedded import run_lists, runs
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.places import Place
from belvedere.stores.embedded.run_inspection import MISSING, look_at
from belvedere.stores.embedded.run_lists import Owner
from belvedere.stores.embedded.runs import Ref, RunRef

_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class Lost:
    """A section that cannot be used: up to so many rows of a slot, with keys from one on up to
    another one (None: to the end).
    """

    table: TableId
    slot: Slot
    low: bytes
    high: bytes | None
    rows: int
    what: str


def find_lost(place: Place) -> dict[Ref, Lost]:
    """Reads all runs of a part."""
    return place.environment.read(partial(_find_lost, place))


def _find_lost(place: Place, transaction: Transaction) -> dict[Ref, Lost]:
    lost: dict[Ref, Lost] = {}
    known: set[Ref] = set()
    for owner, _, data in run_lists.every(transaction):
        listed = run_lists.decode(data, place.where(owner))
        small = run_lists.sections_of(transaction, listed)
        for run in listed:
            for ref, behind in _new(run, known):
                what = _trouble(place, owner, ref, behind, small)
                if what:
                    found = ref.first, behind, ref.rows, what
                    lost[ref] = Lost(run_lists.table_of(owner), run_lists.slot_of(owner), *found)
    return lost


def _new(run: RunRef, known: set[Ref]) -> Iterator[tuple[Ref, bytes | None]]:
    """Sections that were not looked at, with the first key of the next one."""
    for number, ref in enumerate(run):
        if ref not in known:
            known.add(ref)
            yield ref, run[number + 1].first if number + 1 < len(run) else None


def _trouble(
    place: Place, owner: Owner, ref: Ref, behind: bytes | None, small: Mapping[str, bytes]
) -> str:
    try:
        found = look_at(place.files, ref, run_lists.table_of(owner), behind, small)
    except FileNotFoundError:
        found = [MISSING]
    return "; ".join(found)


def take_out(place: Place, lost: Mapping[Ref, Lost]) -> None:
    """Nobody else has the store open."""

    def body(transaction: Transaction) -> None:
        changed: dict[Owner, tuple[RunRef, ...]] = {}
        for owner, number, data in list(run_lists.every(transaction)):
            listed = run_lists.decode(data, place.where(owner))
            left = tuple(filter(None, (_without(run, lost) for run in listed)))
            if left != listed:
                run_lists.put(transaction, owner, number, left)
                changed[owner] = left  # of the newest list, which comes last
        for owner, left in changed.items():
            _count_again(place, transaction, owner, left)

    place.environment.write(body, frees=True)


def _without(run: RunRef, lost: Mapping[Ref, Lost]) -> RunRef:
    return tuple(ref for ref in run if ref not in lost)


def _count_again(
    place: Place, transaction: Transaction, owner: Owner, listed: Sequence[RunRef]
) -> None:
    small = run_lists.sections_of(transaction, listed)
    records = size = 0
    for keys, values in runs.scan(place.files.open_runs(listed, small), b"", None, _BATCH):
        records += len(keys)
        lengths = pc.sum(pc.binary_length(keys)), pc.sum(pc.binary_length(values))
        size += sum(length.as_py() or 0 for length in lengths)
    known_records, known_size = run_lists.count(transaction, owner)
    run_lists.add_to_count(transaction, owner, records - known_records, size - known_size)
