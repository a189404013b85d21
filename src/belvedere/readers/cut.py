"""Reading one committed cut (rule R6).

    1. the committed epoch and the definitions, in one reading of the catalog
    2. all slots as of that epoch; a slot whose history no longer reaches it says Stale: start again
    3. the views are still there; else what was read may have been half removed

All views of a cut show the same positions of all streams, also while epochs commit. Long reads hold
a pin.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from belvedere.catalog.definitions import LIVE, TableDefinition, ViewDefinition
from belvedere.catalog.head import epoch_and_version
from belvedere.catalog.history import AsOf, gone, oldest_readable
from belvedere.catalog.layout import HEAD
from belvedere.catalog.pins import pinned
from belvedere.catalog.state import CatalogState, read_state
from belvedere.encoding import prefix_range, slot_of
from belvedere.encoding.ranges import Ranges
from belvedere.errors import (
    CatalogError,
    Damaged,
    HistoryGone,
    Stale,
    ViewInError,
    ViewNotReady,
)
from belvedere.libraries import pa, pc
from belvedere.readers.ranges import LARGEST, Place, by_slot, read_ranges
from belvedere.readers.rows import ViewRows, in_view
from belvedere.stores.base import Store
from belvedere.types import Epoch, Vector

T = TypeVar("T")
Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"  # keys and values
# the mark of what was read, the committed epoch, definitions as new as it
Known = tuple[Hashable, Epoch, CatalogState]
_TRIES = 100


class CatalogCache:
    """The catalog as this process last read it, while its mark tells that it is still current."""

    def __init__(self, store: Store) -> None:
        self._catalog = store.catalog
        self._known: Known | None = None  # replaced as a whole: several threads may read

    def current(self) -> Known:
        known = self._known
        if known is None or known[0] != self._catalog.mark():
            known = self._known = self._read(known)
        return known

    def _read(self, known: Known | None) -> Known:
        """Most transactions change no definition: then the epoch is all that is new."""
        mark, head = self._catalog.read_marked(lambda t: t.get(HEAD.key))
        if head is not None and known is not None:
            epoch, version = epoch_and_version(head)
            if version == known[2].head.version:
                return mark, epoch, known[2]
        mark, state = self._catalog.read_marked(read_state)
        return mark, state.head.epoch, state

    def state(self) -> CatalogState:
        return self.current()[2]


@dataclass(frozen=True, slots=True)
class Cut:
    """What one reader sees: an epoch, and what names stood for at that epoch."""

    store: Store
    epoch: Epoch
    vector: Vector
    state: CatalogState

    def scan(
        self,
        view: ViewDefinition,
        low: bytes = b"",
        high: bytes | None = None,
        limit: int | None = None,
        slots: Iterable[int] | None = None,
    ) -> Iterator[Batch]:
        """Records of a view, slot after slot, in key order within a slot; of each slot all, or the
        first `limit`.
        """
        for slot in range(self.store.state.slots) if slots is None else slots:
            reader = self.store.state.reader(slot, self.epoch)
            try:
                if limit is None:
                    yield from reader.scan(view.planned.sink.table, low, high)
                else:
                    yield from _first(
                        reader.scan(view.planned.sink.table, low, high, max(1, limit)), limit
                    )
            except Damaged as error:
                raise in_view(view.name, error) from error
            finally:
                reader.close()

    def rows(
        self,
        view: ViewDefinition,
        prefix: Sequence[Any] = (),
        ordered: bool = False,
        limit: int | None = None,
    ) -> pa.Table:
        """All rows of a view whose key begins with the values of `prefix`; with a limit at least
        the first so many of each slot.
        """
        shape = ViewRows.of(view)
        batches = list(self._under(view, shape, prefix, limit))
        if not batches:
            return shape.schema.arrow.empty_table()
        if ordered and len(batches) > 1:
            keys, values = (pa.concat_arrays([b[i] for b in batches]) for i in (0, 1))
            order = pc.sort_indices(keys)
            batches = [(keys.take(order), values.take(order))]
        return pa.concat_tables([shape.decode(k, v) for k, v in batches])

    def batches(self, view: ViewDefinition, prefix: Sequence[Any] = ()) -> Iterator[pa.Table]:
        """The same rows in parts, in no particular order."""
        shape = ViewRows.of(view)
        for keys, values in self._under(view, shape, prefix, None):
            yield from shape.decode_parts(keys, values)

    def read(
        self,
        view: ViewDefinition,
        ranges: Ranges,
        size: int = LARGEST,
        slots: Container[int] | None = None,
    ) -> Iterator[pa.Table]:
        """Rows whose keys are in the ranges, in no particular order, in parts as they are asked
        for; of some slots only, if they are named.
        """
        shape, columns = ViewRows.of(view), len(view.schema.key)
        for slot, some in by_slot(ranges, shape.owner_columns, self.store.state.slots):
            if slots is not None and slot not in slots:
                continue
            reader = self.store.state.reader(slot, self.epoch)
            try:
                place = Place.of_state(reader, view.planned.sink.table)
                for keys, values in read_ranges(some, columns, place, size):
                    yield from shape.decode_parts(keys, values)
            except Damaged as error:
                raise in_view(view.name, error) from error
            finally:
                reader.close()

    def _under(
        self, view: ViewDefinition, shape: ViewRows, prefix: Sequence[Any], limit: int | None
    ) -> Iterator[Batch]:
        """Records whose key begins with the values of `prefix`, as SQL compares them."""
        for spelled in shape.spellings(prefix):
            low, high = prefix_range(shape.prefix(spelled)) if spelled else (b"", None)
            owner = shape.owner(spelled) if spelled else None
            slots = None if owner is None else [slot_of(owner, self.store.state.slots)]
            yield from self.scan(view, low, high, limit, slots)


def _first(batches: Iterator[Batch], limit: int) -> Iterator[Batch]:
    """Batches until there are at least `limit` records."""
    for batch in batches:
        yield batch
        limit -= len(batch[0])
        if limit <= 0:
            return


@contextmanager
def open_cut(store: Store, as_of: AsOf | None = None) -> Iterator[Cut]:
    """A cut that stays readable until the end of the block, however many epochs are committed
    meanwhile: the committed one, or one of the past.
    """
    with pinned(store, as_of) as held, _too_old(store, held.pin.epoch, as_of):
        yield Cut(store, held.pin.epoch, held.pin.vector, held.state)


@contextmanager
def _too_old(store: Store, epoch: Epoch, as_of: AsOf | None) -> Iterator[None]:
    """Who asks for an epoch is told that it is not kept; nobody tries again."""
    try:
        yield
    except Stale as error:
        if as_of is None:
            raise
        raise gone(epoch, store.catalog.read(oldest_readable)) from error


def in_cut(store: Store, read: Callable[[Cut], T], as_of: AsOf | None = None) -> T:
    """What `read` returns for one cut, which is held meanwhile; where nothing can be held, `read`
    may be called again.
    """
    if as_of is not None:
        with open_cut(store, as_of) as cut:
            return read(cut)
    if store.read_only:
        return at_cut(store, read)
    with open_cut(store) as cut:
        return read(cut)


def at_cut(store: Store, read: Callable[[Cut], T], tries: int = _TRIES) -> T:
    """What `read` returns for one cut; started again when history or definitions moved away under
    it, and with a cut that is held after so many tries.
    """
    for _ in range(tries):
        state = store.catalog.read(read_state)
        try:
            result = read(Cut(store, state.head.epoch, state.head.vector, state))
        except Stale:
            continue
        if _still_there(state, store.catalog.read(read_state)):
            return result
    with open_cut(store) as cut:
        return read(cut)


def _still_there(before: CatalogState, after: CatalogState) -> bool:
    """No view that could be read before has been dropped since."""
    return before.head.version == after.head.version or {v.id for v in before.views.values()} <= {
        v.id for v in after.views.values()
    }


def check_existed(state: CatalogState, table: TableDefinition) -> None:
    """Raise if the table was made after the epoch that is read."""
    if table.created > state.head.epoch:
        raise HistoryGone(
            f"table {table.name} was created after epoch {state.head.epoch}, at epoch"
            f" {table.created}: read it as of a later one",
            table.created,
        )


def check_readable(
    state: CatalogState,
    view: ViewDefinition,
    errors: Callable[[ViewDefinition], list[dict[str, object]]],
) -> None:
    """Raise if the view is not live yet, or in error."""
    status = state.status.get(view.id)
    if status is None:
        raise CatalogError(f"view {view.name} was dropped")
    if status.state != LIVE:
        what = (
            "has not been started"
            if status.state == "requested"
            else f"is being built ({status.loaded} rows so far)"
        )
        raise ViewNotReady(
            f"view {view.name} {what}: run catch_up(), or start() a pipeline and wait"
        )
    if status.live_since > state.head.epoch:
        raise HistoryGone(
            f"view {view.name} can be read since epoch {status.live_since}, not as of epoch"
            f" {state.head.epoch}: it was created, replaced or built again in between",
            status.live_since,
        )
    if state.in_error(view):
        raise ViewInError(view.name, errors(view), state.in_error(view))
