"""Epochs on Spark: one small job, however many views there are.

    near      no job at all, for the small epochs of complete views (`epochs.local`)
    narrow    one task plays all view managers and runs every level: one stage, no exchange
    wide      mapInArrow(first levels) -> repartitionById -> mapInArrow(next level) -> ... ->
              collect(acks)

Rows never travel through the JVM one by one: tasks read the log themselves, and envelopes carry
Arrow buffers. Only acks come back to the driver. Which width is faster follows from measured times
(`Width`), results are the same.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from belvedere.catalog.source_definition import SourceDefinition
from belvedere.epochs.attempts import checked, run_stage, run_whole, stages
from belvedere.epochs.intent import Intent
from belvedere.epochs.intents import definitions, load_plan
from belvedere.epochs.local import LocalRunner, is_near
from belvedere.epochs.manager import Ack, Envelope, ack_to_json
from belvedere.epochs.plan import EpochPlan
from belvedere.epochs.width import Width
from belvedere.errors import BelvedereError, PipelineError
from belvedere.sources.base import Answer, Question
from belvedere.spark.asking import ANSWER, Connect, answers_of, asking
from belvedere.spark.choices import NICE
from belvedere.spark.failures import failure, job_failure, lost_worker, told
from belvedere.spark.frames import Batches, map_in_arrow
from belvedere.spark.session import with_log
from belvedere.stores.base import RowRange, Store, TableId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task = Callable[[Batches], Iterator[pa.RecordBatch]]
ENVELOPE = "task int, level int, slot int, node bigint, part int, payload binary"
_FIELDS = ["task", "level", "slot", "node", "part", "payload"]
_ARROW = pa.schema(
    [
        ("task", pa.int32()),
        ("level", pa.int32()),
        ("slot", pa.int32()),
        ("node", pa.int64()),
        ("part", pa.int32()),
        ("payload", pa.binary()),
    ]
)
ACK_LEVEL = -1
# runs of a job whose worker processes end; Spark has tried each of its tasks again before
_RUNS = 3
_NICEST = 19
# bytes per row of an exchange; with larger ones the JVM spends its time on large arrays
_PIECE = 1 << 20
_log = logging.getLogger("belvedere")


@dataclass(slots=True)
class SparkRunner:
    """Runs intents on a Spark session.

    A job of one stage is planned once and run for every epoch: its tasks take the open intent from
    the store. That saves a third of the time of a small epoch. A job with exchanges is planned for
    its intent, as Spark would reuse what an exchange kept.
    """

    store: Store
    spark: SparkSession
    width: Width
    # jobs of one stage, by their number of tasks
    _planned: dict[int, DataFrame] = field(default_factory=dict)

    def run(self, intent: Intent) -> list[Ack]:
        views, tables = definitions(self.store, intent)
        plan = EpochPlan.of(intent, views, tables)
        if is_near(intent, views):
            return LocalRunner(self.store).run_plan(plan)
        tasks = self.width.of(plan)
        acks = self._collect(self._frame(plan, tasks), intent)
        self.width.learn(plan, tasks, acks)
        return acks

    def warm_up(self) -> None:
        """A job that does nothing, so that the first epoch finds workers and compiled code."""
        frame = map_in_arrow(self.spark.range(0, 1, 1, 1), _nothing, ENVELOPE)
        self._rows(frame, Job("warm-up", "a job that does nothing", _warm_up_failure))

    def scan(self, table: TableId, ranges: Sequence[RowRange]) -> None:
        """Log what a foreign table has: one task for each range, which appends its own part.

        A task that is repeated, or run twice, logs the same once more, which changes nothing.
        """
        if ranges:
            tasks = self.spark.range(0, len(ranges), 1, len(ranges))
            frame = map_in_arrow(tasks, _logged(self.store, table, ranges), ENVELOPE)
            self._rows(frame, Job("adoption", f"adoption of table {table}", _scan_failure))

    def ask(
        self, connect: Connect, definition: SourceDefinition, questions: Sequence[Question]
    ) -> list[Answer]:
        """An answer of its own for each question to a source, asked in tasks."""
        tasks = min(len(questions), self.spark.sparkContext.defaultParallelism)
        numbers = self.spark.range(0, len(questions), 1, tasks)
        frame = map_in_arrow(numbers, asking(connect, definition, questions), ANSWER)
        about = f"{len(questions)} questions to source {definition.name}"
        return answers_of(self._rows(frame, Job("asking", about, _asking_failure)))

    def _frame(self, plan: EpochPlan, tasks: int) -> DataFrame:
        if tasks > 1 and len(stages(plan)) > 1:
            return self._staged(plan, tasks)
        if tasks not in self._planned:
            self._planned[tasks] = self._first(_whole(self.store, tasks), tasks)
        return self._planned[tasks]

    def _staged(self, plan: EpochPlan, tasks: int) -> DataFrame:
        first, *later = stages(plan)
        frame = self._first(_stage(self.store, plan.intent, first, tasks), tasks)
        for levels in later:
            frame = map_in_arrow(
                frame.repartitionById(tasks, frame["task"]),
                _stage(self.store, plan.intent, levels, tasks),
                ENVELOPE,
            )
        return frame

    def _first(self, task: Task, tasks: int) -> DataFrame:
        return map_in_arrow(self.spark.range(0, tasks, 1, tasks), task, ENVELOPE)

    def _collect(self, frame: DataFrame, intent: Intent) -> list[Ack]:
        name = f"epoch {intent.epoch}"
        about = f"{name}: {intent.kind}, {intent.operations} operations"
        # acks only: levels before the last send their envelopes on
        rows = self._rows(frame, Job(name, about, partial(failure, intent.epoch)))
        return checked([_ack(bytes(row["payload"])) for row in rows], intent)

    def _rows(self, frame: DataFrame, job: Job) -> list[Any]:
        """A job whose workers were killed is run again: attempts of an epoch may be as many as they
        like (rule R2), and a worker that ends for good reasons ends in each of them.
        """
        for _ in range(_RUNS - 1):
            try:
                return self._collected(frame, job)
            except _JobFailed as failed:
                if not lost_worker(failed.report):
                    raise job.failure(failed.report) from failed
                _log.warning("%s: worker processes of Spark ended; it is run again", job.name)
        try:
            return self._collected(frame, job)
        except _JobFailed as failed:
            raise job.failure(failed.report) from failed

    def _collected(self, frame: DataFrame, job: Job) -> list[Any]:
        from py4j.protocol import Py4JError, Py4JJavaError
        from pyspark.errors import PySparkException

        group = f"belvedere-{job.name.removeprefix('epoch ')}"
        try:
            self.spark.sparkContext.setJobGroup(group, job.about)
            return frame.collect()
        except (
            PySparkException,
            Py4JJavaError,
        ) as error:  # the second: PySpark has no class for it
            raise _JobFailed(str(error)) from error
        except (Py4JError, OSError) as error:
            what = (
                f"{job.name} is not finished, as Spark's Java process has ended or does not answer"
            )
            hint = (
                "Close the database and open it again, which starts another; then it is run again"
            )
            raise PipelineError(with_log(f"{what}. {hint}")) from error


class _JobFailed(Exception):
    """A job has failed, and Spark goes on."""

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.report = report


@dataclass(frozen=True, slots=True)
class Job:
    """What Spark and users are told about a job."""

    name: str
    about: str
    failure: Callable[[str], BelvedereError]  # from Spark's report


def _logged(store: Store, table: TableId, ranges: Sequence[RowRange]) -> Task:
    """Each task scans the range that has its number."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        _give_way()
        with told():
            assert store.foreign is not None  # only such a store has ranges
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    store.foreign.log_range(table, ranges[number])
        yield _rows([])

    return task


