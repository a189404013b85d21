"""Events of the log, put together to transactions.

The log is a sequence of groups: each begins with a GTID and ends with a commit, a rollback, or the
preparation of an XA transaction; a group of one statement has no end of its own. Nothing is said
before its group has ended, so that whoever reads again from the end of a group misses nothing and
sees nothing twice.

What ended before `done` was followed by somebody before: it is read again only for the rows of XA
transactions that were prepared there and end later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from belvedere.errors import SourceError, SourceLost, SourceUnreachable
from belvedere.sources.base import Event, Part, Relation, RelationChange, SourceTransaction, Stopped
from belvedere.sources.mariadb.images import Images, Wire, check_dates, images, net
from belvedere.sources.mariadb.places import LogPosition, Place
from belvedere.sources.mariadb.statements import affected

PARTS = "belvedere_transactions"  # the table by which applications name global transactions
_STANDALONE = 1  # flag of a group that is one statement
_INCIDENT, _FIRST_UNKNOWN = 26, 165
_ROWS = {"WriteRowsEvent": "insert", "UpdateRowsEvent": "update", "DeleteRowsEvent": "delete"}
_DATES = {"date", "datetime"}


@dataclass(slots=True)
class _Group:
    """A transaction that has begun: `begin` is before it, `troubles` are relations whose rows in it
    cannot be held.
    """

    gtid: str
    begin: Place
    standalone: bool
    parts: list[Images] = field(default_factory=list)
    troubles: dict[str, str] = field(default_factory=dict)
    part: Part | None = None
    savepoints: dict[str, tuple[int, Part | None]] = field(default_factory=dict)
    xa: str = ""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How rows of a table come, as the log describes it before them."""

    relation: Relation
    wires: tuple[Wire, ...]
    has_dates: bool


