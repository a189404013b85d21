"""How the attempts of an epoch are run, wherever that is: here, in Spark's tasks, in a simulation.

    narrow      one task, all levels
    wide        several tasks, each with some slots, and an exchange of envelopes between the stages

The first stage of a wide epoch has levels 0 and 1 if every task may repeat level 0
(`EpochPlan.repeatable`), else level 0 alone. An epoch of one stage needs no exchange: its tasks can
take the open intent from the store, so the job that runs them is always the same. A task that comes
too late then does a part of a later epoch once more, which changes nothing (rule R5).
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from belvedere.epochs.intent import Intent
from belvedere.epochs.intents import load_plan, open_intent
from belvedere.epochs.manager import Ack, Attempt, Envelope
from belvedere.epochs.plan import EpochPlan
from belvedere.errors import Stale
from belvedere.stores.base import Store


def stages(plan: EpochPlan) -> list[range]:
    """The levels of a wide epoch between two exchanges."""
    first = min(2 if plan.repeatable else 1, plan.graph.depth)
    return [range(first), *(range(level, level + 1) for level in range(first, plan.graph.depth))]


def run_stage(
    store: Store,
    plan: EpochPlan,
    levels: range,
    tasks: int,
    number: int,
    incoming: Sequence[Envelope],
) -> tuple[Sequence[Envelope], list[Ack]]:
    """What task `number` of so many does in one stage; envelopes for later ones are returned."""
    slots = [slot for slot in range(plan.intent.slots) if slot % tasks == number]
    return _run(
        Attempt(store, plan, slots, repeats=tasks > 1 and len(levels) > 1), levels, incoming
    )


def run_whole(store: Store, tasks: int, number: int) -> list[Ack]:
    """What task `number` of so many does in whatever epoch is open, which must not need an
    exchange.
    """
    plan = load_plan(store, open_intent(store))
    if tasks > 1 and len(stages(plan)) > 1:
        raise Stale(
            f"epoch {plan.intent.epoch} needs exchanges: this task was made for another one"
        )
    return run_stage(store, plan, range(plan.graph.depth), tasks, number, [])[1]


def checked(acks: list[Ack], intent: Intent) -> list[Ack]:
    """The acks, if they are for this intent."""
    if any(ack.epoch != intent.epoch for ack in acks):
        raise Stale(f"a task found another epoch open than {intent.epoch}")
    return acks


def _run(
    attempt: Attempt, levels: Iterable[int], incoming: Sequence[Envelope]
) -> tuple[Sequence[Envelope], list[Ack]]:
    """Some levels in one process, and the writes of every slot at the end."""
    acks: list[Ack] = []
    with _no_collection():
        for level in levels:
            incoming, ack = attempt.run(level, incoming)
            acks.append(ack)
        attempt.commit(acks[-1])
    attempt.store.rest()
    return incoming, acks


@contextmanager
def _no_collection() -> Iterator[None]:
    """Lists of a million records have no cycles, but looking for some took an eighth of an epoch's
    time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
