"""Records of one slot as of an epoch: batches, lazy scans, many prefixes at once.

Every read has the time range up to its epoch, so it is the same before, during and after what later
epochs write (rule H1). Nothing stays open between pages.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.errors import TableGone
from belvedere.libraries import np, npt, pa
from belvedere.stores.base import Slot, TableId
from belvedere.stores.hbase import columns
from belvedere.stores.hbase.client import Page, Records, packed_keys
from belvedere.stores.hbase.forms import Form
from belvedere.stores.hbase.tables import Registry
from belvedere.types import Epoch

Batch = tuple[pa.BinaryArray, pa.BinaryArray]
Numbered = tuple["npt.NDArray[np.int64]", pa.BinaryArray, pa.BinaryArray]

_FIRST_PAGE, _PAGE = 64, 50_000  # rows; who seeks takes one, who scans takes all
_PREFIXES = 2_000  # in one call: the filter with them goes to the region server
_NO_LIMIT = 2**31 - 1


class Reading:
    """One slot as of `epoch`."""

    def __init__(self, registry: Registry, slot: Slot, epoch: Epoch) -> None:
        self._registry, self._slot, self._until = registry, slot, epoch + 1

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        found = self._find(table)
        if found is None or len(keys) == 0:
            return pa.nulls(len(keys), pa.binary())
        records, form = found
        try:
            return form.values(records.get(self._slot, keys, self._until))
        except TableGone as gone:
            self._check_dropped(table, gone)
            return pa.nulls(len(keys), pa.binary())

    def records(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """One by one; the first page is small."""
        for keys, values in self._pages(table, low, high, _FIRST_PAGE, _PAGE, reverse):
            yield from zip(keys.to_pylist(), values.to_pylist(), strict=True)

    def batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int
    ) -> Iterator[Batch]:
        rows = min(batch, _PAGE)
        return self._pages(table, low, high, rows, rows, reverse=False)

    def _pages(
        self, table: TableId, low: bytes, high: bytes | None, rows: int, most: int, reverse: bool
    ) -> Iterator[Batch]:
        found = self._find(table)
        if found is None or (high is not None and high <= low):
            return
        records, form = found
        after = False
        while True:
            page = self._page(table, records, low, high, rows, reverse, after)
            keys, *cells = page.columns
            if len(keys):
                yield keys, form.values(cells)
            if page.last is None:
                return
            if reverse:
                high = page.last
            else:
                low, after = page.last, True
            rows = min(4 * rows, most)

    def _page(
        self,
        table: TableId,
        records: Records,
        low: bytes,
        high: bytes | None,
        rows: int,
        reverse: bool,
        after: bool,
    ) -> Page:
        try:
            return records.scan(self._slot, low, high, self._until, rows, reverse, after)
        except TableGone as gone:
            self._check_dropped(table, gone)
            return _nothing(records)

    def prefixes(
        self, table: TableId, prefixes: pa.BinaryArray, limit: int | None, batch: int
    ) -> Iterator[Numbered]:
        found = self._find(table)
        if found is None or limit == 0:
            return
        records, form = found
        for start in range(0, len(prefixes), _PREFIXES):
            some = packed_keys(prefixes.slice(start, _PREFIXES))
            for page in self._prefix_pages(table, records, some, limit or _NO_LIMIT, batch):
                numbers, keys, *cells = page.columns
                if len(keys):
                    yield columns.numbers(numbers) + start, keys, form.values(cells)

    def _prefix_pages(
        self, table: TableId, records: Records, prefixes: object, limit: int, batch: int
    ) -> Iterator[Page]:
        rows = min(batch, _PAGE)
        page: Page | None = None
        while page is None or page.last is not None:
            try:
                page = records.prefixes(self._slot, prefixes, page, limit, rows, self._until)
            except TableGone as gone:
                self._check_dropped(table, gone)
                return
            yield page

    def _find(self, table: TableId) -> tuple[Records, Form] | None:
        place = self._registry.find(table)
        if place is None or place.is_dropped:
            return None
        return self._registry.records(place), place.form

    def _check_dropped(self, table: TableId, gone: TableGone) -> None:
        """A table that is gone was dropped, else something is wrong."""
        self._registry.refresh()
        place = self._registry.find(table)
        if place is None or not place.is_dropped:
            raise gone


def _nothing(records: Records) -> Page:
    empty = pa.array([], pa.binary())
    return Page([empty] * (1 + records.width), None, 0, 0)
