"""Reads all runs that lists name, and says what is damaged.

Works for whatever keeps runs in a folder: it is given the lists, and the sections that are in no
file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from belvedere.encoding.slots import slot_hash
from belvedere.errors import Damaged
from belvedere.libraries import np, pc
from belvedere.stores.base import TableId
from belvedere.stores.embedded import run_lists
from belvedere.stores.embedded.run_files import RunFiles
from belvedere.stores.embedded.runs import Ref, Run, RunRef, is_small
from belvedere.stores.embedded.sections import Section

MISSING = "it is missing"


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not what was written.

    `table` is 0 if it is no table's, or not known of which. `keys` are those that may be concerned,
    from one on up to another one (None: to the end).
    """

    file: str
    what: str
    table: TableId = 0
    keys: tuple[bytes, bytes | None] | None = None


@dataclass(frozen=True, slots=True)
class RunList:
    """A run list as it is kept: of a table, as of an epoch or a position."""

    table: TableId
    number: int
    data: bytes


@dataclass
class RunsFound:
    """What was found in a folder; a section is looked at once, however many lists have it."""

    folder: str
    sections: dict[tuple[str, int], tuple[Damage, ...]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    damages: list[Damage] = field(default_factory=list)
    missing: bool = False  # whether a part of a run is not there: it may have been merged away
    rows: int = 0

    def read(self, lists: Iterable[RunList], small: Mapping[str, bytes]) -> None:
        """All runs of these lists; again, if lists have changed meanwhile."""
        self.missing, self.damages = False, []
        self.named.clear()
        files = RunFiles(self.folder)
        for each in lists:
            where = f"table {each.table} after {each.number} in {self.folder}"
            try:
                runs = run_lists.decode(each.data, where)
            except Damaged as error:
                self.damages.append(Damage(self.folder, error.what, each.table))
                continue
            for run in runs:
                self._read_run(files, run, each.table, small)

    def _read_run(
        self, files: RunFiles, run: RunRef, table: TableId, small: Mapping[str, bytes]
    ) -> None:
        new = [number for number, ref in enumerate(run) if self._is_new(ref)]
        self.named |= {ref.file for ref in run}
        for number in new:
            ref = run[number]
            place = self._place(ref)
            behind = run[number + 1].first if number + 1 < len(run) else None
            try:
                found = look_at(files, ref, table, behind, small)
            except FileNotFoundError:
                self.missing = True
                found = [MISSING]
            keys = ref.first, behind
            damages = tuple(Damage(place, what, table, keys) for what in found)
            if not self.missing:
                self.sections[ref.file, ref.offset] = damages
                self.rows += ref.rows
            self.damages += damages

    def _is_new(self, ref: Ref) -> bool:
        known = self.sections.get((ref.file, ref.offset))
        if known and not set(known) <= set(self.damages):
            self.damages += known
        return known is None

    def _place(self, ref: Ref) -> str:
        return self.folder if is_small(ref.file) else os.path.join(self.folder, ref.file)

    def unnamed(self) -> list[str]:
        """Files that no list names: somebody is writing them, or they will be removed."""
        return sorted(set(RunFiles(self.folder).names()) - self.named)


def look_at(
    files: RunFiles, ref: Ref, table: TableId, behind: bytes | None, small: Mapping[str, bytes]
) -> list[str]:
    """What is wrong with a section; FileNotFoundError if it is not there."""
    try:
        opened = files.open_runs([(ref,)], small)[0]
        return list(_wrong(opened, ref, table, behind))
    except Damaged as error:
        return [error.what]


def _wrong(run: Run, ref: Ref, table: TableId, behind: bytes | None) -> Iterator[str]:
    """What is wrong with a section whose bytes are those that were written."""
    section: Section = run.section(0)
    where = f"{ref.file} at byte {ref.offset:,}"
    if section.table != table:
        yield f"{where} is a section of table {section.table}, not of {table}"
    keys = section.keys
    if not len(keys):
        return
    if keys[0].as_py() < ref.first:
        yield f"{where} begins before the key that its list says"
    if not pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py() and len(keys) > 1:
        yield f"{where} has keys that do not rise"
    if behind is not None and keys[len(keys) - 1].as_py() >= behind:
        yield f"{where} goes on behind the first key of the next section"
    rows = np.arange(len(keys))
    if not np.array_equal(section.find(keys, slot_hash(keys), rows), rows):
        yield f"{where} has keys that its hash does not find"
    if not np.array_equal(section.lowers(keys), rows):
        yield f"{where} has keys that a search does not find"
