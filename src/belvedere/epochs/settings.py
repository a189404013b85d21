"""How large epochs are, and how long what they leave behind is kept."""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.errors import PipelineError


@dataclass(frozen=True, slots=True)
class Settings:
    max_rows: int = 1_000_000  # operations per epoch
    load_rows: int = 500_000  # rows per loading step
    # of what an epoch or a loading step reads; a worker needs several times as much
    max_bytes: int = 128 << 20
    history: int = 4  # committed epochs that can still be read
    trim_after: int = 200_000  # operations behind the committed vector before the log is trimmed

    def __post_init__(self) -> None:
        for name, value in (("max_rows", self.max_rows), ("load_rows", self.load_rows)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise PipelineError(
                    f"{name} is {value!r}, but an epoch has at least one row: use 1 or more, or"
                    " leave it out"
                )
