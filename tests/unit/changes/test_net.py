"""Net changes: per touched row what was before the first and after the last operation."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from belvedere.changes.net import net, net_operations, net_reference
from belvedere.stores.base import LogBlock

Operation = tuple[bytes, bytes | None]

operations = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", b"", b"a\x00", b"c"]), st.sampled_from([None, b"", b"x", b"y"])
    ),
    max_size=30,
)


def with_before(found: list[Operation]) -> list[bytes | None]:
    """The before-image of each operation, starting from a table with two rows."""
    rows: dict[bytes, bytes] = {b"a": b"old", b"c": b"x"}
    images = []
    for key, value in found:
        images.append(rows.get(key))
        rows.pop(key, None)
        if value is not None:
            rows[key] = value
    return images


def binary(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary())


def blocks(found: list[Operation], cuts: set[int], before_images: bool) -> list[LogBlock]:
    images = with_before(found)
    edges = [0, *sorted(c for c in cuts if 0 < c < len(found)), len(found)]
    made = []
    for low, high in pairwise(edges):
        keys, values = ([o[i] for o in found[low:high]] for i in (0, 1))
        made.append(
            LogBlock(
                "log",
                low,
                1,
                0.0,
                binary(keys),
                binary(values),
                binary(images[low:high]) if before_images else None,
            )
        )
    return made


@given(operations, st.sets(st.integers(1, 29)))
def test_net_changes_are_those_of_the_plain_reference(
    found: list[Operation], cuts: set[int]
) -> None:
    result = net(blocks(found, cuts, before_images=True))
    assert result.before is not None
    pairs = zip(result.before.to_pylist(), result.after.to_pylist(), strict=True)
    expected = net_reference([k for k, _ in found], [v for _, v in found], with_before(found))
    assert list(zip(result.keys.to_pylist(), pairs, strict=True)) == list(expected.items())


@given(operations, st.sets(st.integers(1, 29)))
def test_without_before_images_the_rows_after_are_the_same(
    found: list[Operation], cuts: set[int]
) -> None:
    bare, full = (
        net(blocks(found, cuts, before_images=False)),
        net(blocks(found, cuts, before_images=True)),
    )
    assert bare.before is None
    assert bare.keys.equals(full.keys)
    assert bare.after.equals(full.after)


def test_one_block_without_before_images_leaves_all_of_them_out() -> None:
    mixed = [
        *blocks([(b"a", b"1")], set(), before_images=True),
        *blocks([(b"b", b"2")], set(), before_images=False),
    ]
    assert net(mixed).before is None


def test_a_row_that_came_and_went_has_nothing_before_and_after() -> None:
    result = net_operations(binary([b"k", b"k"]), binary([b"v", None]), binary([None, b"v"]))
    assert (result.before.to_pylist(), result.after.to_pylist()) == ([None], [None])  # type: ignore[union-attr]  # images were given


def test_no_blocks_are_no_changes() -> None:
    assert len(net([])) == 0
