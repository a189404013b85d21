"""Merging beside the epochs: what is due, one after the other, in a thread that ends when there is
nothing left to merge.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from belvedere.errors import StoreFull
from belvedere.stores.embedded import disk, merging
from belvedere.stores.embedded.merging import Merge
from belvedere.stores.embedded.places import Place

_LEFT = 64 << 20  # bytes that a merge leaves on the disk for who writes
_log = logging.getLogger("belvedere")


class Merging:
    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._failed: BaseException | None = None

    def go_on(self) -> None:
        """Raises what the last thread has met."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        if self._thread is not None and self._thread.is_alive():
            return
        if any(place.environment.read(merging.next_merge) for place in self._places):
            self._thread = threading.Thread(target=self._run, name="merging", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            for place in self._places:
                self._merge(place)
        except StoreFull as error:  # epochs go on, as long as they find room themselves
            _log.warning("runs are not merged: %s", error)
        except BaseException as error:  # for the next caller: a thread has nobody to tell
            self._failed = error

    def _merge(self, place: Place) -> None:
        while not self._stopped.is_set():
            merge = place.environment.read(merging.next_merge)
            if merge is None:
                return
            if not _has_room(place, merge):
                _log.warning(
                    "runs in %s are not merged: the disk is nearly full", place.files.folder
                )
                return
            is_stopped = self._stopped.is_set
            if not merging.do(place.environment, place.files, merge, is_stopped):
                return


def _has_room(place: Place, merge: Merge) -> bool:
    """A merge that fills the disk would take from writers what it gives back at its end."""
    needed = sum(ref.size for run in merge.runs for ref in run)
    return disk.free(place.files.folder) >= needed + _LEFT
