"""Arrange keeps the rows that its changes add up to, under their key and in order, and passes on
what really changed.
"""

from __future__ import annotations

import math
import random
import struct
from functools import cmp_to_key, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from belvedere.encoding import KeyCodec
from belvedere.operators.arrange import Arrange
from belvedere.operators.base import ID, KEY, WEIGHT, columns
from belvedere.operators.rows import Gone
from belvedere.stores.base import Write
from belvedere.stores.memory import MemoryStore
from belvedere.types import BIGINT, DOUBLE, INT, STRING, SqlType

Row = tuple[Any, ...]
Change = tuple[Row, int, bytes]

_VALUES: dict[str, list[Any]] = {
    "string": [None, "", "a", "a\0", "a\0\0b", "ab", "\xff", "é"],
    "int": [None, -1, 0, 1],
    "bigint": [None, -(2**63), 7],
    "double": [None, -math.inf, -1.5, 0.0, -0.0, math.nan],
}
# codes of other operators among them
_IDS = [b"\x00", b"\x00\x01a\x00", b"\x01a\x00", b"\x01a\x00\xfe", b"\x01b\x00", b"\xfe\x01a\x00"]


def table_of(types: tuple[SqlType, ...], rows: list[Change]) -> pa.Table:
    data = [pa.array([row[i] for row, _, _ in rows], kind.arrow) for i, kind in enumerate(types)]
    meta = [
        pa.array([w for _, w, _ in rows], pa.int64()),
        pa.array([i for _, _, i in rows], pa.binary()),
    ]
    return pa.table([*data, *meta], names=[*columns(len(types)), WEIGHT, ID])


class _Checking:
    """A shard that holds writes to the contract: keys are sorted and unique."""

    def __init__(self, shard: Any) -> None:
        self._shard = shard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shard, name)

    def write(self, write: Write) -> None:
        keys = write.keys.to_pylist()
        assert keys == sorted(set(keys))
        self._shard.write(write)


class OneSlot:
    """An arrangement in a store with one slot."""

    def __init__(self, arrange: Arrange) -> None:
        self.arrange, self.store, self.epoch = arrange, MemoryStore(slots=1), 0

    def step(self, *batches: list[Change]) -> list[pa.Table]:
        self.epoch += 1
        shard = self.store.state.shard(0, self.epoch)
        parts = [
            part
            for rows in batches
            for part in self.arrange.prepare(0, table_of(self.arrange.types, rows))
        ]
        emitted = list(self.arrange.step(_Checking(shard), [parts]))
        shard.commit()
        return emitted

    def output(self, low: bytes = b"", high: bytes | None = None) -> list[tuple[bytes, bytes, str]]:
        shard = self.store.state.shard(0, self.epoch + 1)
        return [row for table in self.arrange.output(shard, low, high) for row in listed(table, 1)]


def bits(row: Row) -> str:
    """Exact: -0.0 is not 0.0, and NaN is itself."""
    return repr([struct.pack("<d", v) if isinstance(v, float) else v for v in row])


def listed(table: pa.Table, weight: int) -> list[tuple[bytes, bytes, str]]:
    """State key, identity and row of the changes of a weight."""
    data = [column.to_pylist() for column in table.drop_columns([WEIGHT, ID, KEY]).columns]
    rows = [bits(tuple(column[i] for column in data)) for i in range(table.num_rows)]
    meta = zip(
        table.column(KEY).to_pylist(),
        table.column(ID).to_pylist(),
        rows,
        table.column(WEIGHT).to_pylist(),
        strict=True,
    )
    return [(key, ident, row) for key, ident, row, w in meta if w == weight]


def random_arrange(rng: random.Random) -> Arrange:
    kinds = [INT, BIGINT, STRING, DOUBLE]
    key, order, rest = (
        tuple(rng.choice(kinds) for _ in range(rng.randint(0, 2))) for _ in range(3)
    )
    unique = rng.random() < 0.25
    descending = () if unique else tuple(rng.random() < 0.5 for _ in order)
    return Arrange(1, (*key, *order, *rest), len(key), descending, unique)


def normal(arrange: Arrange, row: Row) -> Row:
    """The row as it is emitted: its key columns as a key says them."""
    return (
        *KeyCodec(arrange.types[: arrange.key]).decode_one(key_of(arrange, row)),
        *row[arrange.key :],
    )


def key_of(arrange: Arrange, row: Row) -> bytes:
    return arrange.keys.encode_one(row[: arrange.key])


def compare(arrange: Arrange, one: tuple[bytes, Row], other: tuple[bytes, Row]) -> int:
    """The plain order: by key, then ascending with NULL first, descending with NULL last, then by
    identity.
    """
    sort_keys: list[tuple[Any, Any, bool]] = [
        (key_of(arrange, one[1]), key_of(arrange, other[1]), False)
    ]
    for i, descending in enumerate(arrange.order, arrange.key):
        codec = KeyCodec((arrange.types[i],))
        sort_keys.append(
            (codec.encode_one([one[1][i]]), codec.encode_one([other[1][i]]), descending)
        )
    for a, b, descending in [*sort_keys, (one[0], other[0], False)]:
        if a != b:
            return -1 if (a < b) != descending else 1
    return 0


