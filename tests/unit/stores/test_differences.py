"""What differs between two epochs is told rightly however runs were merged, and as long as the
epochs are kept.
"""

from __future__ import annotations

import tempfile
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.stores.base import Write
from belvedere.stores.base.differences import scan_differences
from belvedere.stores.embedded import EmbeddedStore, merging

TABLE = 7
Content = dict[bytes, bytes]
# keys that an epoch writes (None deletes), and whether runs are merged after it, and collected
EPOCHS = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 12), st.sampled_from([None, b"x", b"y", b"z"]), max_size=6),
        st.booleans(),
        st.booleans(),
    ),
    min_size=2,
    max_size=10,
)


def binary(values: list[bytes | None] | list[bytes]) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


@settings(max_examples=60, deadline=None)
@given(EPOCHS, st.integers(0, 3), st.sampled_from([0, 8, 1 << 17]))
def test_merging_loses_no_epoch_that_is_kept(
    epochs: list[tuple[dict[int, bytes | None], bool, bool]], behind: int, inline: int
) -> None:
    """A consumer that is `behind` holds the floor; everything from there on can be told."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(merging, "INLINE_ROWS", inline),
        patch("belvedere.stores.embedded.state.Merging.go_on"),
        EmbeddedStore.open(folder, slots=1) as store,
    ):
        contents: list[Content] = [{}]
        floor = 0
        for epoch, (changes, is_merged, is_collected) in enumerate(epochs, 1):
            contents.append(_write(store, epoch, changes, contents[-1]))
            if is_merged:
                _merge_all(store)
            if is_collected:
                floor = max(floor, epoch - behind)
                store.state.collect(floor)
            for low in range(max(floor, 0), epoch):
                _check(store, contents, low, epoch)
                _check(store, contents, low, low + 1)


def _write(
    store: EmbeddedStore, epoch: int, changes: dict[int, bytes | None], before: Content
) -> Content:
    written = {b"%02d" % key: value for key, value in sorted(changes.items())}
    shard = store.state.shard(0, epoch)
    old = binary([before.get(key) for key in written])
    shard.write(Write(TABLE, binary(list(written)), binary(list(written.values())), old))
    shard.commit()
    return {key: value for key, value in (before | written).items() if value is not None}


def _merge_all(store: EmbeddedStore) -> None:
    place = store.state._slot(0)  # type: ignore[attr-defined]
    while (wanted := place.environment.read(merging.next_merge)) is not None:
        assert merging.do(place.environment, place.files, wanted, lambda: False)


def _check(store: EmbeddedStore, contents: list[Content], low: int, high: int) -> None:
    old, new = contents[low], contents[high]
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    expected = [(key, old.get(key), new.get(key)) for key in keys]
    found = [
        triple
        for batch in store.state.differences(0, TABLE, low, high)
        for triple in zip(*(column.to_pylist() for column in batch), strict=True)
    ]
    assert found == expected


CONTENT = st.dictionaries(st.binary(min_size=1, max_size=2), st.binary(max_size=1), max_size=20)


@given(CONTENT, CONTENT, st.integers(1, 5), st.integers(1, 5))
def test_two_scans_side_by_side_find_what_differs(
    old: Content, new: Content, first: int, second: int
) -> None:
    def scan(content: Content, size: int) -> list[tuple[pa.BinaryArray, pa.BinaryArray]]:
        records = sorted(content.items())
        parts = [records[start : start + size] for start in range(0, len(records), size)]
        return [(binary([k for k, _ in p]), binary([v for _, v in p])) for p in parts]

    found = [
        triple
        for batch in scan_differences(iter(scan(old, first)), iter(scan(new, second)))
        for triple in zip(*(column.to_pylist() for column in batch), strict=True)
    ]
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    assert found == [(key, old.get(key), new.get(key)) for key in keys]
