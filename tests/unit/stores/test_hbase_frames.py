"""Frames of captured changes as Java writes them, and the order in which discovery takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from belvedere.errors import Damaged, StoreError
from belvedere.stores.hbase.frames import Head, Kind, decode, frames_in, read_head
from belvedere.stores.hbase.log_index import Progress, State
from belvedere.stores.hbase.segments import Plan, Seen, SegmentFiles, View, look

ROOT = Path(__file__).parents[3]
# Java's FrameTest encodes what this file says, and compares the bytes.
VECTOR: dict[str, Any] = json.loads(
    (ROOT / "java/server/src/test/resources/frame.json").read_text(encoding="utf-8")
)
BYTES = bytes.fromhex(VECTOR["bytes"])
TYPES = {"Put": 4, "Delete": 8, "DeleteColumn": 12, "DeleteFamily": 14}


def test_a_frame_that_java_has_encoded_has_its_content() -> None:
    head = read_head(memoryview(BYTES), "the vector")
    assert head is not None
    assert (head.kind.name, head.queue) == (VECTOR["kind"], VECTOR["queue"])
    assert head.size == len(BYTES)
    edits = VECTOR["edits"]
    assert (head.first_time, head.last_time) == (edits[0]["time"], edits[-1]["time"])
    spans = [(r.table, r.name, r.lowest, r.highest, r.is_loaded) for r in head.regions]
    assert spans == [("shop:orders", "1f5b", 41, 42, False), ("stock", "77aa", 3, 6, True)]
    assert head.marks == tuple((m["row"].encode(), m["number"]) for m in VECTOR["marks"])
    assert head.after == tuple((f["file"], f["length"]) for f in VECTOR["after"])


def test_its_operations_and_cells_are_those_that_were_written() -> None:
    (frame,) = frames_in(memoryview(BYTES), "the vector")
    assert frame.head.operations == VECTOR["operations"]
    assert frame.rows.to_pylist() == [row.encode() for row in VECTOR["rows"]]
    assert frame.operations.tolist() == VECTOR["operation_of_cell"]
    assert frame.sequences.tolist() == [41, 41, 3, 42]
    assert frame.edits.tolist() == [0, 0, 1, 2]
    assert frame.regions.tolist() == [0, 0, 1, 0]
    cells = [cell for edit in VECTOR["edits"] for cell in edit["cells"]]
    families, qualifiers = frame.families.to_pylist(), frame.qualifiers.to_pylist()
    found = zip(
        [families[number] for number in frame.columns],
        [qualifiers[number] for number in frame.columns],
        frame.types.tolist(),
        frame.timestamps.tolist(),
        frame.values.to_pylist(),
        strict=True,
    )
    assert list(found) == [
        (
            cell["family"].encode(),
            cell["qualifier"].encode(),
            TYPES[cell["type"]],
            cell["timestamp"],
            cell["value"].encode(),
        )
        for cell in cells
    ]


@pytest.mark.parametrize("place", [0, 40, 100, 12, 210, len(BYTES) - 20])
def test_a_changed_byte_is_damage(place: int) -> None:
    changed = bytearray(BYTES)
    changed[place] ^= 1
    with pytest.raises(Damaged):
        list(frames_in(memoryview(changed), "the vector"))


def test_a_frame_of_another_version_says_so() -> None:
    changed = bytearray(BYTES)
    changed[4] = 9
    with pytest.raises(StoreError, match="version 9"):
        read_head(memoryview(changed), "the vector")


def test_a_body_that_is_cut_off_is_damage() -> None:
    head = read_head(memoryview(BYTES), "the vector")
    assert head is not None
    with pytest.raises(Damaged):
        decode(head, memoryview(BYTES)[head.head_size : -1], "the vector")


@pytest.mark.parametrize("length", [0, 10, 72, 150, 300, len(BYTES) - 1])
def test_a_frame_that_is_not_all_there_is_not_there_yet(tmp_path: Path, length: int) -> None:
    (tmp_path / "one.frames").write_bytes(BYTES + BYTES[:length])
    view = look(SegmentFiles(str(tmp_path)), State())
    assert [seen.begin for seen in view.frames["one.frames"]] == [0]


def test_a_last_frame_that_was_not_synced_is_not_there(tmp_path: Path) -> None:
    torn = BYTES[:-200] + bytes(200)
    (tmp_path / "one.frames").write_bytes(BYTES + torn)
    (tmp_path / "two.frames").write_bytes(BYTES + bytes(500))
    view = look(SegmentFiles(str(tmp_path)), State())
    assert {name: len(found) for name, found in view.frames.items()} == {
        "one.frames": 1,
        "two.frames": 1,
    }


def test_damage_before_other_frames_is_found_when_it_is_looked_at(tmp_path: Path) -> None:
    changed = bytearray(BYTES)
    changed[100] ^= 1
    (tmp_path / "one.frames").write_bytes(bytes(changed) + BYTES)
    with pytest.raises(Damaged):
        look(SegmentFiles(str(tmp_path)), State())


# ---------------------------------------------------------------- order


def seen(begin: int, *after: tuple[str, int], operations: int = 1) -> Seen:
    """A frame of 100 bytes."""
    head = Head(Kind.WAL, 72, 28, 0, operations, 1, 1, 0, 0, "queue", (), (), after)
    return Seen(begin, head)


def order(frames: dict[str, list[Seen]], state: State | None = None) -> list[tuple[str, int, int]]:
    lengths = {name: found[-1].stop if found else 0 for name, found in frames.items()}
    plan = Plan(state or State(), View(lengths, frames, lambda: lengths))
    plan.run()
    return [(entry.file, entry.begin, entry.stop) for entry in plan.entries]


def test_a_frame_follows_what_other_files_had() -> None:
    frames = {"a": [seen(0, ("b", 200))], "b": [seen(0), seen(100), seen(200)]}
    assert order(frames) == [("b", 0, 300), ("a", 0, 100)]


def test_a_region_that_comes_back_is_behind_what_it_did_elsewhere() -> None:
    frames = {"a": [seen(0), seen(100, ("b", 100))], "b": [seen(0, ("a", 100))]}
    assert order(frames) == [("a", 0, 100), ("b", 0, 100), ("a", 100, 200)]


def test_a_frame_waits_for_a_file_that_the_listing_has_seen_shorter() -> None:
    frames = {"a": [seen(0), seen(100, ("b", 200))], "b": [seen(0)]}
    assert order(frames) == [("a", 0, 100), ("b", 0, 100)]


def test_a_length_inside_a_frame_means_the_frames_before_it() -> None:
    frames = {"a": [seen(0, ("b", 150))], "b": [seen(0), seen(100, ("a", 100))]}
    assert order(frames) == [("b", 0, 100), ("a", 0, 100), ("b", 100, 200)]


def test_a_file_that_is_gone_was_read_and_one_that_is_younger_is_waited_for() -> None:
    frames = {"a": [seen(0, ("gone", 700))]}
    assert order(frames) == [("a", 0, 100)]
    assert order(frames, State(files={"gone": Progress(700, True)})) == [("a", 0, 100)]
    plan = Plan(State(), View({"a": 100}, frames, lambda: {"a": 100, "gone": 700}))
    assert not plan.run()


def test_entries_have_several_small_frames_and_positions_go_on() -> None:
    frames = {"a": [seen(100 * n, operations=3000) for n in range(5)]}
    plan = Plan(State(end=50), View({"a": 500}, frames, dict))
    plan.run()
    assert [(e.position, e.operations) for e in plan.entries] == [
        (50, 6000),
        (6050, 6000),
        (12050, 3000),
    ]
