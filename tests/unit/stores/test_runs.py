"""Runs beside a plain dictionary: whatever was written, in however many runs and sections."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.encoding.slots import slot_hash, slot_hash_one
from belvedere.errors import Damaged
from belvedere.stores.embedded import merging, run_files, run_lists, runs, sections
from belvedere.stores.embedded.prefixes import scan_prefixes
from belvedere.stores.embedded.run_files import RunFiles, RunWriter
from belvedere.stores.embedded.runs import Ref, Run, RunRef

# keys that begin alike, are the beginning of one another, and are longer than a word
pieces = st.sampled_from([b"", b"\0", b"a", b"ab", b"\xff", b"abcdefgh", b"abcdefgh\0", b"k" * 600])
keys = st.builds(lambda parts: b"".join(parts), st.lists(pieces, min_size=1, max_size=3))
changes = st.dictionaries(keys, st.none() | st.binary(max_size=3), max_size=12)
histories = st.lists(changes, min_size=1, max_size=5)  # the newest last


def binary(items: object) -> pa.BinaryArray:
    return pa.array(list(items), pa.binary())  # type: ignore[call-overload]


def written(
    folder: Path, history: list[dict[bytes, bytes | None]], monkeypatch: pytest.MonkeyPatch
) -> tuple[RunFiles, list[RunRef]]:
    """One run for each step, the newest first, in sections of at most three records."""
    monkeypatch.setattr(run_files, "SECTION_ROWS", 3)
    files = RunFiles(str(folder))
    found: list[RunRef] = []
    for number, step in enumerate(history):
        writer = RunWriter(files, number)
        ordered = sorted(step)
        run = writer.add(1, [(binary(ordered), binary(step[key] for key in ordered))])
        writer.finish()
        writer.done()
        if run:
            found.insert(0, run)
    return files, found


def state(history: list[dict[bytes, bytes | None]]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes | None] = {}
    for step in history:
        found |= step
    return {key: value for key, value in sorted(found.items()) if value is not None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as context:
        yield context


def flat(batches: Iterator[runs.Batch], most: int) -> list[tuple[bytes, bytes]]:
    found = []
    for some, values in batches:
        assert 0 < len(some) <= most
        found += list(zip(some.to_pylist(), values.to_pylist(), strict=True))
    return found


@given(histories, st.lists(keys, max_size=8), st.integers(1, 7))
@settings(deadline=None)
def test_reads_are_those_of_a_dictionary(
    folder: Path,
    patch: pytest.MonkeyPatch,
    history: list[dict[bytes, bytes | None]],
    asked: list[bytes],
    batch: int,
) -> None:
    files, refs = written(folder, history, patch)
    found, expected = files.open_runs(refs), state(history)
    asked = asked + [key for step in history for key in step]
    assert runs.get_many(found, binary(asked)).to_pylist() == [expected.get(k) for k in asked]
    many = asked * 65  # in another way if there are many
    assert runs.get_many(found, binary(many)).to_pylist() == [expected.get(k) for k in many]
    assert [runs.get_one(found, key) for key in asked] == [expected.get(k) for k in asked]
    assert flat(runs.scan(found, b"", None, batch), batch) == list(expected.items())
    for low, high in zip([b"", *asked], [*asked, None], strict=True):
        inside = [
            item for item in expected.items() if low <= item[0] and (high is None or item[0] < high)
        ]
        assert flat(runs.scan(found, low, high, batch), batch) == inside
        assert list(runs.records(found, low, high, False)) == inside
        assert list(runs.records(found, low, high, True)) == inside[::-1]


@given(histories, st.lists(pieces, max_size=6), st.none() | st.integers(0, 3), st.integers(1, 5))
@settings(deadline=None)
def test_records_under_prefixes_are_those_of_a_dictionary(
    folder: Path,
    patch: pytest.MonkeyPatch,
    history: list[dict[bytes, bytes | None]],
    wanted: list[bytes],
    limit: int | None,
    batch: int,
) -> None:
    files, refs = written(folder, history, patch)
    found, expected = files.open_runs(refs), state(history)
    prefixes: list[bytes] = []
    for prefix in sorted(set(wanted)):  # none covers what another does
        if not prefixes or not prefixes[-1] + b"\xff" > prefix:
            prefixes.append(prefix)
    given_out = []
    for numbers, some, values in scan_prefixes(found, binary(prefixes), limit, batch):
        assert 0 < len(numbers) <= batch
        given_out += list(zip(numbers.tolist(), some.to_pylist(), values.to_pylist(), strict=True))
    under = [
        [(n, key, value) for key, value in expected.items() if p <= key < p + b"\xff"][:limit]
        for n, p in enumerate(prefixes)
    ]
    assert given_out == [record for each in under for record in each]


@given(histories, st.data())
@settings(deadline=None)
def test_merging_changes_nothing(
    folder: Path,
    patch: pytest.MonkeyPatch,
    history: list[dict[bytes, bytes | None]],
    data: st.DataObject,
) -> None:
    files, refs = written(folder, history, patch)
    first = data.draw(st.integers(0, len(refs)))
    last = data.draw(st.integers(first, len(refs)))
    writer = RunWriter(files, 9)
    opened = files.open_runs(refs[first:last])
    run = writer.add(1, merging.merged(opened, drop_deleted=last == len(refs)))
    writer.finish()
    merged = [*refs[:first], *([run] if run else []), *refs[last:]]
    found = files.open_runs(merged)
    assert flat(runs.scan(found, b"", None, 4), 4) == list(state(history).items())
    if last == len(refs) and first == 0:
        assert sum(ref.rows for ref in run) == len(state(history))


@given(histories, st.sampled_from([(1_000, 1 << 20), (2, 1 << 20), (1_000, 0)]))
@settings(deadline=None)
def test_new_records_are_merged_with_older_runs_in_one_batch_or_in_many(
    folder: Path,
    patch: pytest.MonkeyPatch,
    history: list[dict[bytes, bytes | None]],
    most: tuple[int, int],
) -> None:
    patch.setattr(merging, "_BATCH", most[0])
    patch.setattr(merging, "_BATCH_BYTES", most[1])
    *older, newest = history
    files, refs = written(folder, older, patch)
    new = sorted(newest)
    batches = list(
        merging.with_older(
            binary(new), binary(newest[key] for key in new), files.open_runs(refs), True
        )
    )
    found = runs.joined(batches)
    pairs = zip(found[0].to_pylist(), found[1].to_pylist(), strict=True)
    assert list(pairs) == list(state(history).items())


@given(st.lists(keys, min_size=1, max_size=20, unique=True))
@settings(deadline=None)
def test_a_run_list_keeps_no_more_of_a_key_than_tells_sections_apart(
    folder: Path, patch: pytest.MonkeyPatch, some: list[bytes]
) -> None:
    _, (refs,) = written(folder, [dict.fromkeys(some, b"v")], patch)
    ordered, row = sorted(some), 0
    assert refs[0].first == b""
    for ref in refs[1:]:
        row += 3
        before, first = ordered[row - 1 : row + 1]
        assert before < ref.first <= first
        assert not before < ref.first[:-1], "one byte less would have done"


@given(keys, keys)
def test_what_two_keys_begin_with_is_as_long_as_it_can_be(one: bytes, other: bytes) -> None:
    size = sections.common_length(one, other)
    assert one[:size] == other[:size]
    assert one == other or one[size : size + 1] != other[size : size + 1]


def test_hashes_of_one_slot_are_found_in_few_steps() -> None:
    """Keys of a slot have the last bits of their hash in common."""
    chosen = [key for i in range(80_000) if slot_hash_one(key := b"%d" % i) % 8 == 3]
    places = sections._hash_places(slot_hash(binary(chosen)))
    at = sections._place(slot_hash(binary(chosen)), len(places))
    rows = {int(entry & sections._ROW_MASK): place for place, entry in enumerate(places) if entry}
    steps = [(rows[row + 1] - int(at[row])) % len(places) for row in range(len(chosen))]
    assert sum(steps) / len(steps) < 1


# ---------------------------------------------------------------- run_lists and policy


@given(st.lists(st.lists(st.builds(Ref, st.text(max_size=9), st.integers(0, 2**40),
    st.integers(0, 2**40), st.integers(0, 2**31), st.binary(max_size=9)), max_size=3), max_size=4))  # fmt: skip
def test_a_run_list_is_read_as_it_was_written(written_runs: list[list[Ref]]) -> None:
    refs = tuple(tuple(run) for run in written_runs)
    encoded = run_lists.encode(refs)
    assert run_lists.decode(encoded, "x") == refs
    if encoded:
        with pytest.raises(Damaged, match="list of runs of x cannot be read"):
            run_lists.decode(encoded[:1], "x")


def run_of(rows: int) -> RunRef:
    return (Ref("f", 0, 0, rows, b""),)


@given(st.lists(st.sampled_from([1_000, 50_000, 2_000_000]), max_size=100))
def test_an_epoch_rewrites_no_large_run_while_merging_is_behind(sizes: list[int]) -> None:
    """Nobody merges beside it. Only one that would make far too many runs rewrites a large one."""
    table: list[RunRef] = []
    for rows in sizes:
        taken = merging.joins(rows, table)
        whole = rows + sum(map(merging.rows_of, table[:taken]))
        assert taken == 0 or whole <= merging.INLINE_ROWS or len(table) == merging.MOST_EVER
        table[:taken] = [run_of(whole)]
        assert len(table) <= merging.MOST_EVER


@given(st.lists(st.integers(1, 5_000_000), max_size=300))
def test_runs_stay_few_and_records_are_not_written_often(sizes: list[int]) -> None:
    """Every epoch writes; what is due is merged meanwhile."""
    table: list[RunRef] = []
    written_rows = 0
    for rows in sizes:
        taken = merging.joins(rows, table)
        whole = rows + sum(map(merging.rows_of, table[:taken]))
        table[:taken] = [run_of(whole)]
        written_rows += whole
        assert len(table) <= merging.MOST_EVER
        while chosen := merging.due(table):
            whole = sum(map(merging.rows_of, table[chosen.start : chosen.stop]))
            table[chosen.start : chosen.stop] = [run_of(whole)]
            written_rows += whole
        assert len(table) <= 16
    assert written_rows <= 25 * max(sum(sizes), 1)


# ---------------------------------------------------------------- damage

_PADDING = range(sections._HEAD.size + sections._CHECK.size, sections.HEAD_SIZE)


def test_a_flipped_byte_is_an_error_or_nobody_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "SECTION_ROWS", 1000)
    content = {b"key %03d" % i: None if i % 7 == 0 else b"value %d" % i for i in range(200)}
    writer = RunWriter(RunFiles(str(tmp_path)), 1)
    refs = writer.add(1, [(binary(content), binary(content.values()))])
    writer.finish()
    (path,) = tmp_path.glob("*.run")
    good = path.read_bytes()
    dice = random.Random(1)
    errors = 0
    for at in [*range(60), *(dice.randrange(len(good)) for _ in range(200))]:
        flipped = bytearray(good)
        flipped[at] ^= 1 << dice.randrange(8)
        path.write_bytes(flipped)
        found = RunFiles(str(tmp_path)).open_runs([refs])
        if at in _PADDING:
            assert runs.get_many(found, binary(content)).to_pylist() == list(content.values())
            continue
        with pytest.raises(Damaged, match=path.name):
            runs.get_many(found, binary(content))
        errors += 1
    assert errors > 240


@pytest.mark.parametrize("left", [0, 1, 39, 40, 100, -1])
def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path, left: int) -> None:
    writer = RunWriter(RunFiles(str(tmp_path)), 1)
    refs = writer.add(1, [(binary([b"k"]), binary([b"v" * 50]))])
    writer.finish()
    (path,) = tmp_path.glob("*.run")
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(Damaged, match=path.name):
        runs.get_one(RunFiles(str(tmp_path)).open_runs([refs]), b"k")


def test_a_run_opens_only_the_sections_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[dict[bytes, bytes | None]] = [{b"%02d" % i: b"v" for i in range(30)}]
    files, (refs,) = written(tmp_path, steps, monkeypatch)
    opened: list[Ref] = []

    def count(ref: Ref) -> sections.Section:
        opened.append(ref)
        return files._map(ref.file).section(ref)

    run = Run(refs, count)
    assert len(refs) == 10
    assert runs.get_one([run], b"14") == b"v"
    assert runs.get_many([run], binary([b"00", b"01", b"14"])).to_pylist() == [b"v"] * 3
    assert opened == [refs[4], refs[0]]


def test_a_forked_child_reads_also_if_a_thread_was_opening_a_file(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path))
    writer = RunWriter(files, 1)
    refs = writer.add(1, [(binary([b"k"]), binary([b"v"]))])
    writer.finish()
    with files._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if runs.get_one(files.open_runs([refs]), b"k") == b"v" else 1)
    assert os.waitpid(child, 0)[1] == 0
