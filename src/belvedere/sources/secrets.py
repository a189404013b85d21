"""Secrets: the catalog knows where they are, and only who connects reads them."""

from __future__ import annotations

import os
from pathlib import Path

from belvedere.errors import SourceError

ENV, FILE = "env", "file"


def read_secret(option: str, kind: str, name: str) -> str:
    """The value of an option, from a variable of this process or from a file."""
    if kind == ENV:
        found = os.environ.get(name)
        if found is None:
            raise SourceError(
                f"{option} is in the variable {name}, which this process has not: set it where"
                " belvedere runs"
            )
        return found
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SourceError(
            f"{option} is in the file {name}, which cannot be read ({reason}): make it readable"
            " where belvedere runs"
        ) from error
