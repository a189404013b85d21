"""Sources: a first copy, a backlog, what following costs the server, freshness; on a PostgreSQL and
a MariaDB that are started on this machine, so they share its cores with us and with who writes.

first copy   rows/s of a table until views may use it, beside COPY or SELECT of the same rows by a
             bare client
backlog      transactions of ten changed rows wait in the server's log until all of them are in
             ours, beside a bare client that reads the same log
load         a writer's rate into a table that another process follows, and into one that is not
             followed while nobody follows anything, in turns
freshness    from a commit until a view shows it, beside a put into a table of ours, in turns

No epoch runs meanwhile, but for freshness.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from belvedere.bench.results import Results
from belvedere.bench.scenarios.database import emptied
from belvedere.bench.scenarios.freshness import p50_ms
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.scenarios.source_follower import following, new_follower
from belvedere.bench.scenarios.source_servers import SOURCE, Users, servers
from belvedere.bench.source_results import (
    SourceCapture,
    SourceCopy,
    SourceFreshness,
    SourceLoad,
    SourceResults,
)
from belvedere.capture.arrival import uncopied
from belvedere.errors import Timeout
from belvedere.waiting import wait_until

_OF_A_TRANSACTION = 10  # rows
_SELECT = "SELECT grp, count(*) AS n, sum(val) AS total FROM {} GROUP BY grp"
_OWN = "own"


def run(settings: Settings) -> Results:
    with emptied(settings.work / "sources"), servers(settings.work / "sources") as made:
        parts = [_of_server(settings, users) for users in made]
    return Results(sources=(_together(parts),))


def _together(parts: list[SourceResults]) -> SourceResults:
    return SourceResults(
        copies=tuple(found for part in parts for found in part.copies),
        captures=tuple(found for part in parts for found in part.captures),
        loads=tuple(found for part in parts for found in part.loads),
        freshness=tuple(found for part in parts for found in part.freshness),
    )


def _of_server(settings: Settings, users: Users) -> SourceResults:
    for table in ("r", "plain"):
        users.create(table, settings.source_rows)
    path = settings.work / "sources" / "db"
    with _opened(path, users) as db:
        db.sql(f"ALTER SOURCE {SOURCE} COPY r")
        copied = _copy(settings, users, db)
        captured = _capture(settings, users, db)
        loads = _load(settings, users, path)
        fresh = _freshness(settings, users, db)
    return SourceResults((copied,), (captured,), (loads,), (fresh,))


@contextmanager
def _opened(path: Path, users: Users) -> Iterator[Any]:
    """A database of its own with the server as its source."""
    shutil.rmtree(path, ignore_errors=True)
    db: Any = import_module("belvedere").open(str(path))
    address = users.address
    db.sql(
        f"CREATE SOURCE {SOURCE} TYPE {address.type} OPTIONS (host = '{address.host}', port ="
        f" '{address.port}', database = '{address.database}', user = '{address.user}',"
        f" password_file = '{address.password_file}')"
    )
    try:
        yield db
    finally:
        db.close()


def _seconds(call: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - began


# ---------------------------------------------------------------- copy and backlog


def _copy(settings: Settings, users: Users, db: Any) -> SourceCopy:
    """Before anything is written, so that what the copy shows has no log behind it."""
    bare = _seconds(users.read_table, "r")
    seconds = _seconds(_follow_until, db, lambda: not uncopied(db.state(), SOURCE))
    return SourceCopy(users.kind, settings.source_rows, seconds, bare, _agrees(users, db))


def _capture(settings: Settings, users: Users, db: Any) -> SourceCapture:
    users.mark()
    transactions = settings.source_ops // _OF_A_TRANSACTION
    for number in range(transactions):
        users.run(_update("r", number, settings.source_rows))
    changes = transactions * _OF_A_TRANSACTION
    bare = _seconds(users.read_log, changes)
    users.forget()
    seconds = _seconds(_follow_to_end, db)
    return SourceCapture(users.kind, changes, seconds, bare, _agrees(users, db))


def _update(table: str, number: int, rows: int) -> str:
    """Ten rows that lie together, each time others."""
    low = number * _OF_A_TRANSACTION % (rows - _OF_A_TRANSACTION + 1) + 1
    high = low + _OF_A_TRANSACTION - 1
    return f"UPDATE {table} SET val = val + 1 WHERE id BETWEEN {low} AND {high}"


def _follow_until(db: Any, is_over: Callable[[], bool]) -> None:
    follower = new_follower(db)
    while not is_over():
        follower.step(1.0)
    follower.close()


def _follow_to_end(db: Any) -> None:
    """Until everything that was committed before is in our log."""
    follower, source = new_follower(db), db.connections.of(db.state().source(SOURCE))
    end = source.position()
    while not source.covers(follower.reached, end):
        follower.step(1.0)
    follower.close()


def _agrees(users: Users, db: Any) -> bool:
    """Whether our rows are those of the server, as far as two sums tell."""
    db.catch_up()  # a relation is read when an epoch has seen its copy
    query = f"SELECT count(*) AS n, sum(r.val) AS total FROM {SOURCE}.r"
    (found,) = db.sql(query).to_pylist()
    return (found["n"], found["total"]) == users.totals("r")


# ---------------------------------------------------------------- load


def _load(settings: Settings, users: Users, path: Path) -> SourceLoad:
    """The first round warms up."""
    followed, alone = [], []
    for number in range(settings.source_rounds + 1):
        with following(path):
            followed.append(_rate(settings, users, "r", number))
        alone.append(_rate(settings, users, "plain", number))
    with_us, without = (statistics.median(found[1:]) for found in (followed, alone))
    return SourceLoad(users.kind, settings.source_rounds, with_us, without)


def _rate(settings: Settings, users: Users, table: str, number: int) -> float:
    """Transactions per second."""
    count = settings.source_commits

    def write() -> None:
        for each in range(count):
            users.run(_update(table, number * count + each, settings.source_rows))

    return count / _seconds(write)


# ---------------------------------------------------------------- freshness


def _freshness(settings: Settings, users: Users, db: Any) -> SourceFreshness:
    """Groups that were not there are looked for; the first probes warm up."""
    db.sql(f"CREATE TABLE {_OWN} (id BIGINT, grp INT, val BIGINT, PRIMARY KEY (id))")
    for view, table in (("theirs", f"{SOURCE}.r"), ("ours", _OWN)):
        db.sql(f"CREATE MATERIALIZED VIEW {view} AS {_SELECT.format(table)}")
    db.catch_up()
    source, own = [], []
    handle = db.start()
    try:
        for number in range(2 * settings.probes):
            group = 1_000 + number
            row = settings.source_rows + 1 + number
            statement = f"INSERT INTO r VALUES ({row}, {group}, 1)"
            source.append(
                _until_shown(settings, db, "theirs", group, partial(users.run, statement))
            )
            put = partial(db.table(_OWN).put, {"id": row, "grp": group, "val": 1})
            own.append(_until_shown(settings, db, "ours", group, put))
    finally:
        handle.stop()
    correct = _agrees(users, db) and _view_agrees(users, db)
    theirs, ours = (p50_ms(found[settings.probes :]) for found in (source, own))
    return SourceFreshness(users.kind, settings.probes, theirs, ours, correct)


def _until_shown(
    settings: Settings, db: Any, view: str, group: int, write: Callable[[], object]
) -> float:
    """From the moment when the write was acknowledged."""
    found = db.view(view)
    write()
    began = time.perf_counter()
    if wait_until(lambda: found.get(group), settings.timeout) is None:
        raise Timeout(f"group {group} is not in {view}: see belvedere status")
    return time.perf_counter() - began


def _view_agrees(users: Users, db: Any) -> bool:
    found = users.rows(_SELECT.format("r"))
    expected = sorted((int(group), int(count), int(total)) for group, count, total in found)
    rows = db.view("theirs").to_arrow().to_pylist()
    return sorted((row["grp"], row["n"], row["total"]) for row in rows) == expected


if __name__ == "__main__":
    main(run)
