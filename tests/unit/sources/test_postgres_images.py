"""Messages of pgoutput as net changes, beside a plain reference that takes them one by one."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from belvedere.sources.base import Relation
from belvedere.sources.postgres.columns import Wire
from belvedere.sources.postgres.images import Wired, net_changes
from belvedere.types import INT, STRING, Column, Schema

COLUMNS = (Column("a", INT, False), Column("b", STRING, False), Column("c", STRING))
RELATION = Relation("r", Schema(COLUMNS, ("a", "b")))
WIRED = Wired(RELATION, (Wire("int4"), Wire("text"), Wire("text")))
Values = tuple[int, str, str | None]
UNCHANGED = object()


def encode(values: tuple[Any, ...]) -> bytes:
    fields = []
    for value in values:
        if value is None:
            fields.append(b"n")
        elif value is UNCHANGED:
            fields.append(b"u")
        else:
            text = str(value).encode()
            fields.append(b"t" + struct.pack(">I", len(text)) + text)
    return struct.pack(">H", len(values)) + b"".join(fields)


def message(old: Values | None, new: tuple[Any, ...] | None) -> bytes:
    kind = b"I" if old is None else b"U" if new is not None else b"D"
    before = b"" if old is None else b"O" + encode(old)
    after = b"" if new is None else b"N" + encode(new)
    return bytes(25) + kind + struct.pack(">I", 5) + before + after


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[Values | None, Values | None, bool]]]:
    """Transactions of changes that are possible one after the other."""
    table: dict[tuple[int, str], Values] = {}
    keys = st.tuples(st.integers(0, 2), st.sampled_from(["", "x", "ä"]))
    texts = st.sampled_from([None, "", "c", "long" * 100])
    transactions = []
    for _ in range(draw(st.integers(1, 4))):
        changes: list[tuple[Values | None, Values | None, bool]] = []
        for _ in range(draw(st.integers(0, 8))):
            key = draw(keys)
            old = table.pop(key, None)
            new: Values | None = (*draw(keys), draw(texts))
            if old is not None and draw(st.booleans()):
                new = None
            elif new is not None and new[:2] in table:
                new = (*key, new[2])
            if new is not None:
                table[new[:2]] = new
            if old is not None or new is not None:
                changes.append((old, new, draw(st.booleans())))
        transactions.append(changes)
    return transactions


def sent(old: Values | None, new: Values | None, short: bool) -> bytes:
    """Values that did not change may be left out, if they are large."""
    if short and old is not None and new is not None and old[2] == new[2] is not None:
        return message(old, (*new[:2], UNCHANGED))
    return message(old, new)


@given(histories())
def test_changes_are_net_per_key(
    history: list[list[tuple[Values | None, Values | None, bool]]],
) -> None:
    parts = [[sent(*change) for change in changes] for changes in history]
    if not any(parts):
        return
    table: dict[tuple[int, str], Values] = {}
    for changes, found in zip(history, net_changes(WIRED, parts), strict=True):
        touched = {row[:2] for change in changes for row in change[:2] if row is not None}
        before = {key: table[key] for key in touched if key in table}
        for old, new, _ in changes:
            if old is not None:
                del table[old[:2]]
            if new is not None:
                table[new[:2]] = new
        after = {key: table[key] for key in touched if key in table}
        shown = ([], []) if found is None else (found.before.to_pylist(), found.after.to_pylist())
        assert sorted(map(key_of, shown[0])) == sorted(before)
        assert sorted(map(key_of, shown[1])) == sorted(after)
        assert {key_of(r): r["c"] for r in shown[0]} == {k: v[2] for k, v in before.items()}
        assert {key_of(r): r["c"] for r in shown[1]} == {k: v[2] for k, v in after.items()}


def key_of(row: dict[str, Any]) -> tuple[int, str]:
    return row["a"], row["b"]
