"""What went wrong in a task, told to the driver.

Spark passes on text only, and the error itself is hard to find in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from belvedere.errors import BelvedereError, PipelineError, Stale, StoreFull
from belvedere.types import Epoch

_MARK = "BELVEDERE-TOLD"
_TOLD = re.compile(f"{_MARK} (.*?) {_MARK}")
_AGAIN = "It is run again at the next start"
_ROOM = f"Nothing is lost: make room, then start the pipeline again. {_AGAIN}"
_VIEW = f"{_AGAIN}; if it keeps failing because of a view, drop that view first"
_LOST = "Python worker exited unexpectedly"
# What the JVM says of troubles that no Python code of ours has seen.
_OUTSIDE = {
    "No space left on device": ("the disk is full, where Spark keeps its temporary files", _ROOM),
    _LOST: (
        "a worker process of Spark ended: was it killed, or out of memory?",
        _AGAIN,
    ),
    "OutOfMemoryError": (
        "Spark's Java process is out of memory",
        f"Give it more with spark.driver.memory. {_AGAIN}",
    ),
}


@contextmanager
def told() -> Iterator[None]:
    """Around the body of a task: what it raises can be read by `failure`."""
    try:
        yield
    except Exception as error:  # whatever it is, its name and words have to arrive
        raise RuntimeError(
            f"{_MARK} {json.dumps([type(error).__name__, str(error)])} {_MARK}"
        ) from error


def failure(epoch: Epoch, text: str) -> BelvedereError:
    """The error of an epoch whose job failed, from Spark's report of it."""
    found = _TOLD.search(text)
    kind, message = json.loads(found[1]) if found is not None else ("", "")
    if kind == Stale.__name__:
        return Stale(f"an attempt of epoch {epoch} met its future: {message}")
    return job_failure(f"epoch {epoch}", text, _VIEW)


def lost_worker(text: str) -> bool:
    """Whether a job failed because processes of its tasks ended, which tell nothing."""
    return _LOST in text and not _TOLD.search(text)


def job_failure(name: str, text: str, advice: str = _AGAIN) -> BelvedereError:
    """The error of a job that failed, from Spark's report of it."""
    found = _TOLD.search(text)
    if found is None:
        what, hint = next(
            (answer for sign, answer in _OUTSIDE.items() if sign in text), (_cause(text), advice)
        )
        return PipelineError(f"{name} failed in Spark: {_sentence(what)} {hint}")
    kind, message = json.loads(found[1])
    if kind == StoreFull.__name__:
        return PipelineError(f"{name} found no room: {_sentence(message)} {_ROOM}")
    ours = {error.__name__ for error in _subclasses(BelvedereError)}
    said = message if kind in ours else f"{kind}: {message}"
    return PipelineError(f"{name} failed: {_sentence(said)} {advice}")


def _subclasses(kind: type[BelvedereError]) -> Iterator[type[BelvedereError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _subclasses(each)


def _sentence(text: str) -> str:
    return text if text.rstrip().endswith((".", "?", "!")) else f"{text}."


def _cause(text: str) -> str:
    """The line that names an error, out of the JVM's long report."""
    lines = [
        line
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith(("at ", "File ", "^"))
    ]
    named = [line for line in lines if "Error" in line or "Exception" in line]
    return (named[-1] if named else lines[0] if lines else text).strip()
