"""The operation log: puts and deletes on a keyed table `r (key, grp, val)`, in log order.

    seq   int64    position in the log, from 0
    op    string   'put' writes the whole row, whether it exists or not; 'delete' names a live row
    key   string   'k' and nine digits
    grp   string   'x' and six digits; null for a delete
    val   int64    0..9999; null for a delete

The log says nothing about a row before an update: an engine has to know it. The order in which
random numbers are drawn is part of the definition, so that figures taken with the same seed are
comparable.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MIX = (50, 35, 15)  # inserts, updates, deletes wanted; only the share of deletes has an influence
VALUES = 10_000
_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def generate(
    ops: int = 1_000_000,
    keys: int = 250_000,
    groups: int = 1_000,
    dist: str = "uniform",
    mix: tuple[int, int, int] = MIX,
    seed: int = 7,
) -> pa.Table:
    """The log of a seed. `dist` is 'uniform' or 'zipf' (exponent 1 over shuffled keys)."""
    rng = np.random.default_rng(seed)
    draw = _draw(rng, ops, keys, dist)
    wanted = rng.random(ops) < mix[2] / sum(mix)
    deletes = _possible(draw, wanted)
    grp = rng.integers(0, groups, ops)
    val = rng.integers(0, VALUES, ops)
    return _log(draw, grp, val, deletes)


def load(keys: int, groups: int = 1_000, seed: int = 7) -> pa.Table:
    """One put for every key, in key order: a base table of exactly `keys` rows."""
    rng = np.random.default_rng(seed)
    return _log(
        np.arange(keys),
        rng.integers(0, groups, keys),
        rng.integers(0, VALUES, keys),
        np.zeros(keys, bool),
    )


def touch(
    ops: int, keys: int, groups: int = 1_000, deletes: float = 0.15, seed: int = 7
) -> pa.Table:
    """Operations on `ops` different keys of a loaded table: nothing nets out, whatever the size of
    the table.
    """
    rng = np.random.default_rng(seed)
    draw = rng.choice(keys, ops, replace=False, shuffle=True).astype(np.int64)
    return _log(
        draw, rng.integers(0, groups, ops), rng.integers(0, VALUES, ops), rng.random(ops) < deletes
    )


def cached(
    directory: Path,
    ops: int = 1_000_000,
    keys: int = 250_000,
    groups: int = 1_000,
    dist: str = "uniform",
    mix: tuple[int, int, int] = MIX,
    seed: int = 7,
) -> Path:
    """The Parquet file of `generate` with the same arguments, written once per directory."""
    path = directory / f"ops-{ops}-{keys}-{groups}-{dist}-{'.'.join(map(str, mix))}-{seed}.parquet"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        pq.write_table(generate(ops, keys, groups, dist, mix, seed), draft)
        draft.replace(path)  # a reader never meets half a file
    return path


def _draw(rng: np.random.Generator, ops: int, keys: int, dist: str) -> _Ints:
    if dist == "uniform":
        return rng.integers(0, keys, ops)
    if dist != "zipf":
        raise ValueError(f"there is no distribution {dist!r}: use 'uniform' or 'zipf'")
    weights = 1.0 / np.arange(1, keys + 1)
    cdf = np.cumsum(weights / weights.sum())
    shuffled = rng.permutation(keys)
    drawn: _Ints = shuffled[np.searchsorted(cdf, rng.random(ops)).clip(0, keys - 1)]
    return drawn


def _possible(draw: _Ints, wanted: _Bools) -> _Bools:
    """Which wanted deletes find a live row; the others become puts.

    Look at one key's operations in order. A put leaves the row live, so after it wanted deletes
    alternate: delete, put, delete, ... The first operation on a key is always a put. Hence a delete
    is what stands at an odd distance from the last operation that is a put for certain.
    """
    order = np.argsort(draw, kind="stable")
    ordered = draw[order]
    first = np.ones(len(draw), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    place = np.arange(len(draw))
    certain = first | ~wanted[order]
    last_certain = np.maximum.accumulate(np.where(certain, place, 0))
    deletes = np.empty(len(draw), bool)
    deletes[order] = (place - last_certain) % 2 == 1
    return deletes


def _log(key: _Ints, grp: _Ints, val: _Ints, deletes: _Bools) -> pa.Table:
    mask = pa.array(deletes)
    return pa.table(
        {
            "seq": pa.array(np.arange(len(key)), pa.int64()),
            "op": pc.if_else(mask, "delete", "put"),
            "key": numbered("k", 9, key),
            "grp": pc.if_else(mask, pa.scalar(None, pa.string()), numbered("x", 6, grp)),
            "val": pa.array(val, pa.int64(), mask=deletes),
        }
    )


def numbered(letter: str, digits: int, numbers: _Ints) -> pa.StringArray:
    """`letter` and zero-padded digits for each number, built as one Arrow buffer."""
    if len(numbers) and int(numbers.max()) >= 10**digits:
        raise ValueError(
            f"{int(numbers.max())} does not fit into {digits} digits: use fewer keys or groups"
        )
    width = digits + 1
    text = np.empty((len(numbers), width), np.uint8)
    text[:, 0] = ord(letter)
    rest = numbers.astype(np.int64, copy=True)
    for column in range(digits, 0, -1):
        rest, text[:, column] = np.divmod(rest, 10)
    text[:, 1:] += ord("0")
    offsets = np.arange(0, (len(numbers) + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))
