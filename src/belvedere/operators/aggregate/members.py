"""Members: of which rows of its input a row of an aggregate is made.

    all rows of the group

and of these decide, if only rows of the group can go,

    the only row                       the group is there no more
    every row                          of count(*)
    every row with a value             of count(x)
    the only row with its value        of count(DISTINCT x)
    the same, if it is the outermost   of min(x), max(x)
    every row with a value but zero    of sum(x), if all values of the group have one sign
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.encoding import KeyCodec
from belvedere.encoding.arrays import Mask
from belvedere.libraries import np, pa, pc
from belvedere.operators.aggregate.argument import Argument, Call
from belvedere.operators.base import ID, column_of
from belvedere.operators.lineage import MOST_LOOKED_UP, Below, Gap, Pieces, Wanted, times_of

if TYPE_CHECKING:
    from belvedere.operators.aggregate.operator import Aggregate


def sought(aggregate: Aggregate, wanted: Wanted) -> Wanted:
    """Rows of the groups; results of calls say nothing of single rows."""
    count = len(aggregate.groups)
    if wanted.ids is None or not count:
        return wanted.only(range(count))
    keys = KeyCodec(aggregate.groups).decode(wanted.ids.unique())
    return Wanted.of(range(count), aggregate.groups, keys)


def made_of(aggregate: Aggregate, made: Pieces, below: Below) -> Pieces:
    rows = _members(aggregate, made.ids, below)
    keys, codes = aggregate.group(rows)
    groups = keys.take(pa.array(codes))
    decides = _deciding(aggregate, made, rows, groups)
    in_group = pc.is_in(groups, value_set=made.ids.filter(pa.array(made.decides)))
    return Pieces(rows, decides & np.asarray(in_group.to_numpy(zero_copy_only=False), bool))


def why_not(aggregate: Aggregate, wanted: Wanted, below: Below) -> Gap:
    groups = sought(aggregate, wanted)
    found = below.own(groups)
    if not found.num_rows:
        return Gap("", 0, groups)
    names = below.names(0)
    other = [i for i in wanted.columns if i >= len(aggregate.groups)]
    texts = aggregate.columns((names,))
    values = (f"{texts[i]} = {found.column(f'c{i}')[0].as_py()}" for i in other)
    which = wanted.only(range(len(aggregate.groups))).text(names) or "all rows"
    return Gap(
        f"the group of {which} has {', '.join(values)}",
        0,
        rows=_members(aggregate, found.column(ID), below),
    )


def _members(aggregate: Aggregate, groups: pa.BinaryArray, below: Below) -> pa.Table:
    """All rows of some groups: those that are kept in order by row, where they are all."""
    wanted = sought(aggregate, Wanted(ids=groups))
    if not below.reaches(0, wanted):
        named = _kept_in_order(aggregate, groups.unique(), below)
        if named is not None and below.reaches(0, named):
            return below.find(0, named)
    return below.find(0, wanted)


def _kept_in_order(aggregate: Aggregate, groups: pa.BinaryArray, below: Below) -> Wanted | None:
    """The rows of the groups by their identities; None if some have no value that is kept by row,
    or if there are too many.
    """
    kept = [a.pre_aggregation for a in aggregate.arguments if a.by_row]
    found, left = [pa.array([], pa.binary())], MOST_LOOKED_UP
    for group in groups.to_pylist() if kept else ():
        shard = below.shard(group)
        count = aggregate.rows_in(shard, group)
        left -= count
        if left < 0:
            return None
        named = [ids for ordered in kept for ids in ordered.rows_of(shard, group)]
        rows = pa.concat_arrays([*found[:1], *named]).unique()
        if len(rows) < count:
            return None
        found.append(rows)
    return Wanted(ids=pa.concat_arrays(found)) if kept else None


def _deciding(aggregate: Aggregate, made: Pieces, rows: pa.Table, groups: pa.BinaryArray) -> Mask:
    found = np.zeros(rows.num_rows, bool)
    if not rows.num_rows:
        return found
    if aggregate.groups:
        found |= times_of(groups) == 1
    for number, call in enumerate(aggregate.calls, len(aggregate.groups)):
        if number in made.matters:
            found |= _decide_call(aggregate, call, rows, groups)
    return found


def _decide_call(aggregate: Aggregate, call: Call, rows: pa.Table, groups: pa.BinaryArray) -> Mask:
    """Rows without which the result of a call is another one, whatever other rows go."""
    if call.function == "count_rows":
        return np.ones(rows.num_rows, bool)
    argument = aggregate.arguments[call.argument]
    valid = np.ones(rows.num_rows, bool)
    for i in argument.inputs:
        valid &= column_of(rows, f"c{i}").is_valid().to_numpy(zero_copy_only=False)
    if call.function == "count":
        return valid
    if call.function == "sum":
        return valid & _one_signed(argument, rows, groups)
    if call.function not in ("count_distinct", "min", "max"):
        return np.zeros(rows.num_rows, bool)
    encoded = _encoded(argument, rows)
    alone = valid & (times_of(pc.binary_join_element_wise(groups, encoded, b"")) == 1)
    if call.function == "count_distinct":
        return np.asarray(alone)
    return np.asarray(alone & _outermost(groups, encoded, valid, call.function == "max"))


def _encoded(argument: Argument, rows: pa.Table) -> pa.BinaryArray:
    return KeyCodec(argument.types).encode([column_of(rows, f"c{i}") for i in argument.inputs])


def _outermost(
    groups: pa.BinaryArray, encoded: pa.BinaryArray, valid: Mask, greatest: bool
) -> Mask:
    """Which rows have the least, or the greatest, value of their group."""
    there = pa.array(valid)
    data = pa.table([groups.filter(there), encoded.filter(there)], names=["g", "v"])
    function = "max" if greatest else "min"
    found = data.group_by("g").aggregate([("v", function)])
    extremes = pc.binary_join_element_wise(
        column_of(found, "g"), column_of(found, f"v_{function}"), b""
    )
    mine = pc.binary_join_element_wise(groups, encoded, b"")
    return np.asarray(pc.is_in(mine, value_set=extremes).to_numpy(zero_copy_only=False), bool)


def _one_signed(argument: Argument, rows: pa.Table, groups: pa.BinaryArray) -> Mask:
    """Rows with a value that is not zero, in groups whose values have one sign; no doubles, which
    may be too small to be seen in a sum.
    """
    if argument.types[0].name == "double":
        return np.zeros(rows.num_rows, bool)
    values = column_of(rows, f"c{argument.inputs[0]}")
    signs = np.sign(values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    codes = groups.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    up = np.bincount(codes, signs > 0)[codes] > 0
    down = np.bincount(codes, signs < 0)[codes] > 0
    return np.asarray((signs != 0) & (up != down))
