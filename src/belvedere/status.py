"""Status and metrics: where every view stands, derived from the store's manifests (rule R4), never
from a driver's memory.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from belvedere.catalog.definitions import LIVE, ViewDefinition
from belvedere.catalog.history import kept, oldest_readable
from belvedere.catalog.state import CatalogState, read_state
from belvedere.epochs.commits import manifests
from belvedere.epochs.lease import holder
from belvedere.epochs.progress import progress
from belvedere.errors import Stale
from belvedere.graph import state_tables
from belvedere.kept_status import KeptLag, with_algorithms
from belvedere.source_status import SourceInfo, read_sources
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.table_status import CaptureInfo, TableInfo, advice_for, read_tables
from belvedere.types import Epoch, Position, Vector


@dataclass(frozen=True, slots=True)
class ViewInfo:
    name: str
    state: str
    epoch: Epoch  # the committed epoch that readers see; 0 while the view is built
    lag_operations: int
    lag_seconds: float
    loaded_rows: int
    touched_rows: int  # records of the view table written by recent epochs
    state_records: int  # of the view table and its auxiliary views
    state_bytes: int
    errors: int
    # of which `loaded_rows` are loaded while the view is built, about; 0 if it is not known
    total_rows: int = 0
    seconds_left: float | None = None  # until it is built, about
    consistency: str = "strong"  # the least level that is asked for
    given: str = "strong"  # the level that epochs give
    advice: str = ""  # what somebody should do about a foreign table that it uses, or a source
    algorithm: str = ""  # that keeps it, if one is chosen
    waits: str = ""  # of such a view: what its next rows wait for
    asked: int = 0  # questions to its sources since a process began to keep it
    asked_again: int = 0  # of these, as an answer came too early
    lags: tuple[KeptLag, ...] = ()  # of such a view: how far it is behind each of its sources

    @property
    def is_live(self) -> bool:
        return bool(self.epoch)


@dataclass(frozen=True, slots=True)
class Status:
    url: str
    epoch: Epoch
    committed: Position
    written: Position
    coordinator: str  # "" if none is alive
    views: tuple[ViewInfo, ...]
    epochs: tuple[dict[str, Any], ...]  # manifests of recent epochs, oldest first
    tables: tuple[TableInfo, ...] = ()  # the foreign ones
    capture: CaptureInfo | None = None  # of foreign tables
    history: str = ""  # what is kept for readers of the past; "" if nothing is
    oldest_epoch: Epoch = 0  # that can be read
    sources: tuple[SourceInfo, ...] = ()

    @property
    def lag_operations(self) -> int:
        return self.written - self.committed

    @property
    def unbuilt(self) -> tuple[ViewInfo, ...]:
        """Views that are not live yet."""
        return tuple(view for view in self.views if not view.is_live)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_status(store: Store, recent: int = 20) -> Status:
    words, oldest = store.catalog.read(lambda t: (str(kept(t)), oldest_readable(t)))
    return replace(_read(store, recent), history=words, oldest_epoch=oldest)


def _read(store: Store, recent: int) -> Status:
    def body(t: CatalogTransaction) -> tuple[CatalogState, list[dict[str, Any]]]:
        return read_state(t), manifests(t, recent)

    state, epochs = store.catalog.read(body)
    end = store.base.end()
    committed = state.head.vector
    seconds = _lag_seconds(store, committed, end)
    behind = committed.behind(end)
    condition = store.foreign.condition() if store.foreign is not None else None
    tables = read_tables(store, state, condition) if condition is not None else ()
    views = tuple(
        replace(
            _view(store, state, v, behind, seconds, epochs), advice=advice_for(v, tables, state)
        )
        for v in sorted(state.definitions(), key=lambda v: v.name)
    )
    return Status(
        store.url,
        state.head.epoch,
        committed.operations,
        end.operations,
        _owner(store),
        with_algorithms(store, state, views),
        tuple(epochs),
        tables,
        None
        if condition is None
        else CaptureInfo(condition.capture, behind, seconds, condition.servers),
        sources=read_sources(store, state),
    )


def _owner(store: Store) -> str:
    alive = holder(store, time.time())
    return _process(alive.host, alive.pid) if alive else ""


def this_process() -> str:
    """What `Status.coordinator` says while this process is it."""
    return _process(socket.gethostname(), os.getpid())


def _process(host: str, pid: int) -> str:
    return f"{host} pid {pid}"


def _lag_seconds(store: Store, committed: Vector, end: Vector) -> float:
    """The age of the oldest operation that is not in the views."""
    oldest = []
    for stream in end:
        if end[stream] > committed[stream]:
            try:
                block = next(
                    store.base.read_log(
                        stream, committed[stream], store.base.cut(stream, committed[stream], 1)
                    ),
                    None,  # captured operations on rows that no table here has
                )
            except Stale:
                continue  # epochs have moved on and the log is trimmed: there is no lag to speak of
            if block is not None:
                oldest.append(block.time)
    return max(0.0, time.time() - min(oldest)) if oldest else 0.0


def _view(
    store: Store,
    state: CatalogState,
    view: ViewDefinition,
    behind: int,
    seconds: float,
    epochs: list[dict[str, Any]],
) -> ViewInfo:
    status = state.status[view.id]
    tables = [t for n in view.nodes for t in state_tables(n)]
    counts = [
        store.state.count(slot, table) for table in tables for slot in range(store.state.slots)
    ]
    touched = (
        sum(m["written"].get(str(view.planned.sink.table), 0) for m in epochs) if view.bound else 0
    )
    live = status.state == LIVE
    loading = progress(store, state, status, epochs)
    if not live:  # it lacks everything that was written before it is built
        behind, seconds = behind + loading.rows_left, max(seconds, time.time() - view.created)
    return ViewInfo(
        view.name,
        "in error" if state.in_error(view) else status.state,
        state.head.epoch if live else 0,
        behind,
        seconds,
        status.loaded,
        touched,
        sum(c for c, _ in counts),
        sum(b for _, b in counts),
        state.in_error(view),
        loading.total,
        loading.seconds_left,
        view.consistency,
        view.given,
    )


def prometheus(status: Status) -> str:
    """The status as Prometheus text."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()

    def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(f"belvedere_{name}", text, labels, registry=registry)

    gauge("committed_epoch", "last committed epoch").set(status.epoch)
    gauge("committed_operations", "operations that are in every live view").set(status.committed)
    gauge("written_operations", "operations in the change log").set(status.written)
    gauge("coordinator_alive", "1 if a coordinator holds the lease").set(
        1 if status.coordinator else 0
    )
    per_view = {
        "view_lag_operations": "operations written but not in the view",
        "view_lag_seconds": "age of the oldest operation that is not in the view",
        "view_loaded_rows": "rows loaded while the view is or was built",
        "view_total_rows": (
            "rows to be loaded while the view is built, about; 0 if not known or built"
        ),
        "view_touched_rows": "view records written by recent epochs",
        "view_state_records": "records of the view and its auxiliary views",
        "view_state_bytes": "bytes of the view and its auxiliary views",
        "view_errors": "rows that the view cannot evaluate",
    }
    for name, text in per_view.items():
        metric = gauge(name, text, ("view",))
        for view in status.views:
            metric.labels(view.name).set(getattr(view, name.removeprefix("view_")))
    _kept_views(status, gauge)
    live = gauge("view_live", "1 if the view is live and not in error", ("view",))
    for view in status.views:
        live.labels(view.name).set(1 if view.state == LIVE else 0)
    _foreign_tables(status, gauge)
    _sources(status, gauge)
    _last_epoch(status, gauge)
    return str(generate_latest(registry).decode())


