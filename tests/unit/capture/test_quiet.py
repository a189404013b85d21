"""Positions behind which nothing of ours happened: written seldom, at once if somebody waits."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.capture.awaited import note_awaited
from belvedere.capture.follower import QUIET_SECONDS
from belvedere.capture.progress import read_progress
from belvedere.catalog.sources import ask_reload
from belvedere.catalog.state import read_state
from tests.unit.capture.test_follower import World

STEP = 0.2  # seconds, of a clock that is set


def quiet_world(seed: int) -> World:
    """Followed is a relation in which nothing happens, beside one in which much does."""
    world = World(seed)
    world.name("accounts")
    world.settle()
    return world


def others_write(world: World) -> None:
    number = world.random.randrange(9)
    row = {"owner": "x", "id": number, "amount": world.random.randrange(99)}
    world.server.commit({"savings": {("x", number): row}})


def step(world: World, seconds: float = STEP) -> None:
    world.clock += seconds
    if world.follower is None:
        world.follower = world.new_follower()
    world.follower.step(0)


def written(world: World) -> int:
    """The position that others see."""
    state = world.store.catalog.read(read_state)
    return int(read_progress(world.store, state.source("bank").progress)[0].position)


def test_a_quiet_source_is_written_about_seldom() -> None:
    world, seconds = quiet_world(1), 60.0
    seen = []
    for _ in range(round(seconds / STEP)):
        others_write(world)
        world.server.deliver()
        step(world)
        seen.append(written(world))
    writes = sum(one != other for one, other in pairwise(seen))
    assert seconds / QUIET_SECONDS - 2 <= writes <= seconds / QUIET_SECONDS


@given(st.integers(0, 1 << 32))
@settings(max_examples=25)
def test_who_waits_need_not_wait_longer_than_the_log(seed: int) -> None:
    """Whoever waits, for whatever positions, in any order: as soon as the last one was followed, it
    is written, without any time going by.
    """
    world = quiet_world(seed)
    chance, wanted = random.Random(seed), 0
    for _ in range(60):
        act = chance.random()
        if act < 0.4:
            others_write(world)
        elif act < 0.5:
            world.server.deliver(chance.randint(1, 9))
        elif act < 0.55:
            world.follower = None  # another process follows
        elif act < 0.7:
            # some of the positions were asked for a while ago
            asked = chance.randint(max(0, len(world.server.log) - 5), len(world.server.log))
            if asked > written(world):
                note_awaited(world.store, "bank", world.source, str(asked))
                wanted = max(wanted, asked)
        else:
            step(world, 0.0)
            assert world.follower is not None
            if int(world.follower.reached) >= wanted:
                assert written(world) >= wanted


def test_after_a_reload_nobody_waits_for_a_position_of_before() -> None:
    """It would hide those that come: they are less far."""
    world = quiet_world(2)
    note_awaited(world.store, "bank", world.source, "1000000")
    ask_reload(world.store, "bank", None)
    world.settle()
    others_write(world)
    world.server.deliver()
    note_awaited(world.store, "bank", world.source, str(len(world.server.log)))
    step(world)
    assert written(world) == len(world.server.log)
