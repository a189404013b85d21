"""The operation log of the join view V5: operations on `r (key, grp, val)` and on the small side `s
(grp, name)`, in log order.

    seq, op, key, grp, val   as in workload.py; a put on s has no key and no val
    tbl   string   'R' or 'S'
    name  string   the new name of a row of s; null for operations on r

The log begins with one put for every row of s. Of the operations that follow, a share (20 % unless
said) gives a row of s a new name; the others are the log of workload.py on r, in its order. The
order in which random numbers are drawn is part of the definition.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from belvedere.bench import workload

SMALL_SIDE = 20.0  # percent of operations
_Ints = npt.NDArray[np.int64]


def generate(
    ops: int = 1_000_000,
    keys: int = 250_000,
    groups: int = 1_000,
    small: float = SMALL_SIDE,
    dist: str = "uniform",
    seed: int = 7,
) -> pa.Table:
    """The log of a seed: `groups` rows that load s, then `ops` operations."""
    rng = np.random.default_rng(seed + 1)
    on_s = rng.random(ops) < small / 100
    r = workload.generate(int((~on_s).sum()), keys, groups, dist, seed=seed)
    grp = np.concatenate([np.arange(groups), rng.integers(0, groups, ops)])
    return _merged(r, np.concatenate([np.ones(groups, bool), on_s]), grp)


def names(grp: _Ints, version: _Ints) -> pa.Table:
    """Puts on s alone: a name for each of the groups."""
    return _merged(workload.load(0), np.ones(len(grp), bool), grp, version)


def only_r(log: pa.Table) -> pa.Table:
    """A log of workload.py as one of these."""
    return _merged(log, np.zeros(log.num_rows, bool), np.zeros(log.num_rows, np.int64))


def cached(
    directory: Path,
    ops: int = 1_000_000,
    keys: int = 250_000,
    groups: int = 1_000,
    small: float = SMALL_SIDE,
    dist: str = "uniform",
    seed: int = 7,
) -> Path:
    """The Parquet file of `generate` with the same arguments, written once per directory."""
    path = directory / f"join-{ops}-{keys}-{groups}-{small:g}-{dist}-{seed}.parquet"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        pq.write_table(generate(ops, keys, groups, small, dist, seed), draft)
        draft.replace(path)  # a reader never meets half a file
    return path


def _merged(
    r: pa.Table, on_s: npt.NDArray[np.bool_], grp: _Ints, version: _Ints | None = None
) -> pa.Table:
    """Rows of r where `on_s` is false, in their order, and puts on s elsewhere."""
    n = len(on_s)
    place = pa.array(np.cumsum(~on_s) - 1, pa.int64(), mask=on_s)  # null takes null
    mask = pa.array(on_s)
    columns = {name: r[name].combine_chunks().take(place) for name in ("op", "key", "grp", "val")}
    group = workload.numbered("x", 6, grp)
    name = pc.binary_join_element_wise(
        "name",
        pc.utf8_slice_codeunits(group, 1),
        _padded(np.arange(n) if version is None else version),
        "-",
    )
    return pa.table(
        {
            "seq": pa.array(np.arange(n), pa.int64()),
            "tbl": pc.if_else(mask, "S", "R"),
            "op": pc.if_else(mask, "put", columns["op"]),
            "key": columns["key"],
            "grp": pc.if_else(mask, group, columns["grp"]),
            "val": columns["val"],
            "name": pc.if_else(mask, name, pa.scalar(None, pa.string())),
        }
    )


def _padded(numbers: _Ints) -> pa.StringArray:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0")
