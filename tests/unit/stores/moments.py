"""A child that gets SIGKILL at one of the moments at which it touches what is kept: before a call of
the file system (`stores/embedded/disk.py`), inside of a write transaction of LMDB, behind it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import Any

from belvedere.stores.embedded import disk
from belvedere.stores.embedded.environment import Environment

CALLS = ("write", "sync", "truncate", "create", "create_new", "rename", "unlink", "sync_folder")
Tell = Callable[[str], None]
Place = tuple[Any, str]  # a module or a class, and a function of it


def killed(action: Callable[[Tell], object], number: int, others: Iterable[Place] = ()) -> Any:
    """What the child told until it was killed at the n-th moment, and whether it was; moments are
    also before and behind the functions of `others`.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _watch(number, others)
            action(lambda said: void(os.write(writing, f"{said}\n".encode())))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read().split()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return said, True
    assert os.WEXITSTATUS(status) == 0
    return said, False


def void(_: object) -> None:
    return None


def _watch(number: int, others: Iterable[Place]) -> None:
    left = number

    def moment() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in CALLS:
        setattr(disk, name, _after(moment, getattr(disk, name)))
    for owner, name in others:
        setattr(owner, name, _around(moment, getattr(owner, name)))
    write_once = Environment._write_once

    def write(environment: Environment, body: Callable[[Any], Any]) -> Any:
        result = write_once(environment, _before(moment, body))
        moment()
        return result

    patched: Any = Environment
    patched._write_once = write


def _after(moment: Callable[[], None], call: Callable[..., Any]) -> Callable[..., Any]:
    def moved(*arguments: Any) -> Any:
        moment()
        return call(*arguments)

    return moved


def _before(moment: Callable[[], None], call: Callable[..., Any]) -> Callable[..., Any]:
    def moved(*arguments: Any) -> Any:
        result = call(*arguments)
        moment()
        return result

    return moved


def _around(moment: Callable[[], None], call: Callable[..., Any]) -> Callable[..., Any]:
    return _after(moment, _before(moment, call))
