"""Epochs as a cluster runs them: attempts of tasks as actors, some twice, some killed, some far too
late.

The first finished attempt of a task counts, as in Spark. What the others do afterwards is up to
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import duckdb

from belvedere.epochs.attempts import checked, run_stage, run_whole, stages
from belvedere.epochs.intent import Intent
from belvedere.epochs.intents import load_plan
from belvedere.epochs.manager import Ack, Envelope
from belvedere.errors import PipelineError, Stale
from tests.simulation.scheduler import DONE, Actor, Fate

if TYPE_CHECKING:
    from tests.simulation.world import World

_FAILURES = 4  # of one task, then its job fails
_NAPS = (30, 150, 400, 900)


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    body: Callable[[], Any]


@dataclass(slots=True)
class SimulatedRunner:
    world: World
    owner: str

    def run(self, intent: Intent) -> list[Ack]:
        """As the runner on Spark: a job of one stage takes the open intent, one of several is made
        for its intent.
        """
        draw, store = self.world.random, self.world.store
        count = draw.randint(2, intent.slots) if draw.random() < self.world.mix.wide else 1
        levels = stages(load_plan(store, intent))
        if count == 1 or len(levels) == 1:
            tasks = [
                Task(f"{number}of{count}", partial(run_whole, store, count, number))
                for number in range(count)
            ]
            return checked([ack for acks in self._stage(intent, tasks) for ack in acks], intent)
        acks: list[Ack] = []
        envelopes: list[Envelope] = []
        for stage in levels:
            found = self._stage(
                intent,
                [self._task(intent, stage, count, number, envelopes) for number in range(count)],
            )
            envelopes = [e for out, _ in found for e in out]
            acks += [ack for _, done in found for ack in done]
        return acks

    def _task(
        self, intent: Intent, levels: range, count: int, number: int, envelopes: Sequence[Envelope]
    ) -> Task:
        mine = [e for e in envelopes if e.slot % count == number]

        def body() -> tuple[Sequence[Envelope], list[Ack]]:
            return run_stage(
                self.world.store,
                _plan(self.world, intent),
                levels,
                count,
                number,
                self._delivered(mine),
            )

        return Task(f"L{levels.start}.{number}of{count}", body)

    def _delivered(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """In no order, some in pieces: an exchange promises nothing else."""
        pieces: list[Envelope] = []
        for e in envelopes:
            if e.table.num_rows > 1 and self.world.random.random() < 0.3:
                at = self.world.random.randrange(1, e.table.num_rows)
                pieces += [
                    replace(e, table=e.table.slice(0, at)),
                    replace(e, table=e.table.slice(at)),
                ]
            else:
                pieces.append(e)
        self.world.random.shuffle(pieces)
        return pieces

    def _stage(self, intent: Intent, tasks: Sequence[Task]) -> list[Any]:
        """The results of tasks that run at the same time."""
        running = [_Running(self, intent, task) for task in tasks]
        while True:
            for task in running:
                task.look_after()
            if all(task.output for task in running):
                return [task.finish() for task in running]
            self.world.scheduler.wait(lambda: any(task.news for task in running))


class _Running:
    """One task with all its attempts."""

    def __init__(self, runner: SimulatedRunner, intent: Intent, task: Task) -> None:
        self.world, self.intent, self.task = runner.world, intent, task
        self.label = f"{runner.owner}/e{intent.epoch}.{task.name}"
        self.attempts: list[Actor] = []
        self.output: Actor | None = None
        self.lost = self._happens(self.world.mix.lost)
        self._start()
        if self._happens(self.world.mix.duplicate):
            self.world.count("duplicates")
            self._start(self.world.random.randint(0, 40))

    @property
    def news(self) -> bool:
        return self.output is None and (
            any(a.state == DONE for a in self.attempts)
            or not any(self._working(a) for a in self.attempts)
        )

    def look_after(self) -> None:
        """Take the first result; start another attempt when all others are dead or stand still."""
        if self.output is not None:
            return
        finished = [a for a in self.attempts if a.state == DONE]
        if finished and self.lost:
            self.world.count("outputs lost")
            self.lost, self.attempts = False, [a for a in self.attempts if a.state != DONE]
            self._start()
        elif finished:
            self.output = min(finished, key=lambda a: a.ended_at)
        elif not any(self._working(a) for a in self.attempts):
            self._again()

    def finish(self) -> Any:
        """The result; of the attempts that are left, some hear that they are not needed."""
        for attempt in self.attempts:
            if not attempt.ended and self._happens(0.4):
                self.world.scheduler.doom(attempt)
        assert self.output is not None
        return self.output.result

    def _again(self) -> None:
        failed = [a for a in self.attempts if a.error is not None]
        stale = next((a.error for a in failed if isinstance(a.error, Stale)), None)
        if stale is not None:
            raise stale
        if len(failed) >= _FAILURES:
            raise PipelineError(f"{self.label} failed {len(failed)} times: {failed[-1].error}")
        if any(not a.ended for a in self.attempts):
            self.world.count("duplicates")
        self._start()

    def _start(self, delay: int = 0) -> None:
        number = len(self.attempts) + 1
        attempt = self.world.scheduler.spawn(
            f"{self.label}#{number}", self._body, self._fate(), delay, self._met_fate
        )
        self.attempts.append(attempt)

    def _body(self) -> Any:
        world, epoch = self.world, self.intent.epoch
        try:
            return self.task.body()
        except (Stale, duckdb.Error):
            raise
        except Exception as error:
            # whatever else an attempt dies of, it has met a state that must not be
            world.violate(
                f"an attempt of epoch {epoch} fails with {type(error).__name__}: {error}", error
            )
        finally:
            if world.head.epoch >= epoch:
                world.count("late attempts")

    def _fate(self) -> Fate | None:
        draw, mix = self.world.random, self.world.mix
        if self._happens(mix.kill):
            return Fate(draw.randint(1, mix.reach))
        if self._happens(mix.late):
            return Fate(draw.randint(1, mix.reach), draw.choice(_NAPS))
        return None

    def _met_fate(self, actor: Actor) -> None:
        if actor.fate is not None and actor.fate.nap is None:
            self.world.count("kills")

    def _happens(self, probability: float) -> bool:
        return not self.world.calm and self.world.random.random() < probability

    def _working(self, actor: Actor) -> bool:
        return not actor.ended and not (actor.napping and self.world.scheduler.asleep(actor))


def _plan(world: World, intent: Intent) -> Any:
    """A task gets the intent as bytes, and looks the definitions up itself."""
    return load_plan(world.store, Intent.from_bytes(intent.to_bytes()))
