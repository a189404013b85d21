"""Positions in the log (LSN), snapshots as markers, names of transactions.

position     0/16B3740                the log before this byte
transaction  742@0/16B3710            its number of 32 bits, and where its commit is
marker       740:745:741,743          numbers of 64 bits: all below the first are shown, none
                                      from the second on, and none of the others
"""

from __future__ import annotations

from belvedere.errors import SourceError

_HALF, _WHOLE = 1 << 31, 1 << 32
# Headers of the log's pages; the first of each segment is larger.
_HEADERS = (24, 40)


def read_position(text: str) -> int:
    high, _, low = text.partition("/")
    try:
        return (int(high, 16) << 32) | int(low, 16)
    except ValueError:
        raise SourceError(f"{text!r} is no position in the log of a PostgreSQL") from None


def write_position(place: int) -> str:
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"


def end_of_records(place: int, page: int) -> int:
    """Where the next record would be put, taken back behind the last one that is there.

    At the end of a page the server names the place behind the next page's header, which no record
    ends at, so no reader of the log would say that it came so far.
    """
    return place - place % page if place % page in _HEADERS else place


def name_transaction(number: int, commit: int) -> str:
    return f"{number}@{write_position(commit)}"


def is_shown(marker: str, transaction: str) -> bool:
    """Whether a snapshot shows a transaction.

    The log has 32 bits of its number; it is taken as the one nearest to the snapshot.
    """
    low, high, running = marker.split(":")
    number = int(transaction.partition("@")[0])
    last = int(high)
    full = last - last % _WHOLE + number
    if full > last + _HALF:
        full -= _WHOLE
    elif full < last - _HALF:
        full += _WHOLE
    if full < int(low):
        return True
    return full < last and str(full) not in running.split(",")
