"""A schedule: one seeded run of a world, from its first operation until everything is quiet, and
what was wrong in it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest.mock import patch

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.state import read_state
from tests.simulation.actors import Client, Reader, Supervisor, writer
from tests.simulation.mixes import Mix
from tests.simulation.substitutes import SUBSTITUTES
from tests.simulation.world import GROUPS, Switches, Violation, World

_LIVELY = 6_000  # steps in which the writers and clients must come to an end
_CALM = 12_000  # steps in which everything must be committed when there are no more faults


@dataclass(frozen=True, slots=True)
class Outcome:
    mix: str
    seed: int
    violation: str | None
    counts: Counter[str]
    steps: int
    trace: list[tuple[int, str, str]]
    lines: list[dict[str, Any]]  # what was written and seen, for `belvedere.consistency`

    def report(self, lines: int = 60) -> str:
        """The violation with the end of the trace, for a person."""
        shown = "\n".join(
            f"  {step:5d} {who:28s} {what}" for step, who, what in self.trace[-lines:]
        )
        return f"mix {self.mix}, seed {self.seed}: {self.violation}\n{shown}"


# A definition never changes. To decode it once halves the time of a schedule.
_decoded = lru_cache(maxsize=1000)(ViewDefinition.from_bytes)


def run(mix: Mix, seed: int, switches: Switches | None = None) -> Outcome:
    switches = switches or Switches()
    with ExitStack() as stack:
        stack.enter_context(patch.object(ViewDefinition, "from_bytes", _decoded))
        for name in switches.substituted:
            stack.enter_context(SUBSTITUTES[name]())
        world = World(mix, seed, switches)
        violation = None
        try:
            _play(world)
        except Violation as found:
            violation = str(found)
        finally:
            world.scheduler.end()
    world.counts += Counter(
        {
            "collections": world.scheduler.taken["collect"] + world.scheduler.taken["raise fence"],
            "trims": world.scheduler.taken["log trim"],
        }
    )
    return Outcome(
        mix.name,
        seed,
        violation,
        world.counts,
        world.scheduler.step,
        world.scheduler.trace,
        world.lines,
    )


def _play(world: World) -> None:
    scheduler, mix = world.scheduler, world.mix
    client = Client(world)
    client.start()
    busy = [
        world.spawn(f"writer{n}", lambda: writer(world, mix.operations // mix.writers))
        for n in range(mix.writers)
    ]
    busy.append(world.spawn("client", client.run))
    for n in range(mix.readers):
        world.spawn(f"reader{n}", Reader(world).run)
    for n in range(mix.long_readers):
        world.spawn(f"long reader{n}", Reader(world).run_long)
    staff = Supervisor(world)
    staff.start()
    if not scheduler.run(lambda: all(a.ended for a in busy), _LIVELY):
        world.violate(f"the writers and clients did not come to an end in {_LIVELY} steps")
    _settle(world, staff)
    _touch_everything(world)
    _settle(world, staff)


def _settle(world: World, staff: Supervisor) -> None:
    """No more faults: everything written must be in every view, and late
    attempts must do no harm.
    """
    world.calm = True
    for actor in world.scheduler.actors:
        if not actor.napping:
            actor.fate = None
    if not world.scheduler.run(lambda: _resting(world, staff) and world.dry, _CALM):
        world.violate(
            f"{_CALM} steps without faults, and not everything is committed and live: head"
            f" {world.head}"
        )
    world.judge("end")
    with world.scheduler.quietly():
        names = set(world.store.catalog.read(read_state).views)
    if names != world.names:
        world.violate(f"the views are {sorted(names)}, and should be {sorted(world.names)}")


def _resting(world: World, staff: Supervisor) -> bool:
    """Only coordinators are left: all attempts, the latest too, have ended."""
    return all(actor in staff.actors for actor in world.scheduler.actors)


def _touch_everything(world: World) -> None:
    """A last operation on every row and every group: what is wrong in
    an auxiliary view shows now.
    """
    with world.scheduler.quietly():
        for table in world.mix.tables:
            for number in range(world.mix.keys):
                group = GROUPS[number % len(GROUPS)]
                amount = 3 * (number + 1)
                world.write(table, [(f"k{number}", (group, amount, amount / 7))])
