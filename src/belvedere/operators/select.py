"""Select: rows that satisfy a condition, with computed columns.

    d(select(A)) = select(dA)

Linear and stateless: a change of the input is a change of the output. Cost: O(|dA|), one DuckDB
query per batch for what is computed; columns that are only passed on are not touched. A row whose
expression raises becomes an error row (rule R9), with the weight of its change, so the retraction
of the row takes the error back. The same happens to a row whose record key would be longer than a
store allows: `keys` names the outputs that form such keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from belvedere.encoding import MAX_KEY, KeyCodec, too_long
from belvedere.evaluation import evaluate
from belvedere.libraries import duckdb, np, pa, pc
from belvedere.operators.base import ID, WEIGHT, columns
from belvedere.operators.errors import error_rows
from belvedere.stores.base import TableId
from belvedere.types import SqlType

_END = (1 << 31) - 1
_MANY = 200_000  # rows of which not all values of all operators should be in memory at once
_FEW = 10_000  # rows for which computing what a condition drops again costs less than a query
Values: TypeAlias = "Mapping[str, pa.ChunkedArray]"  # by the text of the expression
IDENTITY = -1  # stands for the identity of a row where columns form a record key


@dataclass(frozen=True, slots=True)
class Expression:
    """A lowered expression: DuckDB SQL over the input's columns, its type, and the text the user
    wrote.

    `column` is the number of the input column if the expression only passes it on, else -1.
    """

    sql: str
    type: SqlType
    text: str
    raises: bool = False
    column: int = -1


@dataclass(frozen=True, slots=True)
class Select:
    condition: Expression | None
    outputs: tuple[Expression, ...]
    errors: TableId = 0
    keys: tuple[tuple[int, ...], ...] = ()
    # of a branch of UNION ALL: a byte before the identity, so that branches stay apart
    tag: int = -1

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All that may raise, in the order in which they are tried: their place is the number kept
        in error records.
        """
        return (*([self.condition] if self.condition else []), *self.outputs)

    def apply(self, changes: pa.Table) -> tuple[pa.Table, pa.Table | None]:
        return next(apply_all([self], changes))

    def joins_in(self, rows: int) -> bool:
        """Whether its expressions may be computed for all rows at once, together with those of
        others.
        """
        if rows > _MANY or any(e.raises for e in self.expressions):
            return False
        return self.condition is None or rows <= _FEW or all(e.column >= 0 for e in self.outputs)

    def in_steps(self, changes: pa.Table) -> tuple[pa.Table, pa.Table | None]:
        """First the condition, then the outputs of the rows that satisfy it; rows that raise become
        errors.
        """
        failures: list[pa.Table] = []
        if self.condition is not None and changes.num_rows:
            keep, changes = _evaluate([self.condition], changes, 0, failures)
            changes = changes.filter(keep[0])
        computed = [e for e in self.outputs if e.column < 0]
        first = 1 if self.condition else 0
        numbers = [first + i for i, e in enumerate(self.outputs) if e.column < 0]
        values: list[pa.ChunkedArray] = []
        if computed and changes.num_rows:
            values, changes = _evaluate(computed, changes, numbers, failures)
        return self.finished(
            changes, {e.sql: v for e, v in zip(computed, values, strict=bool(values))}, failures
        )

    def finished(
        self, changes: pa.Table, values: Values, failures: list[pa.Table]
    ) -> tuple[pa.Table, pa.Table | None]:
        """The changes that it emits, of rows that satisfy the condition and the values of its
        expressions for them.
        """
        data = [_value(e, changes, values) for e in self.outputs]
        ids = changes.column(ID)
        if self.tag >= 0:
            ids = pc.binary_join_element_wise(bytes([self.tag]), ids, b"")
        table = pa.table(
            [*data, changes.column(WEIGHT), ids], names=[*columns(len(data)), WEIGHT, ID]
        )
        for key in self.keys:
            table = self._without_long_keys(table, key, failures)
        return table, pa.concat_tables(failures) if failures else None

    def _without_long_keys(
        self, table: pa.Table, key: tuple[int, ...], failures: list[pa.Table]
    ) -> pa.Table:
        places = [i for i in key if i != IDENTITY]
        texts = [f"c{i}" for i in places if self.outputs[i].type.name in ("string", "binary")]
        texts += [ID] if IDENTITY in key else []
        longest = sum(pc.max(pc.binary_length(table.column(name))).as_py() or 0 for name in texts)
        if 2 * longest + 18 * len(key) <= MAX_KEY:  # even if every byte had to be escaped
            return table
        codec = KeyCodec(tuple(self.outputs[i].type for i in places))
        keys = codec.encode(
            [table.column(f"c{i}").combine_chunks() for i in places], rows=table.num_rows
        )
        if IDENTITY in key:
            keys = pc.binary_join_element_wise(keys, table.column(ID).combine_chunks(), b"")
        bad = too_long(keys)
        rows = table.filter(bad)
        if rows.num_rows:
            number = pa.array(np.full(rows.num_rows, len(self.expressions), np.int32))
            ids = rows.column(ID).combine_chunks()
            # errors are known by what the row is below
            ids = ids if self.tag < 0 else pc.binary_slice(ids, 1, _END)
            failures.append(error_rows(ids, rows.column(WEIGHT).combine_chunks(), number))
        return table.filter(pc.invert(bad))

    def describe(self, number: int) -> str:
        """What the error record's number stands for, in the user's words."""
        if number < len(self.expressions):
            return self.expressions[number].text
        return f"the key of this row is longer than {MAX_KEY} bytes"


