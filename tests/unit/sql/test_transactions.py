"""BEGIN, COMMIT and ROLLBACK in scripts, on the command line and at the prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import belvedere
from belvedere.cli.prompt import _message, prompt
from belvedere.cli.sql import run_script
from belvedere.database import Database
from belvedere.errors import BelvedereError, RowConflict, SqlError, TransactionError
from belvedere.statements.transaction import Conversation


@pytest.fixture(params=["memory", "embedded"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = "memory:" if request.param == "memory" else str(tmp_path / "db")
    with belvedere.open(url, slots=2) as opened:
        opened.sql("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        opened.sql("CREATE TABLE b (id INT PRIMARY KEY, v INT)")
        opened.sql("INSERT INTO a VALUES (1, 10)")
        yield opened


def rows(db: Database) -> list[tuple[int, int]]:
    return [(r["id"], r["v"]) for name in ("a", "b") for r in db.table(name).scan()]


MOVE = """
UPDATE a SET v = v - 4 WHERE id = 1;
INSERT INTO b SELECT id, 10 - v FROM a;  -- sees the update
DELETE FROM a WHERE v > 100;
"""


@pytest.mark.parametrize("begin", ["BEGIN", "begin work", "BEGIN TRANSACTION", "Start Transaction"])
@pytest.mark.parametrize("end", ["COMMIT", "commit work", "COMMIT TRANSACTION;"])
def test_what_stands_between_begin_and_commit_is_one_transaction(
    db: Database, begin: str, end: str
) -> None:
    before = db.store.base.end()["log"]
    answer = db.sql(f"{begin}; {MOVE} {end}")
    assert str(answer) == "transaction committed, 2 operation(s)"
    assert rows(db) == [(1, 6), (1, 4)]
    blocks = list(db.store.base.read_log("log", before, before + 2))
    assert [block.is_last for block in blocks] == [False, True]


def test_rollback_writes_nothing(db: Database) -> None:
    end = db.store.base.end()
    assert str(db.sql(f"BEGIN; {MOVE} ROLLBACK")) == "transaction rolled back, 2 operation(s)"
    assert (rows(db), db.store.base.end()) == ([(1, 10)], end)
    db.sql(f"BEGIN; {MOVE} ROLLBACK; INSERT INTO b VALUES (7, 7)")
    assert rows(db) == [(1, 10), (7, 7)]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("BEGIN", "ends inside a transaction: its 0 operation"),
        (f"BEGIN; {MOVE}", "ends inside a transaction: its 2 operation.* rolled back"),
        ("COMMIT", "COMMIT: there is no transaction"),
        ("ROLLBACK", "ROLLBACK: there is no transaction"),
        (f"BEGIN; {MOVE} BEGIN", "a transaction is open already"),
        (f"BEGIN; {MOVE} COMMIT AND CHAIN", "this form of COMMIT is not understood"),
        (f"BEGIN; {MOVE} ROLLBACK TO here", "this form of ROLLBACK is not understood"),
        ("START", "this form of START is not understood: write START TRANSACTION"),
        (f"BEGIN; {MOVE} UPDATE a SET v = 1 / 0; COMMIT", "nothing was changed"),
        (f"BEGIN; {MOVE} CREATE TABLE c (id INT PRIMARY KEY); COMMIT", "CREATE cannot be a part"),
        (f"BEGIN; {MOVE} SELECT * FROM w; COMMIT", "a transaction reads tables"),
        (f"BEGIN; {MOVE} SHOW TABLES; COMMIT", "SHOW cannot be a part"),
    ],
)
@pytest.mark.parametrize("way", ["sql", "script"])
def test_a_script_that_fails_in_a_transaction_writes_nothing_of_it(
    db: Database, script: str, message: str, way: str
) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM a")
    with pytest.raises(BelvedereError, match=message):
        db.sql(script) if way == "sql" else run_script(db, script)
    assert rows(db) == [(1, 10)]
    assert "c" not in db.state().tables


def test_a_statement_that_fails_leaves_the_open_transaction_without_it(db: Database) -> None:
    conversation = Conversation(db)
    conversation.run("BEGIN")
    conversation.run("INSERT INTO b VALUES (1, 1)")
    for wrong in ("INSERT INTO b VALUES (2, 'x')", "DROP TABLE a", "BEGIN", "nonsense"):
        with pytest.raises((SqlError, TransactionError)):
            conversation.run(wrong)
    assert conversation.run("SELECT v FROM b WHERE id = ?", (1,)).to_pylist() == [{"v": 1}]
    assert conversation.is_in_transaction
    conversation.run("COMMIT")
    assert rows(db) == [(1, 10), (1, 1)]


def test_a_commit_that_meets_a_conflict_ends_the_transaction(db: Database) -> None:
    conversation = Conversation(db)
    conversation.run("BEGIN")
    conversation.run("UPDATE a SET v = v + 1 WHERE id = 1")
    db.sql("UPDATE a SET v = 3 WHERE id = 1")
    with pytest.raises(RowConflict):
        conversation.run("COMMIT")
    assert not conversation.is_in_transaction
    assert rows(db) == [(1, 3)]


def test_as_of_is_not_for_what_stands_in_a_transaction(db: Database) -> None:
    conversation = Conversation(db)
    conversation.run("BEGIN")
    with pytest.raises(SqlError, match="leave as_of out"):
        conversation.run("SELECT * FROM a", as_of=1)


def typed(db: Database, text: str) -> None:
    """At the prompt."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text(text.replace("\n", "\r"))
        prompt(db, 10)


def test_a_transaction_at_the_prompt_spans_lines(
    db: Database,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    typed(db, "BEGIN;\nINSERT INTO b VALUES (1, 1);\nCREATE TABLE c;\nCOMMIT;\nquit\n")
    assert rows(db) == [(1, 10), (1, 1)]
    shown = capsys.readouterr()
    assert "transaction committed, 1 operation(s)" in shown.out
    assert "CREATE cannot be a part of a transaction" in shown.err
    assert "rolled back" not in shown.out


@pytest.mark.parametrize("leave", ["quit\n", "\x04"])
def test_leaving_the_prompt_says_that_the_open_transaction_was_rolled_back(
    db: Database,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    leave: str,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    typed(db, f"BEGIN;\nINSERT INTO b VALUES (1, 1);\n{leave}")
    assert "the open transaction was rolled back, 1 operation" in capsys.readouterr().out
    assert rows(db) == [(1, 10)]


def test_the_prompt_shows_that_a_transaction_is_open(db: Database) -> None:
    conversation = Conversation(db)
    shown = [_message(conversation).value]
    for statement in ("BEGIN", "ROLLBACK"):
        conversation.run(statement)
        shown.append(_message(conversation).value)
    assert ["*" in each for each in shown] == [False, True, False]
