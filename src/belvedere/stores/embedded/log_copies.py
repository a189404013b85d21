"""The files of the log in a backup, and in a store that is made of one.

All records up to the cut: of the segment that contains it a part, of others all.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from belvedere.stores.embedded import copies, log_segments
from belvedere.stores.embedded.log_segments import FOLDER, SUFFIX, Segment
from belvedere.types import Position


def hold(
    folder: str, trimmed: Position, end: Position, stack: contextlib.ExitStack
) -> list[tuple[Segment, int]] | None:
    """Open what a cut needs, each with its bytes; None if some of it was trimmed meanwhile."""
    firsts = log_segments.needed(log_segments.first_positions(folder), trimmed)
    if not firsts or firsts[0] > trimmed:
        return None
    found = []
    for first in [each for each in firsts if each == firsts[0] or each < end]:
        try:
            segment = Segment.open(folder, first, writable=False)
        except FileNotFoundError:
            return None
        stack.callback(segment.close)
        segment.walk(end)
        found.append((segment, segment.offset))
    return found


def bring(held: list[tuple[Segment, int]], target: Path) -> dict[str, int]:
    """Copy them below a part; returns the bytes of each file, by its path in the part."""
    (target / FOLDER).mkdir()
    sizes = {}
    for segment, size in held:
        name = f"{FOLDER}/{log_segments.name_of(segment.first)}"
        copies.copy_open(segment.descriptor, target / name)
        os.truncate(target / name, size)
        copies.sync_file(target / name)
        sizes[name] = size
    return sizes


def claim(base: Path, store: str) -> None:
    """Let copies of segments be of another store."""
    for path in (base / FOLDER).glob(f"*{SUFFIX}"):
        log_segments.give_to(path, store)
