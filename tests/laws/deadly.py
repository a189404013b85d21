"""Crashes: a store and a runner that end the process at a chosen commit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from belvedere.epochs.local import LocalRunner


class Crash(Exception):
    """The process ends here."""


class Deadly:
    """A store whose slot commits can end the process; everything else is passed on."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.catalog, self.base, self.url, self.state, self.rest = (
            store.catalog,
            store.base,
            store.url,
            self,
            store.rest,
        )
        self.slots, self.read_only = store.state.slots, store.read_only
        self.foreign, self.capabilities = store.foreign, store.capabilities
        self.history = store.history
        self.commits_left, self.after = math.inf, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.state, name)

    def shard(self, slot: int, epoch: int) -> Any:
        return _DeadlyShard(self, self._store.state.shard(slot, epoch))

    def committing(self, commit: Callable[[], None]) -> None:
        self.commits_left -= 1
        if self.commits_left < 0:
            if self.after:
                commit()
            raise Crash
        commit()


class _DeadlyShard:
    def __init__(self, store: Deadly, shard: Any) -> None:
        self._store, self._shard = store, shard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shard, name)

    def commit(self) -> None:
        self._store.committing(self._shard.commit)


@dataclass
class Runner:
    """Runs epochs in this process, and may die when all is written but not yet committed."""

    store: Deadly
    tasks: int = 1
    dies_at_end: bool = False

    def run(self, intent: Any) -> Any:
        acks = LocalRunner(self.store, self.tasks).run(intent)  # type: ignore[arg-type]  # Deadly passes all on
        if self.dies_at_end:
            raise Crash
        return acks
