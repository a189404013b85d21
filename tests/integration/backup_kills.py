"""Backups, restores and compactions that are killed before every single thing that they do to the
file system.

    python -m tests.integration.backup_kills FOLDER backup|restore|compact

says a line for each kill: what it was about to do, and `refused`, `whole` or what is wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import StoreError
from tests.integration import shop

EVENTS = ("open", "os.link", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "fcntl.")
SLOTS = 1


def opened(path: Path) -> Database:
    db = belvedere.open(path, slots=SLOTS)
    db._runner = LocalRunner(db.store)
    return db


def make(path: Path) -> None:
    with opened(path) as db:
        db.sql(shop.TABLE)
        shop.create(db)
        for seed, count in enumerate(
            (8000, 3000, 700, 200)
        ):  # each too small to join the one before
            db.table("orders").put_many(shop.rows(count, seed, keys=10_000))
            db.catch_up()
        db.sql("DELETE FROM orders WHERE amount > 900")


def check(path: Path) -> None:
    with opened(path) as db:
        db.catch_up()
        shop.check(db)


def killed(action: Callable[[], object], folder: Path, number: int) -> str | None:
    """In a child that gets SIGKILL before it touches the folder for the n-th time: what it was
    about to do, or None if it came to its end.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _watch(folder, number, writing)
        action()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        about = said.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return about
    assert os.WEXITSTATUS(status) == 0, about
    return None


def _watch(folder: Path, number: int, writing: int) -> None:
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event.startswith(EVENTS) and str(folder) in str(arguments):
            seen += 1
            if seen == number:
                os.write(writing, f"{event} {arguments[0]}".encode())
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def judge_backup(folder: Path, number: int) -> str | None:
    target = folder / f"b{number}"

    def take() -> None:
        with belvedere.open(folder / "shop") as db:
            db.backup(target)

    about = killed(take, target, number)
    verdict = judge(lambda: belvedere.restore(target, folder / f"r{number}"), folder / f"r{number}")
    check(folder / "shop")
    return None if about is None else f"{about} -> {verdict}"


def judge_restore(folder: Path, number: int) -> str | None:
    target = folder / f"r{number}"
    about = killed(lambda: belvedere.restore(folder / "b", target), target, number)
    if not target.exists() or not any(target.iterdir()):  # a directory without anything is new
        return f"{about} -> refused"
    verdict = judge(lambda: None, target)
    return None if about is None else f"{about} -> {verdict}"


def judge(before: Callable[[], object], path: Path) -> str:
    try:
        before()
        check(path)
    except StoreError as error:
        is_told = any(word in str(error) for word in ("interrupted", "is not a backup"))
        return "refused" if is_told else f"refused with {error}"
    shutil.rmtree(path)
    return "whole"


def judge_compact(folder: Path, number: int) -> str | None:
    """A store is never refused: it is as before or as after, and goes on."""
    target = folder / f"c{number}"
    shutil.copytree(folder / "shop", target)
    about = killed(lambda: belvedere.compact(target), target, number)
    check(target)
    belvedere.compact(target)
    left = [file.name for file in target.rglob("*.compact")]
    shutil.rmtree(target)
    return None if about is None else f"{about} -> {'left ' + left[0] if left else 'whole'}"


JUDGES = {"backup": judge_backup, "restore": judge_restore, "compact": judge_compact}


def main(folder: Path, kind: str) -> None:
    make(folder / "shop")
    with belvedere.open(folder / "shop") as db:
        db.backup(folder / "b")
    number = 1
    while (line := JUDGES[kind](folder, number)) is not None:
        print(line, flush=True)
        number += 1
    with belvedere.open(folder / "shop") as db:
        db.backup(folder / "last")
    belvedere.restore(folder / "b", folder / "again")
    check(folder / "again")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