def _nothing(batches: Batches) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield _rows([])


def _warm_up_failure(report: str) -> BelvedereError:
    return job_failure("Spark's first job", report)


def _asking_failure(report: str) -> BelvedereError:
    return job_failure("asking a source", report)


def _scan_failure(report: str) -> BelvedereError:
    return job_failure("the scan of a table that is adopted", report)


def _whole(store: Store, tasks: int) -> Task:
    """Whatever epoch is open, without an exchange."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        _give_way()
        for _ in batches:
            pass
        with told():
            acks = run_whole(store, tasks, _number())
        yield _rows([_ack_row(a) for a in acks])

    return task


def _stage(store: Store, intent: Intent, levels: range, tasks: int) -> Task:
    """Some levels of an epoch: one stage of its job."""
    data = intent.to_bytes()

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        _give_way()
        incoming, acks = _opened(batches)
        with told():
            plan = load_plan(store, Intent.from_bytes(data))
            outgoing, done = run_stage(store, plan, levels, tasks, _number(), incoming)
        yield _rows([*(_row(a) for a in acks), *(_ack_row(a) for a in done)])
        for envelope in outgoing:
            yield from _sealed(envelope, tasks)

    return task


def _give_way() -> None:
    """Beside writers on the same cores, tasks come second: a write is not slower for views."""
    wanted = os.environ.get(NICE, "0")
    if not wanted.isdecimal() or int(wanted) > _NICEST:
        raise PipelineError(
            f"{NICE} is {wanted!r}: give a number from 0 to {_NICEST}, where {_NICEST} gives way"
            " the most"
        )
    if int(wanted):
        os.setpriority(os.PRIO_PROCESS, 0, int(wanted))


def _number() -> int:
    """Which task of its stage this process runs."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def _opened(batches: Batches) -> tuple[list[Envelope], list[bytes]]:
    envelopes, acks = [], []
    for batch in batches:
        if batch.schema.names != _FIELDS:
            continue  # level 0 is fed by a range that only starts the tasks
        for row in batch.to_pylist():  # one row per envelope, not per change
            if row["level"] == ACK_LEVEL:
                acks.append(row["payload"])
            else:
                table = pa.ipc.open_stream(row["payload"]).read_all()
                envelopes.append(
                    Envelope(row["level"], row["slot"], row["node"], row["part"], table)
                )
    return envelopes, acks


