"""What a transaction has read is compared with what was appended while it waited for the lock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from belvedere.errors import RowConflict
from belvedere.stores.base import Expected, Operations
from belvedere.stores.embedded.expected import ExpectedRows
from belvedere.stores.embedded.store import EmbeddedStore

TABLE, OTHER = 7, 8


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with EmbeddedStore.open(tmp_path / "store", slots=2) as opened:
        yield opened


def write(store: EmbeddedStore, table: int, rows: dict[bytes, bytes | None]) -> None:
    keys, values = pa.array(rows, pa.binary()), pa.array(list(rows.values()), pa.binary())
    store.base.write(table, keys, values, True)


def after_the_look(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Do something between the comparison with a snapshot and the lock."""
    original = ExpectedRows.check

    def check(self: ExpectedRows, snapshot: Any) -> None:
        original(self, snapshot)
        monkeypatch.setattr(ExpectedRows, "check", original)
        action()

    monkeypatch.setattr(ExpectedRows, "check", check)


def transact(store: EmbeddedStore) -> None:
    some = Operations(TABLE, pa.array([b"a"], pa.binary()), pa.array([b"3"], pa.binary()), True)
    store.base.write_all([some], expected=[Expected(OTHER, b"o", b"x")])


def test_a_row_that_changes_before_the_lock_is_a_conflict(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, OTHER, {b"o": b"x"})
    after_the_look(monkeypatch, lambda: write(store, OTHER, {b"n": b"0", b"o": b"y"}))
    with pytest.raises(RowConflict) as found:
        transact(store)
    assert (found.value.table, found.value.key) == (OTHER, b"o")
    with store.base.snapshot() as snapshot:
        assert snapshot.get(TABLE, b"a") is None


def test_other_rows_that_change_before_the_lock_are_none(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, OTHER, {b"o": b"x"})

    def others() -> None:
        write(store, OTHER, {b"n": b"0"})
        write(store, TABLE, {b"o": b"y"})
        write(store, OTHER, {b"o": b"y"})
        write(store, OTHER, {b"o": b"x"})

    after_the_look(monkeypatch, others)
    transact(store)
    with store.base.snapshot() as snapshot:
        assert snapshot.get(TABLE, b"a") == b"3"


def test_what_is_trimmed_before_the_lock_is_looked_up_again(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, OTHER, {b"o": b"x"})

    def others() -> None:
        write(store, OTHER, {b"o": b"y"})
        store.base.trim("log", store.base.end()["log"])

    after_the_look(monkeypatch, others)
    with pytest.raises(RowConflict):
        transact(store)
