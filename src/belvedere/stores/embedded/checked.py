"""Values with a checksum of themselves and of their key, behind them (u32, CRC-32).

A value that was changed, and one that stands under another key than it was written for, is noticed
by whoever reads it. Behind the value, so that what is in front of it stays aligned.

Sealed is everything but sections, which have checksums of their own (`sections.py`), and the mark
of a part, which is compared as a whole (`parts.py`).
"""

from __future__ import annotations

from struct import Struct
from typing import Any
from zlib import crc32

_CHECK = Struct("<I")
CHECK_SIZE = _CHECK.size
_OURS = b"\0\0\0\0"  # what is neither a row nor the catalog's begins with it
_SINGLE = (b"mfloors", b"mparts", b"mstore", b"mend", b"mlists", b"mrows", b"msettled", b"mlog")
_OF_TABLE = (b"mcount", b"mtable", b"mgone")  # and its number, or its number and a slot
# bytes of keys with numbers: of a log block, of a run list, of a mark
_NUMBERED = {b"l": (9,), b"r": (13, 15), b"b": (11,)}
_UNSEALED = tuple(_OURS + name for name in (b"mstore", b"s"))


class Broken(ValueError):
    """A value is not what was written under its key; `Environment` says where."""

    def __init__(self, key: bytes) -> None:
        self.key = bytes(key)
        super().__init__(f"{describe(self.key)} is not what was written")


def seal(key: bytes, value: bytes) -> bytes:
    return b"%b%b" % (value, seal_of(key, value))


def seal_of(key: bytes, *parts: Any) -> bytes:
    """What stands behind a value, which is several buffers one behind the other."""
    checksum = crc32(key)
    for part in parts:
        checksum = crc32(part, checksum)
    return _CHECK.pack(checksum)


def opened(key: bytes, value: bytes) -> bytes:
    """The value without its seal; of a view of memory, a view."""
    content = value[:-CHECK_SIZE]
    if value[-CHECK_SIZE:] != _CHECK.pack(crc32(content, crc32(key))):
        raise Broken(key)
    return content


def is_whole(key: bytes, value: bytes) -> bool:
    return bool(value[-CHECK_SIZE:] == seal_of(key, value[:-CHECK_SIZE]))


def is_sealed(key: bytes) -> bool:
    """Whether values under a key have a seal."""
    return not key.startswith(_UNSEALED)


def is_known(key: bytes) -> bool:
    """Whether something can stand under a key; a flipped byte would make an entry vanish, and
    another one appear.
    """
    if not key.startswith(b"\0"):
        return True
    if not key.startswith(_OURS):
        return False
    name = key[len(_OURS) :]
    if name.startswith(_OF_TABLE):
        sizes = [len(name) - len(start) for start in _OF_TABLE if name.startswith(start)]
        return any(size in (4, 6) for size in sizes)
    numbered = len(name) in _NUMBERED.get(name[:1], ())
    return numbered or name in _SINGLE or name.startswith(b"ssmall-")


def describe(key: bytes) -> str:
    """What stands under a key, for errors."""
    if not key.startswith(b"\0"):
        return f"the entry {key.decode(errors='replace')}"
    if not key.startswith(_OURS):
        return f"a row of table {_number(key[:4])}"
    kind, rest = key[4:5], key[5:]
    if kind == b"r":
        return f"the list of runs of table {_number(rest[:4])} after {_number(rest[-8:])}"
    if kind == b"s":
        return f"the section {rest.decode(errors='replace')}"
    if kind == b"l":
        return f"the log block at position {_number(rest):,}"
    if kind == b"b":
        return f"the mark at position {_number(rest[2:]):,} of slot {_number(rest[:2])}"
    for name in (b"count", b"table", b"gone"):
        if rest.startswith(name):
            return f"the {name.decode()} of table {_number(rest[len(name) :][:4])}"
    return f"the entry {rest.decode(errors='replace')}"


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
