"""Merging beside the epochs: what is due, one after the other, in a thread that ends when there is
nothing left to merge.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from belvedere.stores.embedded import merging
from belvedere.stores.embedded.places import Place


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
        except BaseException as error:  # for the next caller: a thread has nobody to tell
            self._failed = error

    def _merge(self, place: Place) -> None:
        while not self._stopped.is_set():
            merge = place.environment.read(merging.next_merge)
            if merge is None:
                return
            is_stopped = self._stopped.is_set
            if not merging.do(place.environment, place.files, merge, is_stopped):
                return