def _kept_views(status: Status, gauge: Any) -> None:
    lags = [(view.name, lag) for view in status.views for lag in view.lags]
    if not lags:
        return
    per_source = {
        "lag_transactions": "transactions of a source received but not in the view",
        "lag_seconds": "age of the oldest transaction received but not in the view",
        "lag_bytes": "bytes of the source's log that are not read for the view",
        "kept_bytes": "bytes of its log that the source keeps for the view",
    }
    for name, text in per_source.items():
        metric = gauge(f"view_source_{name}", text, ("view", "source"))
        for view, lag in lags:
            metric.labels(view, lag.source).set(getattr(lag, name))


def _foreign_tables(status: Status, gauge: Any) -> None:
    if status.capture is None:
        return
    enabled = gauge("capture_enabled", "1 if changes of foreign tables are captured")
    enabled.set(1 if status.capture.state == "enabled" else 0)
    left_out = gauge("table_left_out_rows", "rows whose key is not as declared", ("table",))
    loads = gauge("table_unchecked_loads", "bulk loads since the last check", ("table",))
    faults = gauge(
        "table_wrong_cells", "rows in which a column is not as declared", ("table", "column")
    )
    for table in status.tables:
        left_out.labels(table.name).set(table.left_out)
        loads.labels(table.name).set(table.unchecked_loads)
        for fault in table.faults:
            faults.labels(table.name, fault.column).set(fault.rows)


def _sources(status: Status, gauge: Any) -> None:
    if not status.sources:
        return
    per_source = {
        "source_transactions": "transactions of the source that were followed",
        "source_lag_transactions": "transactions followed but not in the views",
        "source_lag_seconds": "age of the oldest transaction followed but not in the views",
        "source_lag_bytes": "bytes of the source's log that are not read",
        "source_kept_bytes": "bytes of its log that the source keeps for us",
    }
    for name, text in per_source.items():
        metric = gauge(name, text, ("source",))
        for source in status.sources:
            metric.labels(source.name).set(getattr(source, name.removeprefix("source_")))
    following = gauge("source_following", "1 if the source is followed", ("source",))
    stopped = gauge("source_stopped_relations", "relations that stay as they were", ("source",))
    for source in status.sources:
        following.labels(source.name).set(1 if source.state == "following" else 0)
        stopped.labels(source.name).set(sum(r.state == "stopped" for r in source.relations))


def _last_epoch(status: Status, gauge: Any) -> None:
    if not status.epochs:
        return
    last = status.epochs[-1]
    gauge("epoch_operations", "operations of the last epoch").set(last["operations"])
    gauge("epoch_changes", "changes of rows in the last epoch").set(last["changes"])
    gauge("epoch_seconds", "from intent to commit of the last epoch").set(
        last["committed"] - last["started"]
    )
    stages = gauge(
        "epoch_stage_seconds",
        "time of a stage of the last epoch, over all view managers",
        ("stage",),
    )
    for stage, seconds in last["seconds"].items():
        stages.labels(stage).set(seconds)
