"""Words for arrays that travel through the engine, and how many rows travel together."""

from __future__ import annotations

from typing import TypeAlias

from belvedere.libraries import np, npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"
Doubles: TypeAlias = "npt.NDArray[np.float64]"

BATCH = 100_000  # rows that are read, computed or emitted together
BATCH_BYTES = 32 << 20  # and how many bytes of them are sent on together
