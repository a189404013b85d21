"""Reads all records of the log, and says which are damaged; others may write and trim meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from belvedere.errors import Damaged
from belvedere.libraries import pa
from belvedere.stores.embedded import blocks, log_segments
from belvedere.stores.embedded.log_ends import acknowledged
from belvedere.stores.embedded.log_segments import FOLDER, HEAD_SIZE, Segment, decode, is_whole
from belvedere.stores.embedded.run_inspection import Damage
from belvedere.types import Position


@dataclass
class LogFound:
    records: int = 0
    damages: list[Damage] = field(default_factory=list)

    def report(self, file: str, what: str, table: int = 0) -> None:
        self.damages.append(Damage(file, what, table))

    def read(self, part: str, store: str, trimmed: Position, noted: Position) -> None:
        """From the trim point to the end, which is not below what was noted."""
        folder = os.path.join(part, FOLDER)
        if not os.path.isdir(folder):
            self.report(folder, "it is missing")
            return
        published = acknowledged(folder)
        firsts = log_segments.needed(log_segments.first_positions(folder), trimmed)
        at = trimmed
        for number, first in enumerate(firsts):
            if first > at or (number and first != at):
                self.report(folder, f"the log has no operations from {at:,} to {first:,}")
            at = self._read_segment(folder, first, store)
        needed = max(noted, published or 0)
        if at < needed:
            self.report(folder, f"the log ends at {at:,}, and should at {needed:,}")

    def _read_segment(self, folder: str, first: Position, store: str) -> Position:
        try:
            segment = Segment.open(folder, first, writable=False)
        except Damaged as error:
            self.report(os.path.join(folder, log_segments.name_of(first)), str(error))
            return first
        try:
            if segment.store != store:
                self.report(segment.path, "it belongs to another store")
            segment.walk((1 << 64) - 1)
            for number, offset in enumerate(segment.offsets):
                self._read_record(segment, segment.positions[number], offset)
            return segment.end
        finally:
            segment.close()

    def _read_record(self, segment: Segment, position: Position, offset: int) -> None:
        self.records += 1
        head = decode(os.pread(segment.descriptor, HEAD_SIZE, offset), 0)
        value = os.pread(segment.descriptor, head.size, offset + HEAD_SIZE) if head else b""
        what = f"the record of the log at position {position:,}"
        if head is None or not is_whole(head, value):
            self.report(segment.path, f"{what} is not what was written")
            return
        try:
            rows = sum(len(block.columns[0]) for block in blocks.decode_all(value))
        except (Damaged, pa.ArrowInvalid) as error:
            self.report(segment.path, f"{what} cannot be read ({error})")
            return
        if rows != head.rows:
            self.report(segment.path, f"{what} has {rows:,} operations, and should {head.rows:,}")
