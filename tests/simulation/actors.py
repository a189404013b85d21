"""Who is in the world: writers, readers, a client that creates and drops views, coordinators and
who restarts them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.views import create_view, drop_view
from belvedere.epochs.coordinator import Coordinator
from belvedere.errors import LeaseLost, PipelineError, Stale
from belvedere.readers import cut as cuts
from belvedere.readers.rows import ViewRows
from tests.simulation.oracle import VIEWS, Content
from tests.simulation.runner import SimulatedRunner
from tests.simulation.scheduler import Actor, Fate
from tests.simulation.world import LEASE_OVER, World, content, readable

_PAUSES = (0, 20, 150, 500)
_HOPELESS = 3  # failed jobs of one epoch


class Client:
    """Creates, replaces and drops views; the one named `extra` again and again."""

    def __init__(self, world: World) -> None:
        self.world = world

    def create(self, name: str, view: str, table: str, replace_it: bool = False) -> None:
        world = self.world
        world.scheduler.note(
            f"creates view {name} as {view} of"
            f" {table}{' in place of another' if replace_it else ''}"
        )
        create_view(
            world.store,
            name,
            world.select_of(view, table),
            VIEWS[view].key,
            world.mix.level,
            replace_it,
        )
        world.names.add(name)

    def start(self) -> None:
        """The views from the beginning."""
        draw, mix = self.world.random, self.world.mix
        with self.world.scheduler.quietly():
            for view in draw.sample(mix.views, min(mix.live, len(mix.views))):
                table = draw.choice(mix.tables)
                self.create(f"{view}_{table}", view, table)

    def run(self) -> None:
        world, draw = self.world, self.world.random
        for _ in range(world.mix.creations):
            world.scheduler.sleep(draw.randint(1, 120))
            view, table = draw.choice(world.mix.views), draw.choice(world.mix.tables)
            if "extra" not in world.names:
                world.count("creations")
                self.create("extra", view, table)
            elif draw.random() < 0.4:
                world.count("replacements")
                self.create("extra", view, table, replace_it=True)
            else:
                world.count("drops")
                world.scheduler.note("drops view extra")
                drop_view(world.store, "extra")
                world.names.discard("extra")


def writer(world: World, operations: int) -> None:
    draw = world.random
    while operations > 0:
        size = draw.choice((1, 1, 1, 2, 3)) if world.mix.streams == 1 else 1
        batch = [
            (world.some_key(), world.some_row() if draw.random() < 0.7 else None)
            for _ in range(size)
        ]
        table, *others = draw.sample(world.mix.tables, len(world.mix.tables))
        parts = [(table, batch)]
        if others and world.mix.streams == 1 and draw.random() < 0.5:
            parts.append((others[0], [(world.some_key(), world.some_row())]))
        world.write_all(parts)
        operations -= size
        if draw.random() >= world.mix.bursts:
            world.scheduler.sleep(draw.randint(1, 120))


class Reader:
    """Reads all live views at one cut, with the production readers (rule R6), and compares them
    with that cut.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self) -> None:
        while not self.world.calm:
            self.world.scheduler.sleep(self.world.random.randint(1, 80))
            self._compare(*cuts.at_cut(self.world.store, self._read))

    def run_long(self) -> None:
        """With a pin: what it holds stays readable, however long it takes."""
        while not self.world.calm:
            self.world.scheduler.sleep(self.world.random.randint(1, 80))
            with cuts.open_cut(self.world.store) as cut:
                for _ in range(2):
                    try:
                        found = self._read(cut)
                    except Stale as error:
                        self.world.violate(
                            f"a pinned reader of epoch {cut.epoch} is turned away: {error}", error
                        )
                    self._compare(*found)
                    self.world.count("long reads")
                    self.world.scheduler.sleep(self.world.random.randint(1, 200))

    def _read(self, cut: cuts.Cut) -> tuple[cuts.Cut, dict[ViewDefinition, Content]]:
        self.world.scheduler.note(f"reads as of epoch {cut.epoch}")
        return cut, {view: self._read_view(cut, view) for view in readable(cut)}

    def _read_view(self, cut: cuts.Cut, view: ViewDefinition) -> Content:
        draw, shape = self.world.random, ViewRows.of(view)
        found: Content = Counter()
        for keys, values in cut.scan(view):
            found.update(self._decoded(shape, keys, values))
            if draw.random() < 0.2:
                self.world.scheduler.sleep(draw.randint(1, 120))
        return found

    def _decoded(self, shape: ViewRows, keys: pa.BinaryArray, values: pa.BinaryArray) -> Content:
        try:
            return content(shape.decode(keys, values))
        except Exception as error:  # records that no rows can be made of, such as a count of -1
            self.world.violate(
                f"a reader cannot decode records of view {shape.name}: {error}", error
            )

    def _compare(self, cut: cuts.Cut, found: dict[ViewDefinition, Content]) -> None:
        for view, rows in found.items():
            self.world.compare("a reader", view, cut.epoch, cut.vector, rows)
            self.world.count("reads")