def _sealed(envelope: Envelope, tasks: int) -> Iterator[pa.RecordBatch]:
    pieces = max(1, envelope.table.nbytes // _PIECE)
    rows = -(-envelope.table.num_rows // pieces)
    for start in range(0, envelope.table.num_rows, rows):
        sink = pa.BufferOutputStream()
        part = envelope.table.slice(start, rows).combine_chunks()
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part)
        address = {
            "task": envelope.slot % tasks,
            "level": envelope.level,
            "slot": envelope.slot,
            "node": envelope.node,
            "part": envelope.part,
        }
        yield _rows([{**address, "payload": sink.getvalue().to_pybytes()}])


def _rows(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=_ARROW)


def _row(payload: bytes) -> dict[str, Any]:
    return {"task": 0, "level": ACK_LEVEL, "slot": 0, "node": 0, "part": 0, "payload": payload}


def _ack_row(ack: Ack) -> dict[str, Any]:
    return _row(json.dumps(ack_to_json(ack)).encode())


def _ack(data: bytes) -> Ack:
    d = json.loads(data)
    written = {int(k): v for k, v in d["written"].items()}
    errors = {int(t): {int(s): n for s, n in slots.items()} for t, slots in d["errors"].items()}
    return Ack(
        d["epoch"],
        d["level"],
        tuple(d["slots"]),
        d["operations"],
        d["changes"],
        written,
        errors,
        d["seconds"],
        d["last_time"],
    )
