"""Whether an environment has changed, without a transaction.

An LMDB file begins with two meta pages; a commit writes one of them, in turn. In each, by byte:

    16    magic u32, version u32, address, map size, the roots of two databases, last page
    144   number of the transaction that wrote the page, u64

Both pages are mapped, as LMDB itself maps them; the larger number is the last transaction's. LMDB's
own call tells it too, ten times slower; it is used if the pages do not look as expected.

A commit writes its page, waits for the disk, and only then lets readers see it. So the mark can be
ahead of what a read transaction finds: what was read belongs to the transaction's own id, never to
a mark that was taken before.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from struct import Struct
from typing import Any

_HEAD, _HEAD_AT = Struct("<II"), 16
_KNOWN = (0xBEEFC0DE, 1)  # LMDB 0.9; the version is that of the file's layout
_NUMBER_AT = 144


def mark_of(environment: Any, path: str) -> Callable[[], int]:
    """A function that tells the number of the last transaction of the LMDB environment, whichever
    process committed it.
    """

    def last() -> int:
        return int(environment.info()["last_txnid"])

    page = environment.stat()["psize"]
    with open(os.path.join(path, "data.mdb"), "rb") as file:
        pages = memoryview(mmap.mmap(file.fileno(), 2 * page, prot=mmap.PROT_READ))
    if any(_HEAD.unpack_from(pages, start + _HEAD_AT) != _KNOWN for start in (0, page)):
        return last
    first, second = (
        pages[start + _NUMBER_AT : start + _NUMBER_AT + 8].cast("Q") for start in (0, page)
    )
    before, newest, after = last(), max(first[0], second[0]), last()
    if not before <= newest <= after:
        return last

    def mark() -> int:
        one, other = first[0], second[0]
        return one if one > other else other

    return mark
