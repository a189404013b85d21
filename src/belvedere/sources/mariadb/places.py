"""Places in the binary log, and the positions that are made of them.

The rows of an XA transaction stand in the log where it was prepared, its commit stands later. So a
position has two places: all that ended up to `done` was followed; to follow from here, the log must
be read from `read` on, where the oldest transaction begins that was prepared and not ended at
`done`. The GTIDs at `done` tell whether a log with a file of that name is still the same log.
"""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.errors import SourceError

_NONE = "-"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Between two events: files are in the order of their numbers."""

    number: int
    offset: int
    file: str

    @classmethod
    def at(cls, file: str, offset: int) -> Place:
        number = file.rpartition(".")[2]
        if not number.isdecimal():
            raise SourceError(f"{file!r} is no name of a binary log file of MariaDB")
        return cls(int(number), offset, file)

    @classmethod
    def parse(cls, text: str) -> Place:
        file, colon, offset = text.rpartition(":")
        if not colon or not offset.isdecimal():
            raise SourceError(f"{text!r} is no place in a binary log of MariaDB")
        return cls.at(file, int(offset))

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True, slots=True)
class LogPosition:
    """What the texts of positions mean: `done gtids`, or `done gtids read`."""

    done: Place
    gtids: str = ""
    read: Place | None = None

    @property
    def start(self) -> Place:
        return self.read or self.done

    @classmethod
    def parse(cls, text: str) -> LogPosition:
        done, gtids, read, *rest = [*text.split(" "), "", ""]
        if any(rest):
            raise SourceError(f"{text!r} is no position of a MariaDB source")
        known = "" if gtids == _NONE else gtids
        return cls(Place.parse(done), known, Place.parse(read) if read else None)

    def __str__(self) -> str:
        words = [str(self.done), self.gtids or _NONE]
        if self.read is not None and self.read != self.done:
            words.append(str(self.read))
        return " ".join(words)


def place_of(transaction: str) -> Place:
    """Where a transaction ends: its name is `gtid@place`, the same whenever it is read again."""
    return Place.parse(transaction.rpartition("@")[2])
