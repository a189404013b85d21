"""Large libraries, loaded when they are first used.

To load Arrow takes longer than everything else that a command does which reads or writes one row,
and such a command needs none of them: single keys and rows are encoded without. So the modules on
its way take these names from here. Such a name is an empty module that becomes a copy of the real
one at the first look into it, and from then on is as fast.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["duckdb", "np", "npt", "pa", "pc"]


class _Late(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the interpreter looks for these in every module
            raise AttributeError(name)
        real = import_module(self.__name__)
        self.__dict__.update(vars(real))
        # what it gets later, such as a submodule, is found there
        self.__dict__["__getattr__"] = lambda name: getattr(real, name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # the interpreter is fast with exactly this class
        return getattr(real, name)


if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    duckdb, np, npt, pa, pc = map(
        _Late, ("duckdb", "numpy", "numpy.typing", "pyarrow", "pyarrow.compute")
    )
