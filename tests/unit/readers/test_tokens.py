"""Tokens: a session goes on in another process, with what it wrote and what it has read."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import CatalogError, Timeout, TokenError
from belvedere.readers.session import Token
from belvedere.types import Vector

READER = """
import sys, belvedere
with belvedere.open(sys.argv[1]) as db, db.session(timeout=60, token=sys.argv[2]) as session:
    print("ready", flush=True)
    print(session.view("n").get()["n"], session.token(), flush=True)
"""


def opened(path: Path) -> Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    return db


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with opened(tmp_path / "db") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY)")
        db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
        db.catch_up()
    return tmp_path / "db"


def test_random_tokens_are_the_same_after_they_were_text() -> None:
    chance = random.Random(3)
    for _ in range(500):
        streams = (f"s-{number}é" for number in range(chance.randrange(4)))
        positions = Vector({name: chance.randrange(1 << 60) for name in streams})
        token = Token("id", positions, chance.randrange(1 << 60))
        assert Token.from_text(token.to_text()) == token


def test_a_token_of_which_any_character_is_wrong_or_missing_is_refused() -> None:
    text = Token("0123456789abcdef", Vector({"log": 70}), 3).to_text()
    for place in range(len(text)):
        wrong = [text[:place], text[:place] + text[place + 1 :]]
        other = "A" if text[place] != "A" else "Z"
        wrong.append(text[:place] + other + text[place + 1 :])
        for each in wrong:
            with pytest.raises(TokenError, match="not a session's token, or a part of one"):
                Token.from_text(each)


@pytest.mark.parametrize("text", ["", "s1-", "s1-é", "s2-abcd", "a token", 7])
def test_what_is_no_token_is_refused(path: Path, text: str) -> None:
    with opened(path) as db, pytest.raises(TokenError), db.session(token=text):
        pass


def test_another_process_reads_what_the_first_one_wrote(path: Path) -> None:
    with opened(path) as db:
        with db.session() as session:
            session.table("t").put({"id": 1})
            with session.transaction() as t:
                t.table("t").put({"id": 2})
            token = session.token()
        command = [sys.executable, "-c", READER, str(path), token]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"  # it waits for the epoch now
            db.catch_up()
            count, returned = reader.stdout.readline().split()
        assert count == "2"
        epoch = db.committed()[0]
        assert Token.from_text(returned).epoch == epoch
        assert Token.from_text(returned).positions == Token.from_text(token).positions


def test_a_session_waits_for_the_positions_and_for_the_epoch_of_its_token(path: Path) -> None:
    with opened(path) as db:
        epoch = db.committed()[0]
        for positions, wanted in ((Vector({"log": 1}), 0), (Vector(), epoch + 1)):
            token = Token(db.store.id, positions, wanted).to_text()
            with db.session(timeout=0, token=token) as session, pytest.raises(Timeout):
                session.view("n").get()
            with db.session(timeout=0, token=token) as session, pytest.raises(Timeout):
                list(session.view("n").changes())
        db.table("t").put({"id": 1})
        db.catch_up()
        with db.session(timeout=0, token=token) as session:
            assert session.view("n").get() == {"n": 1}
            assert Token.from_text(session.token()).epoch == epoch + 1


def test_the_token_of_another_database_is_refused_also_that_of_a_backup(
    path: Path, tmp_path: Path
) -> None:
    with opened(path) as db:
        with db.session() as session:
            token = session.token()
        with db.session(token=token):
            pass
        db.backup(tmp_path / "backup")
    belvedere.restore(tmp_path / "backup", tmp_path / "restored")
    for url in (str(tmp_path / "restored"), str(tmp_path / "new"), "memory:"):
        with belvedere.open(url) as other:
            with pytest.raises(TokenError, match="of another database"), other.session(token=token):
                pass
            with other.session() as session:
                assert session.token() != token
    with opened(path) as again, again.session(token=token):
        pass


def test_only_a_session_has_a_token(path: Path) -> None:
    with opened(path) as db, pytest.raises(CatalogError, match="only a session has a token"):
        db.token()
