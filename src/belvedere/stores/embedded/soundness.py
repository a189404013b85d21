"""Whether an LMDB file is sound, looked at when a process opens it: its pages (`trees.py`), and the
seals of its values (`checked.py`).

A damaged page can end a process by a signal, and an entry that is gone is no error for who looks
for the newest one before it. So what is small is read as a whole: the catalog, run lists, floors.
In a file of many pages, leaves that have only log blocks are left to their readers and to
`belvedere inspect`.
"""

from __future__ import annotations

import os
from typing import NoReturn

from belvedere.errors import Damaged
from belvedere.stores.embedded import checked, files, trees
from belvedere.stores.embedded.files import DATA

_MOST_PAGES = 512  # of a tree that is read as a whole: 20,000 small entries take about 40 ms
_LOG, _AFTER_LOG = b"\0\0\0\0l", b"\0\0\0\0m"


def check(folder: str, number: int) -> bool:
    """Raise Damaged if the file in `folder` is not sound as of a transaction, whose pages somebody
    keeps from being used again. False if its meta page is gone, because two others followed.
    """
    path = os.path.join(folder, DATA)

    def damaged(what: str) -> NoReturn:
        raise Damaged(f"{path}: {what}")

    with open(path, "rb") as file:
        meta = files.meta_of(file, number)
        if meta is None:
            return False
        is_small = meta.main.branches + meta.main.leaves <= _MOST_PAGES
        skip = None if is_small else _is_left_to_readers
        for key, value in trees.entries(file.fileno(), meta, damaged, skip):
            if not checked.is_known(key):
                damaged(f"there is {checked.describe(key)}, which cannot be")
            if checked.is_sealed(key) and not checked.is_whole(key, value):
                damaged(f"{checked.describe(key)} is not what was written")
    return True


def _is_left_to_readers(low: bytes, high: bytes | None) -> bool:
    return low >= _LOG and high is not None and high <= _AFTER_LOG