class Supervisor:
    """Starts a coordinator, and another one whenever one is lost."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wanted = False
        self.coordinators: list[Actor] = []
        self.actors: list[Actor] = []  # they and the supervisor
        self.failures: Counter[int] = Counter()

    def start(self) -> None:
        self.actors.append(self.world.spawn("supervisor", self._run))

    def _run(self) -> None:
        while True:
            self.world.scheduler.wait(
                lambda: self.wanted or all(a.ended for a in self.coordinators)
            )
            self.wanted = False
            self._start(f"C{len(self.coordinators) + 1}")

    def _start(self, name: str) -> None:
        coordinator = self.world.scheduler.spawn(
            name, lambda: self._coordinate(name), self._fate(), on_fate=self._lost
        )
        self.coordinators.append(coordinator)
        self.actors.append(coordinator)

    def _fate(self) -> Fate | None:
        world, draw = self.world, self.world.random
        if world.calm or len(self.coordinators) + 1 >= world.mix.coordinators:
            return None
        chance = draw.random()
        if chance < world.mix.crash:
            return Fate(draw.randint(1, 60))
        if chance < world.mix.crash + world.mix.pause:
            return Fate(draw.randint(1, 60), draw.choice(_PAUSES))
        return None

    def _lost(self, actor: Actor) -> None:
        """The coordinator dies or stands still; after its lease somebody else may take over."""
        dies = actor.fate is not None and actor.fate.nap is None
        self.world.count("coordinator crashes" if dies else "coordinator pauses")
        self.world.pass_time(LEASE_OVER)
        self.wanted = True

    def _coordinate(self, name: str) -> None:
        world = self.world
        coordinator = Coordinator(
            world.store,
            SimulatedRunner(world, name),
            world.settings,
            world.switches.engine,
            world.now,
            owner=name,
        )
        try:
            while not coordinator.acquire():
                # nobody else is left to renew the lease
                if sum(not a.ended for a in self.coordinators) == 1:
                    world.pass_time(LEASE_OVER)
                world.scheduler.sleep(10)
            world.scheduler.note(
                f"has the lease, fence {coordinator.lease.fence if coordinator.lease else 0}"
            )
            while True:
                if coordinator.step() is None:
                    world.scheduler.sleep(5)
                if world.calm:
                    coordinator.settings = replace(world.settings, max_rows=100)
        except LeaseLost as error:
            world.count("coordinators fenced")
            world.scheduler.note(f"stops: {error}")
        except PipelineError as error:
            self._failed(error)
        except Exception as error:  # a coordinator has no other way to end
            world.violate(f"coordinator {name} fails with {type(error).__name__}: {error}", error)

    def _failed(self, error: PipelineError) -> None:
        epoch = self.world.head.epoch + 1
        self.failures[epoch] += 1
        if self.failures[epoch] >= _HOPELESS:
            self.world.violate(
                f"epoch {epoch} never commits, all views stand still: {error}", error
            )
        self.world.pass_time(LEASE_OVER)
