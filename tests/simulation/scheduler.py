"""A seeded scheduler of greenlets: at every point of the store it decides who runs next.

An actor is a plain function. Whatever it calls may come to a `point`; there the scheduler takes
over, and the actor goes on when its turn comes: soon, after a nap of any length, or never. A fate
says at which of its points an actor naps or dies. Everything is drawn from one seeded generator, so
a seed is a schedule.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from greenlet import GreenletExit, greenlet  # type: ignore[import-untyped]  # it has no stubs

RUNNING, DONE, FAILED, KILLED = "running", "done", "failed", "killed"
_DULL = {"waits", "sync", "status"}  # not worth a line of the trace
_PACES = (0.1, 0.5, 1.0, 1.0, 1.0, 3.0)


class Killed(GreenletExit):  # type: ignore[misc]  # of a module without stubs
    """Thrown into an actor that dies.

    Not an Exception, so no handler of the code under test takes it for one of its own.
    """


@dataclass(frozen=True, slots=True)
class Fate:
    """At its point number `at` the actor dies (`nap` is None) or sleeps for `nap` steps."""

    at: int
    nap: int | None = None


@dataclass(slots=True, eq=False)
class Actor:
    name: str
    fate: Fate | None
    pace: float
    on_fate: Callable[[Actor], None]
    greenlet: Any = None
    state: str = RUNNING
    result: Any = None
    error: BaseException | None = None
    wake: int = 0
    until: Callable[[], bool] | None = None
    points: int = 0
    napping: bool = False  # has met its fate, and that was a nap
    ended_at: int = 0

    @property
    def ended(self) -> bool:
        return self.state != RUNNING


@dataclass(slots=True)
class Scheduler:
    random: random.Random
    trace: list[tuple[int, str, str]] = field(default_factory=list)
    after_step: Callable[[], None] = lambda: None
    taken: Counter[str] = field(default_factory=Counter)  # steps by name
    step: int = 0
    _actors: list[Actor] = field(default_factory=list)
    _current: Actor | None = None
    _quiet: int = 0
    _hub: Any = field(default_factory=greenlet.getcurrent)

    def spawn(
        self,
        name: str,
        body: Callable[[], Any],
        fate: Fate | None = None,
        delay: int = 0,
        on_fate: Callable[[Actor], None] = lambda actor: None,
    ) -> Actor:
        actor = Actor(name, fate, self.random.choice(_PACES), on_fate, wake=self.step + delay)
        actor.greenlet = greenlet(lambda: self._live(actor, body), parent=self._hub)
        self._actors.append(actor)
        return actor

    @property
    def actors(self) -> list[Actor]:
        return [a for a in self._actors if not a.ended]

    def asleep(self, actor: Actor) -> bool:
        return actor.wake > self.step

    # ------------------------------------------------------------ called by actors

    def point(self, what: str) -> None:
        """Somebody else may run now; the step `what` of this actor follows when it is resumed."""
        actor = self._current
        if actor is None or self._quiet:
            return
        if actor.state == KILLED:  # a dead process does not tidy up
            raise Killed
        actor.points += 1
        if actor.fate is not None and actor.points == actor.fate.at:
            self._meet_fate(actor, actor.fate)
        self._hub.switch()
        self.taken[what] += 1
        if what not in _DULL:
            self.note(what)

    def sleep(self, steps: int) -> None:
        assert self._current is not None
        self._current.wake = self.step + steps
        self._hub.switch()

    def wait(self, until: Callable[[], bool]) -> None:
        """Go on when the condition holds; a wait is a point too, so a waiting actor can die or be
        paused.
        """
        assert self._current is not None
        self._current.until = until
        self.point("waits")

    def note(self, text: str) -> None:
        self.trace.append((self.step, self._current.name if self._current else "--", text))

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Steps of the judge: nobody else runs meanwhile."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    # ------------------------------------------------------------ called from outside

    def run(self, until: Callable[[], bool], limit: int) -> bool:
        """Run actors until the condition holds; False if that takes more than `limit` steps, or
        nobody can go on.
        """
        last = self.step + limit
        while not until():
            ready = self._ready()
            if not ready or self.step >= last:
                return False
            self.step += 1
            self._resume(self.random.choices(ready, [a.pace for a in ready])[0])
            self.after_step()
        return True

    def doom(self, actor: Actor) -> None:
        """The actor dies at its next point."""
        actor.fate = Fate(actor.points + 1)

    def end(self) -> None:
        """Unwind everybody that is left, so that no greenlet outlives its schedule."""
        for actor in self._actors:
            self._current, actor.state = actor, KILLED
            actor.greenlet.throw(Killed)
        self._current = None
        self._actors.clear()

    # ------------------------------------------------------------ inside

    def _ready(self) -> list[Actor]:
        while True:
            able = [a for a in self._actors if a.until is None or a.until()]
            ready = [a for a in able if a.wake <= self.step]
            if ready or not able:
                return ready
            self.step = min(a.wake for a in able)  # all sleep: time passes

    def _resume(self, actor: Actor) -> None:
        actor.until = None
        self._current = actor
        try:
            actor.greenlet.switch()
        finally:
            self._current = None
        if actor.ended:
            actor.ended_at = self.step
            self._actors.remove(actor)

    def _meet_fate(self, actor: Actor, fate: Fate) -> None:
        actor.on_fate(actor)
        if fate.nap is None:
            self.note("dies")
            actor.state = KILLED
            raise Killed
        self.note(f"naps for {fate.nap} steps")
        actor.napping, actor.wake = True, self.step + fate.nap

    def _live(self, actor: Actor, body: Callable[[], Any]) -> None:
        try:
            actor.result = body()
            actor.state = DONE
        except Killed:
            actor.state = KILLED
        except Exception as error:  # whoever spawned the actor judges what it died of
            actor.error, actor.state = error, FAILED
            self.note(f"fails: {type(error).__name__}: {error}")
