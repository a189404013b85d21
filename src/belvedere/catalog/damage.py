"""What the catalog keeps is JSON; a value that is damaged is named, wherever it is read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from belvedere.errors import Damaged

P = ParamSpec("P")
T = TypeVar("T")
# flipped bytes can be good JSON of another shape
_MISREAD = (ValueError, LookupError, TypeError, AttributeError, struct.error)


def decodes(what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that reads something of the catalog, and says so if that cannot be read."""

    def decorate(decode: Callable[P, T]) -> Callable[P, T]:
        @wraps(decode)
        def checked(*arguments: P.args, **named: P.kwargs) -> T:
            try:
                return decode(*arguments, **named)
            except _MISREAD as error:
                raise Damaged(
                    f"{what} in the catalog cannot be read ({type(error).__name__}: {error})"
                ) from error

        return checked

    return decorate