class Groups:
    """Takes events one by one and says what they mean, in `taken`."""

    def __init__(
        self,
        database: str,
        relations: Sequence[Relation],
        position: LogPosition,
        columns: Callable[[int], list[Any]],
        wires: Callable[[list[Any]], tuple[Wire, ...]],
    ) -> None:
        self._database = database
        self._relations = {relation.name: relation for relation in relations}
        self._start, self._done, self._gtids = position, position.done, position.gtids
        self._end = position.start
        self._before = position  # where the group that is open begins
        self._columns, self._wires = columns, wires
        self._layouts: dict[int, _Layout | None] = {}
        self._group: _Group | None = None
        self._prepared: dict[str, _Group] = {}
        self._taken: list[Event] = []
        self.images = 0  # of rows that wait in `taken`
        self._handlers: dict[str, Callable[[Any, Place], None]] = {
            "MariadbGtidEvent": self._begin,
            "TableMapEvent": self._describe,
            "WriteRowsEvent": self._rows,
            "UpdateRowsEvent": self._rows,
            "DeleteRowsEvent": self._rows,
            "QueryEvent": self._query,
            "XidEvent": self._commit,
            "XAPrepareEvent": self._prepare,
            "RotateEvent": self._rotate,
            "NotImplementedEvent": self._unknown,
        }

    def take(self) -> list[Event]:
        found, self._taken, self.images = self._taken, [], 0
        return found

    @property
    def has_taken(self) -> bool:
        return bool(self._taken)

    @property
    def is_open(self) -> bool:
        return self._group is not None

    @property
    def position(self) -> LogPosition:
        """Behind the last group. While the log is read again, what is prepared is not known."""
        if self._end < self._done:
            return self._start
        read = min((group.begin for group in self._prepared.values()), default=self._end)
        return LogPosition(self._end, self._gtids, read)

    def event(self, event: Any, place: Place) -> None:
        """`place` is behind the event, if it is outside of groups or ends one."""
        handler = self._handlers.get(type(event).__name__)
        if handler is not None:
            handler(event, place)
        if self._group is None:
            self._end = place

    # ------------------------------------------------------------ groups

    def _begin(self, event: Any, place: Place) -> None:
        if self._group is not None:
            raise SourceUnreachable("the log began a transaction inside of another: read it again")
        standalone = bool(event.flags & _STANDALONE)
        self._before = self.position
        self._group = _Group(event.gtid, self._end, standalone)

    def _ended(self, place: Place) -> _Group | None:
        group, self._group = self._group, None
        if group is not None:
            if place < group.begin:
                raise SourceError(
                    f"the log file {place.file} is larger than 4 GiB, where its places begin anew:"
                    " use a smaller max_binlog_size and transactions of less than 2 GiB"
                )
            if place > self._done:
                self._gtids = group.gtid
        self._end = place
        return group

    def _commit(self, event: Any, place: Place) -> None:
        group = self._ended(place)
        if group is not None:
            self._committed(group, group.gtid, place, event.timestamp)

    def _committed(self, group: _Group, gtid: str, place: Place, time: int) -> None:
        if place <= self._done:
            return
        changes = [
            change for part in self._by_relation(group) if (change := self._net(group, part))
        ]
        for name, why in group.troubles.items():
            self._stop(name, self._before, why)
        if changes or group.part is not None:
            self.images += sum(len(change.before) + len(change.after) for change in changes)
            self._taken.append(
                SourceTransaction(
                    f"{gtid}@{place}", str(self.position), float(time), tuple(changes), group.part
                )
            )

    def _by_relation(self, group: _Group) -> list[list[Images]]:
        found: dict[str, list[Images]] = {}
        for part in group.parts:
            found.setdefault(part.relation.name, []).append(part)
        return [
            parts
            for name, parts in found.items()
            if name in self._relations and name not in group.troubles
        ]

    def _net(self, group: _Group, parts: list[Images]) -> RelationChange | None:
        try:
            change = net(parts)
        except SourceError as error:
            group.troubles[parts[0].relation.name] = str(error)
            return None
        return change if len(change.before) or len(change.after) else None

    def _stop(self, name: str, position: LogPosition, why: str) -> None:
        """Positions are before the transaction that cannot be held: its other relations follow."""
        if self._relations.pop(name, None) is not None:
            self._taken.append(Stopped(name, str(position), why))
            self._layouts.clear()

    # ------------------------------------------------------------ rows

    def _describe(self, event: Any, place: Place) -> None:
        group = self._group
        if group is None or event.schema != self._database:
            return
        columns = self._columns(event.table_id)
        wires = self._wires(columns)
        relation = self._relations.get(event.table)
        self._layouts[event.table_id] = None
        if relation is None:
            return
        names = tuple(column.name for column in columns)
        if names != relation.schema.names:
            group.troubles[relation.name] = _other_columns(relation, names)
            return
        has_dates = any(wire.kind in _DATES for wire in wires)
        self._layouts[event.table_id] = _Layout(relation, wires, has_dates)

    def _rows(self, event: Any, place: Place) -> None:
        group = self._group
        if group is None:
            raise SourceUnreachable("the log has rows outside of transactions: read it again")
        if event.table == PARTS:
            self._named(event)
        layout = self._layouts.get(event.table_id)
        if layout is None or layout.relation.name in group.troubles:
            return
        name, kind = layout.relation.name, _ROWS[type(event).__name__]
        try:
            _check_image(event, kind)
            rows = event.rows
            if layout.has_dates:
                check_dates(rows, kind)
        except (SourceError, ValueError, LookupError, NotImplementedError) as error:
            group.troubles[name] = f"a row of {name} cannot be held: {error}"
            return
        group.parts.append(images(layout.relation, layout.wires, rows, kind))

    def _named(self, event: Any) -> None:
        """A transaction that says of which global one it is a part."""
        if self._group is None or type(event).__name__ != "WriteRowsEvent":
            return
        for row in event.rows:
            values = row["values"]
            if values.get("gid") is None or values.get("sources") is None:
                raise SourceError(
                    f"a row of {PARTS} does not name a transaction: the table needs the columns gid"
                    " and sources, texts that are not NULL"
                )
            sources = tuple(name.strip() for name in str(values["sources"]).split(","))
            self._group.part = Part(str(values["gid"]), sources)

    # ------------------------------------------------------------ statements

    def _query(self, event: Any, place: Place) -> None:
        group = self._group
        if group is None:
            return
        text = event.query
        words = text.split(None, 2)
        verb = words[0].upper() if words else ""
        if verb == "XA":
            self._xa(group, words, event, place)
        elif verb == "COMMIT":
            self._commit(event, place)
        elif verb == "SAVEPOINT":
            group.savepoints[text[len("SAVEPOINT ") :]] = (len(group.parts), group.part)
        elif verb == "ROLLBACK":
            self._rollback(group, text, place)
        elif verb not in ("BEGIN", "START"):
            self._statement(group, event, place)

    def _rollback(self, group: _Group, text: str, place: Place) -> None:
        """All of it, or to a savepoint, which the log says where it cannot leave out the rows."""
        _, to, savepoint = text.partition(" TO ")
        if not to:
            self._ended(place)
        elif savepoint in group.savepoints:
            count, group.part = group.savepoints[savepoint]
            del group.parts[count:]
        else:
            raise SourceError(f"the log goes back to a savepoint {savepoint} that it has not named")

    def _statement(self, group: _Group, event: Any, place: Place) -> None:
        default = event.schema.decode()
        found = affected(event.query, default, self._database, list(self._relations))
        is_new = group.begin >= self._done
        position = self._before
        if group.standalone:
            self._ended(place)
            position = self.position
        for name in found if is_new else ():
            self._stop(name, position, _statement_reason(name, event.query))

    # ------------------------------------------------------------ XA

    def _xa(self, group: _Group, words: list[str], event: Any, place: Place) -> None:
        action = words[1].upper()
        if action == "END":
            group.xa = words[2]
        elif action in ("COMMIT", "ROLLBACK"):
            self._ended(place)
            prepared = self._prepared.pop(words[2].removesuffix(" ONE PHASE"), None)
            if prepared is None and action == "COMMIT" and place > self._done:
                raise SourceLost(
                    f"the rows of the XA transaction {words[2]} are in the log before the position"
                    " from which it is followed: load the source's relations again"
                )
            if prepared is not None and action == "COMMIT":
                self._committed(prepared, group.gtid, place, event.timestamp)

    def _prepare(self, event: Any, place: Place) -> None:
        group = self._ended(place)
        if group is not None:
            self._prepared[group.xa] = group

    # ------------------------------------------------------------ the rest

    def _rotate(self, event: Any, place: Place) -> None:
        self._layouts.clear()
        if self._group is not None:
            raise SourceUnreachable("the connection was lost inside of a transaction")

    def _unknown(self, event: Any, place: Place) -> None:
        if event.event_type == _INCIDENT:
            raise SourceLost(
                "the server has written to its log that changes are missing there (an incident):"
                " load the source's relations again"
            )
        if event.event_type >= _FIRST_UNKNOWN:
            raise SourceError(
                f"the log has an event of type {event.event_type}, which cannot be read: set"
                " log_bin_compress = OFF, and load the source's relations again"
            )


def _check_image(event: Any, kind: str) -> None:
    """Whole rows only: a session may have set binlog_row_image for itself."""
    bitmaps = [event.columns_present_bitmap]
    if kind == "update":
        bitmaps.append(event.columns_present_bitmap2)
    whole = (1 << event.number_of_columns) - 1
    for bitmap in bitmaps:
        if int.from_bytes(bitmap, "little") & whole != whole:
            raise SourceError(
                "it was logged without all columns: a session has set binlog_row_image to something"
                " else than FULL"
            )


def _other_columns(relation: Relation, names: tuple[str | None, ...]) -> str:
    if None in names:
        return (
            f"rows of {relation.name} were logged without names of columns: set"
            " binlog_row_metadata = FULL, and load it again"
        )
    return (
        f"{relation.name} has other columns now ({', '.join(map(str, names))}): load it again with"
        " them"
    )


def _statement_reason(name: str, text: str) -> str:
    short = text if len(text) <= 200 else f"{text[:200]} ..."
    return f"a statement may have changed rows or columns of {name}: {short}. Load it again"
