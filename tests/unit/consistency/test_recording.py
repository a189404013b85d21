"""Histories that a pipeline writes: without gaps, without duplicates, judged as strong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import belvedere
from belvedere.consistency import check, judge, read_history
from belvedere.consistency.recorder import Recorder
from belvedere.epochs.local import LocalRunner
from belvedere.errors import HistoryError


def new_database(path: Path) -> belvedere.Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    db.sql("CREATE TABLE r (k STRING, g STRING, y BIGINT, d DECIMAL(10,2), PRIMARY KEY (k))")
    db.sql("INSERT INTO r VALUES ('a', 'x', 1, 1.5), ('b', 'x', 2, 2.25)")
    db.sql("CREATE MATERIALIZED VIEW s AS SELECT g, sum(y) AS t, sum(d) AS d FROM r GROUP BY g")
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(t) AS t FROM s")
    return db


def follow(db: belvedere.Database, history: Path) -> None:
    db.start("available_now", max_rows=2, history=history).await_termination()


def write(db: belvedere.Database, number: int) -> None:
    db.table("r").put_many([{"k": f"{number}{i}", "g": "x", "y": i, "d": i} for i in range(2)])
    db.table("r").delete("a")


def test_a_recorded_history_is_strong_wherever_it_was_cut(tmp_path: Path) -> None:
    history = tmp_path / "history"
    with new_database(tmp_path / "db") as db:
        for number in range(3):
            follow(db, history)
            write(db, number)
        follow(db, history)
        wanted = history.read_bytes()
        assert check(read_history(history), "strong") == []
        assert len(judge(read_history(history))) == 2
        ends = [i + 1 for i, byte in enumerate(wanted) if byte == 10]
        last = [e for e in ends if wanted[:e].splitlines()[-1].startswith(b'{"recorded"')][-2]
        for cut in (last + 5, *(e for e in ends if last < e < ends[-1])):
            # a crash while the last epoch was recorded; its log is still there
            history.write_bytes(wanted[:cut])
            follow(db, history)
            assert history.read_bytes() == wanted


def test_operations_have_no_gaps_and_transactions_stay_together(tmp_path: Path) -> None:
    history = tmp_path / "history"
    with new_database(tmp_path / "db") as db:
        follow(db, history)
        write(db, 1)
        follow(db, history)
    found = read_history(history)
    assert [o.number for o in found.operations if o.stream == "log"] == [0, 1, 2, 3, 4]
    assert [len(t) for t in found.transactions()["log"]] == [2, 2, 1]


def test_a_changed_state_is_convicted_with_a_small_witness(tmp_path: Path) -> None:
    history = tmp_path / "history"
    with new_database(tmp_path / "db") as db:
        for number in range(3):
            write(db, number)
            follow(db, history)
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    wholes = [line for line in lines if line.get("whole") == "total"]
    wholes[-1]["rows"], wholes[-2]["rows"] = wholes[-2]["rows"], [{"t": 77}]
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = check(read_history(history), "strong")
    assert found.missed == "weak"
    assert found.witness.count("state ") <= 3
    assert "77" in found.witness


def test_the_file_of_another_database_is_refused(tmp_path: Path) -> None:
    history = tmp_path / "history"
    with new_database(tmp_path / "db") as db:
        follow(db, history)
    with new_database(tmp_path / "other") as other, pytest.raises(HistoryError, match="another"):
        follow(other, history)
    (tmp_path / "text").write_text("hello\n")
    with new_database(tmp_path / "third") as third:
        with pytest.raises(HistoryError, match="is no history"):
            follow(third, tmp_path / "text")
        with pytest.raises(HistoryError, match="cannot be written"):
            follow(third, tmp_path / "nowhere" / "history")


def _is_a_beginning(content: bytes, database: str | None) -> bool:
    header = json.dumps({"history": 1, "database": database}).encode() + b"\n"
    return header.startswith(content) or content.startswith(header)


@given(
    content=st.binary(max_size=80) | st.text(max_size=80).map(str.encode) | st.just(b'{"a": 1}'),
    ending=st.sampled_from([b"", b"\n", b"\nrest"]),
    database=st.sampled_from(["an id", None]),
)
def test_a_file_that_is_no_history_is_left_as_it_is(
    content: bytes, ending: bytes, database: str | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(content + ending)
        try:
            Recorder(path, database)
        except HistoryError:
            assert path.read_bytes() == content + ending
        else:
            assert _is_a_beginning(content + ending, database)


@pytest.mark.parametrize("kept", range(0, 40, 3))
def test_a_header_that_a_crash_has_cut_is_written_again(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "history"
    Recorder(path, "an id")
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    Recorder(path, "an id")
    assert path.read_bytes() == whole


def test_a_reader_records_what_it_saw(tmp_path: Path) -> None:
    history = tmp_path / "history"
    with new_database(tmp_path / "db") as db:
        follow(db, history)
        reader = Recorder(history)
        reader.saw("s", db.view("s").scan(), by="reader-1")
        reader.saw_record("total", (), db.view("total").get(), by="reader-2")
        reader.saw("s", [], by="reader-3")
    wrong = check(read_history(history), "weak")
    assert [v.by for v in wrong] == ["reader-3"]
