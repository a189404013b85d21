"""What stands for the parts of a store that is closed: every use of it says so."""

from __future__ import annotations

from typing import Any, NoReturn

from belvedere.errors import StoreError


class Closed:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling look for these
            raise AttributeError(name)
        self()

    def __call__(self, *_: object) -> NoReturn:
        raise StoreError(f"{self._name} is closed: open the store again")
