"""Repair: correct exactly the wrong records of a view, in an epoch with an intent of its own (rule
R7).

The view is verified under the lease, so no epoch runs between the comparison and the correction.
The corrections are put into the catalog first; attempts of the epoch read them there, so a retry
writes the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from belvedere.catalog import layout
from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.state import read_state
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.corrections import CORRECTIONS, to_bytes
from belvedere.epochs.intent import REPAIR
from belvedere.epochs.intents import Choice
from belvedere.epochs.verify import Difference, Verification, verify
from belvedere.errors import PipelineError
from belvedere.readers.rows import ViewRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def repair(coordinator: Coordinator, spark: SparkSession, name: str) -> Verification:
    """Verify a view and correct what is wrong, at most `verify.SHOWN` records at a time."""
    with alone(coordinator):
        first = found = verify(coordinator.store, spark, name)
        while found.differences:
            left = sum(found.counts.values())
            _correct(coordinator, name, found.differences)
            found = verify(coordinator.store, spark, name)
            if sum(found.counts.values()) >= left:
                raise PipelineError(
                    f"view {name} still differs after its records were written: drop it and create"
                    " it again"
                )
        return first


@contextmanager
def alone(coordinator: Coordinator) -> Iterator[None]:
    """Under the lease, so that no other epoch runs, and with none left open by a crash."""
    if not coordinator.acquire():
        raise PipelineError("a pipeline is running on this database: stop it, then repair")
    try:
        while layout.INTENT.current(coordinator.store.catalog) is not None:
            coordinator.step()
        yield
    finally:
        coordinator.release()


def _correct(coordinator: Coordinator, name: str, differences: tuple[Difference, ...]) -> None:
    view = coordinator.store.catalog.read(read_state).view(name)
    write_corrections(coordinator, REPAIR, _corrections(view, differences))


def write_corrections(coordinator: Coordinator, kind: str, data: bytes) -> None:
    """An epoch that does nothing else."""
    key = uuid.uuid4().hex
    # the commit of the epoch removes it
    coordinator.store.catalog.transact(lambda t: layout.REPAIRS.put(t, key, data))
    coordinator.step(decide=lambda state, _: Choice(kind, state.head.vector, repair=key))


def _corrections(view: ViewDefinition, differences: tuple[Difference, ...]) -> bytes:
    """Records to write: a new value, or for counted rows what to add to the count."""
    shape = ViewRows.of(view)
    rows = [_correction(shape, d) for d in differences]
    return to_bytes(pa.Table.from_pylist(rows, schema=CORRECTIONS))


def _correction(shape: ViewRows, difference: Difference) -> dict[str, Any]:
    row = difference.expected or difference.found or {}
    owner, key, value = shape.record([row[name] for name in shape.schema.names])
    found: dict[str, Any] = {
        "table": shape.sink.table,
        "owner": owner,
        "key": key,
        "value": None,
        "add": 0,
    }
    if shape.sink.counts_rows:
        return {
            **found,
            "add": difference.times if difference.kind == "missing" else -difference.times,
        }
    return {**found, "value": value if difference.expected else None}