def apply_all(
    selects: Sequence[Select], changes: pa.Table
) -> Iterator[tuple[pa.Table, pa.Table | None]]:
    """What each of them makes of the same changes.

    A query costs about as much as a thousand rows, so there is one for all.
    """
    together = [s.joins_in(changes.num_rows) for s in selects]
    wanted = {
        e.sql: e
        for s, joins in zip(selects, together, strict=True)
        if joins
        for e in s.expressions
        if e.column < 0
    }
    values: Values = {}
    if wanted and changes.num_rows:
        query = ", ".join(f"{sql} AS x{i}" for i, sql in enumerate(wanted))
        values = dict(
            zip(
                wanted,
                _typed(evaluate(f"SELECT {query} FROM changes", changes), list(wanted.values())),
                strict=True,
            )
        )
    for select, joins in zip(selects, together, strict=True):
        yield _of_all(select, changes, values) if joins else select.in_steps(changes)


def _of_all(select: Select, changes: pa.Table, values: Values) -> tuple[pa.Table, pa.Table | None]:
    if select.condition is None or not changes.num_rows:
        return select.finished(changes, values, [])
    keep = _value(select.condition, changes, values)
    mine = {e.sql: values[e.sql].filter(keep) for e in select.outputs if e.column < 0}
    return select.finished(changes.filter(keep), mine, [])


def _value(expression: Expression, changes: pa.Table, values: Values) -> pa.ChunkedArray:
    if expression.column >= 0:
        return changes.column(f"c{expression.column}")
    return (
        values[expression.sql] if changes.num_rows else pa.chunked_array([], expression.type.arrow)
    )


def _evaluate(
    expressions: Sequence[Expression],
    changes: pa.Table,
    numbers: int | Sequence[int],
    failures: list[pa.Table],
) -> tuple[list[pa.ChunkedArray], pa.Table]:
    """Values of the expressions for the rows that raise nothing, and these rows; error rows go to
    `failures`.
    """
    wanted = ", ".join(f"{e.sql} AS x{i}" for i, e in enumerate(expressions))
    try:
        return _typed(evaluate(f"SELECT {wanted} FROM changes", changes), expressions), changes
    except duckdb.Error:
        if not any(e.raises for e in expressions):
            raise
    places = [numbers] if isinstance(numbers, int) else numbers
    tests = ", ".join(f"TRY({{'v': {e.sql}}}) IS NULL AS x{i}" for i, e in enumerate(expressions))
    raised = evaluate(f"SELECT {tests} FROM changes", changes)
    which = np.full(changes.num_rows, -1, np.int32)
    for i in reversed(range(len(expressions))):
        which[raised.column(i).to_numpy()] = places[i]
    bad = pa.array(which >= 0)
    rows = changes.filter(bad)
    failures.append(
        error_rows(
            rows.column(ID).combine_chunks(),
            rows.column(WEIGHT).combine_chunks(),
            pa.array(which).filter(bad),
        )
    )
    good = changes.filter(pc.invert(bad))
    if not good.num_rows:
        return [pa.chunked_array([], e.type.arrow) for e in expressions], good
    return _typed(evaluate(f"SELECT {wanted} FROM changes", good), expressions), good


def _typed(table: pa.Table, expressions: Sequence[Expression]) -> list[pa.ChunkedArray]:
    return [
        column if column.type == e.type.arrow else column.cast(e.type.arrow)
        for column, e in zip(table.columns, expressions, strict=True)
    ]
