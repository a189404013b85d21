"""The demo redrawn, moment after moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.catalog.definitions import LIVE
from belvedere.cli.demo.moment import Watch
from belvedere.cli.demo.screen import Screen
from belvedere.database import Database

if TYPE_CHECKING:
    from belvedere.epochs.handle import Pipeline

_FRAME = 0.25  # seconds


class Frames:
    def __init__(self, db: Database, pipeline: Pipeline, shown: Screen) -> None:
        self._pipeline, self._screen = pipeline, shown
        self._watch = Watch(db)

    def draw(self, phase: str, done: float) -> bool:
        """Draw, wait for the next frame; whether all views are live and up to date."""
        if self._pipeline.exception is not None:
            self._pipeline.stop()
        moment = self._watch.moment(phase, done)
        self._screen.show(moment)
        self._pipeline.await_termination(_FRAME)
        return not moment.status.lag_operations and all(
            v.state == LIVE for v in moment.status.views
        )
