"""Complete views: an epoch, an entry of the feed, and a state of the past for every transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere
from belvedere.consistency import check, read_history
from belvedere.epochs.local import LocalRunner

VIEW = "CREATE MATERIALIZED VIEW {} WITH (consistency = '{}') AS SELECT g, sum(y) AS s FROM r {}"
TRANSACTIONS = [
    [{"k": 1, "g": "a", "y": 1}, {"k": 2, "g": "b", "y": 2}],
    [{"k": 2, "g": "a", "y": 4}],
    [{"k": 2, "g": "a", "y": 4}],  # changes nothing
    [{"k": 1, "g": "b", "y": 8}],
]


def new_database(path: Path, level: str) -> belvedere.Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    db.keep_history(epochs=100)
    db.sql("CREATE TABLE r (k INT, g STRING, y BIGINT, PRIMARY KEY (k))")
    db.sql(VIEW.format("v", level, "GROUP BY g"))
    db.catch_up()
    return db


def write(db: belvedere.Database) -> None:
    for rows in TRANSACTIONS:
        db.table("r").put_many(rows)


def totals(upto: int) -> dict[str, int]:
    rows = {row["k"]: row for rows in TRANSACTIONS[:upto] for row in rows}
    found: dict[str, int] = {}
    for row in rows.values():
        found[str(row["g"])] = found.get(str(row["g"]), 0) + int(str(row["y"]))
    return found


def test_every_transaction_is_an_epoch_an_entry_and_a_state_of_the_past(tmp_path: Path) -> None:
    with new_database(tmp_path / "db", "complete") as db:
        begin = db.status().epoch
        write(db)
        db.catch_up()
        assert db.status().epoch == begin + len(TRANSACTIONS)
        view, entries = db.view("v"), []
        shown: dict[str, int] = {}
        for number in range(1, len(TRANSACTIONS) + 1):
            rows = view.to_arrow(as_of=begin + number).to_pylist()
            assert {row["g"]: row["s"] for row in rows} == totals(number)
        with view.changes(since=begin) as changes:
            for table in changes:
                entries.append(table.num_rows)
                for row in table.to_pylist():
                    shown[row["g"]] = shown.get(row["g"], 0) + row["s"] * row["_weight"]
                assert {g: s for g, s in shown.items() if s} == totals(changes.epoch - begin)
        assert entries == [2, 3, 0, 3]


def test_the_judge_tells_complete_views_from_others(tmp_path: Path) -> None:
    for level in ("complete", "strong"):
        history = tmp_path / f"{level}.jsonl"
        with new_database(tmp_path / level, level) as db:
            db.start("available_now", history=history).await_termination()
            write(db)
            db.start("available_now", history=history).await_termination()
        assert check(read_history(history), "strong") == []
        wrong = check(read_history(history), "complete")
        assert [v.missed for v in wrong] == ([] if level == "complete" else ["complete"])


def test_without_complete_views_an_epoch_takes_all_there_is(tmp_path: Path) -> None:
    with new_database(tmp_path / "db", "complete") as db:
        db.sql(VIEW.format("other", "strong", "GROUP BY g"))
        db.catch_up()
        db.sql("DROP VIEW v")
        write(db)
        (report,) = db.catch_up()
        assert report.operations == sum(map(len, TRANSACTIONS))


def test_explain_and_status_say_what_is_asked_and_given(tmp_path: Path) -> None:
    with new_database(tmp_path / "db", "complete") as db:
        said = "every transaction is an epoch of its own"
        assert said in str(db.sql("EXPLAIN v"))
        assert said in str(db.sql("EXPLAIN " + VIEW.format("w", "complete", "GROUP BY g")))
        strong = str(db.sql("EXPLAIN " + VIEW.format("w", "strong", "GROUP BY g")))
        assert strong.endswith("\nconsistency: strong is given")
        weak = str(db.sql("EXPLAIN " + VIEW.format("w", "weak", "GROUP BY g")))
        assert weak.endswith("\nconsistency: weak is asked, strong is given")
        assert "consistency = 'complete'" in str(db.sql("SHOW CREATE TABLE v"))
        (info,) = db.status().views
        assert (info.consistency, info.given) == ("complete", "complete")


@pytest.mark.parametrize("level", ["strong", "weak"])
def test_a_view_can_be_replaced_by_a_complete_one(tmp_path: Path, level: str) -> None:
    with new_database(tmp_path / "db", level) as db:
        db.sql(VIEW.replace("CREATE", "CREATE OR REPLACE").format("v", "complete", "GROUP BY g"))
        db.catch_up()
        write(db)
        assert [report.operations for report in db.catch_up()] == [2, 1, 1, 1]


def test_explain_cost_says_what_history_and_complete_views_cost(tmp_path: Path) -> None:
    with new_database(tmp_path / "db", "complete") as db:
        write(db)
        db.catch_up()
        told = str(db.sql("EXPLAIN COST v"))
        assert "every transaction is an epoch of its own" in told
        assert "100 epochs are asked for, 4 epochs can be read" in told
        assert (
            "lately about 3 records" in told
        )  # three times two groups in view and state, once none
        new = str(db.sql("EXPLAIN COST " + VIEW.format("w", "strong", "GROUP BY g")))
        assert "every transaction" not in new
        assert "100 epochs are asked for" in new
        db.keep_history()
        assert "history" not in str(db.sql("EXPLAIN COST SELECT g FROM r"))
        assert "none is asked for" in str(db.sql("EXPLAIN COST v"))
