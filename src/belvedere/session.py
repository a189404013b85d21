"""A session: a database whose reads contain what its user wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.catalog.state import committed
from belvedere.database import Database
from belvedere.readers.session import Token, await_token
from belvedere.types import Vector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from belvedere.epochs.coordinator import Coordinator
    from belvedere.epochs.settings import Settings


class Session(Database):
    """The same database for one reader and writer, who remembers what he wrote.

    Store, catalog and pipelines are shared; Spark and the runner are those of the database, whoever
    needs them first.
    """

    def __init__(self, outer: Database, timeout: float, token: Token) -> None:
        self._outer, self._timeout, self._token = outer, timeout, token.positions
        self._epoch = token.epoch  # of another session, of which this one is the rest
        self._unplaced = False  # whether something was written whose position is not known
        self.store, self._cache = outer.store, outer._cache
        self.master, self.spark_conf = outer.master, outer.spark_conf
        self.prepared, self._pipelines = outer.prepared, outer._pipelines
        self.connections = outer.connections
        self._elsewhere: dict[str, str] = {}  # positions of sources when something was written

    @property
    def spark(self) -> SparkSession:
        return self._outer.spark

    def _coordinator(self, settings: Settings) -> Coordinator:
        return self._outer._coordinator(settings)

    @property
    def is_session(self) -> bool:
        return True

    def wrote(self, position: Vector | None = None) -> None:
        self._token = self._token.merge(position or Vector())
        self._unplaced = self._unplaced or not position
        if not position and self.state().sources:
            from belvedere.capture.arrival import positions

            self._elsewhere |= positions(self.state(), self.connections.of)

    def await_session(self) -> None:
        self._place()
        if self._token or self._epoch:
            await_token(self.store, self._token, self._timeout, self._epoch)

    def token(self) -> str:
        """The committed epoch is as new as any that was read."""
        self._place()
        epoch = max(committed(self.store).epoch, self._epoch)
        return Token(self.store.id, self._token, epoch).to_text()

    def _place(self) -> None:
        """One barrier for all writes whose positions nobody knows; of sources, when they are in
        our log.
        """
        if self._elsewhere:
            from belvedere.capture.arrival import await_positions

            wanted, connect = self._elsewhere, self.connections.of
            found = await_positions(self.store, connect, wanted, self._timeout)
            self._token, self._elsewhere = self._token.merge(found), {}
        if self._unplaced:
            self._token = self._token.merge(self.store.base.barrier())
            self._unplaced = False