def random_step(
    rng: random.Random, arrange: Arrange, rows: dict[bytes, Row]
) -> tuple[list[Change], dict[bytes, Row]]:
    new = dict(rows)
    for ident in rng.sample(_IDS, rng.randint(1, 4)):
        new.pop(ident, None)
        if rng.random() < 0.75:
            row = tuple(rng.choice(_VALUES[kind.name]) for kind in arrange.types)
            if ident in rows and rng.random() < 0.4:
                row = (*rows[ident][: arrange.key], *row[arrange.key :])
            if arrange.unique:
                new = {i: r for i, r in new.items() if key_of(arrange, r) != key_of(arrange, row)}
            new[ident] = row
    changes: list[Change] = []
    for ident in {**rows, **new}:
        old, after = rows.get(ident), new.get(ident)
        if (old is None or after is None or bits(old) != bits(after)) or rng.random() < 0.3:
            changes += [(old, -1, ident)] if old is not None else []
            changes += [(after, +1, ident)] if after is not None else []
    rng.shuffle(changes)
    return changes, new


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_and_emitted_is_what_the_changes_add_up_to(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr("belvedere.operators.arrange.BATCH", 2 if seed % 2 else 100_000)
    for _ in range(25):
        arrange = random_arrange(rng)
        slot, rows = OneSlot(arrange), dict[bytes, Row]()
        for _ in range(4):
            changes, new = random_step(rng, arrange, rows)
            half = rng.randint(0, len(changes))
            emitted = slot.step(changes[:half], changes[half:])
            old, after = (
                {i: (key_of(arrange, r), i, bits(normal(arrange, r))) for i, r in rs.items()}
                for rs in (rows, new)
            )
            assert [r for t in emitted for r in listed(t, -1)] == sorted(
                old[i] for i in old if old[i] != after.get(i)
            )
            assert [r for t in emitted for r in listed(t, 1)] == sorted(
                after[i] for i in after if after[i] != old.get(i)
            )
            rows = new
            in_order = sorted(rows.items(), key=cmp_to_key(partial(compare, arrange)))
            expected = [after[i] for i, _ in in_order]
            assert slot.output() == expected
            for key, _, _ in expected:
                for bound in (key, key + b"\x00", key[:-1]):
                    assert slot.output(b"", bound) == [r for r in expected if r[0] < bound]
                    assert slot.output(bound) == [r for r in expected if r[0] >= bound]


def test_a_pair_that_changes_nothing_is_neither_written_nor_passed_on() -> None:
    slot = OneSlot(Arrange(1, (STRING, DOUBLE), 1))
    slot.step([(("x", 0.0), 1, b"\x01"), (("y", 1.0), 1, b"\x02")])
    assert slot.step([(("x", 0.0), -1, b"\x01"), (("x", 0.0), 1, b"\x01")]) == []
    emitted = slot.step([(("x", 0.0), -1, b"\x01"), (("x", -0.0), 1, b"\x01")])  # other bits
    assert emitted[0].column(WEIGHT).to_pylist() == [-1, 1]
    assert slot.step([]) == []


def test_in_unique_mode_a_key_goes_from_one_identity_to_another_in_one_epoch() -> None:
    slot = OneSlot(Arrange(1, (STRING, INT), 1, unique=True))
    slot.step([(("x", 1), 1, b"\x02")])
    slot.step([(("x", 5), 1, b"\x01"), (("x", 1), -1, b"\x02")])
    assert [(ident, row) for _, ident, row in slot.output()] == [(b"\x01", "['x', 5]")]
    assert slot.store.state.count(0, 1)[0] == 1


def test_rows_and_presence_are_read_without_what_is_gone() -> None:
    arrange = Arrange(1, (STRING, INT), 1)
    slot = OneSlot(arrange)
    slot.step(
        [
            ((k, i), 1, b"%d" % i)
            for k in ("a", "b", "c")
            for i in range({"a": 1, "b": 3, "c": 2}[k])
        ]
    )
    shard = slot.store.state.shard(0, 2)
    keys = arrange.keys.encode([pa.array(["a", "b", "c", "d"])])
    gone_rows = arrange.prepare(
        0,
        table_of(arrange.types, [(("a", 0), -1, b"0"), (("b", 1), -1, b"1"), (("b", 0), -1, b"0")]),
    )[0]
    gone = Gone(np.array([0, 1, 1]), arrange.record_key(gone_rows), np.array([1, 2, 0, 0]))
    wanted = np.array([0, 1, 3])
    found = [
        (rows.place.tolist(), rows.rest[0].to_pylist(), rows.ids.to_pylist())
        for rows in arrange.rows(shard, keys, wanted, gone)
    ]
    assert found == [([1], [2], [b"2"])]
    assert arrange.present(shard, keys, wanted, gone).tolist() == [False, True, False, False]
    assert arrange.present(shard, keys, wanted).tolist() == [True, True, False, False]
    assert list(arrange.rows(shard, keys, np.empty(0, np.int64))) == []
