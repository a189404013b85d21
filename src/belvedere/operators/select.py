"""Select: rows that satisfy a condition, with computed columns.

    d(select(A)) = select(dA)

Linear and stateless: a change of the input is a change of the output. Cost: O(|dA|), one DuckDB
query per batch for what is computed; columns that are only passed on are not touched. A row whose
expression raises becomes an error row (rule R9), with the weight of its change, so the retraction
of the row takes the error back. The same happens to a row whose record key would be longer than the
store allows, which is `longest_key`: `keys` names the outputs that form such keys. There are none
where the store takes keys of any length, and then nobody looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from belvedere.encoding import KeyCodec, too_long
from belvedere.evaluation import evaluate
from belvedere.libraries import duckdb, np, npt, pa, pc
from belvedere.operators.base import (
    CAME_LATER,
    ID,
    USERS_WORDS,
    WEIGHT,
    Applied,
    Identity,
    NewId,
    Stateless,
    StateTable,
    Wording,
    column_of,
    columns,
)
from belvedere.operators.errors import error_rows, error_state
from belvedere.operators.lineage import Below, Gap, Pieces, Wanted
from belvedere.stores.base import TableId
from belvedere.types import SqlType

_END = (1 << 31) - 1
_MANY = 200_000  # rows of which not all values of all operators should be in memory at once
_FEW = 10_000  # rows for which computing what a condition drops again costs less than a query
# bytes of a key, where a plan says nothing: all that stores took before it could say more
SHORT_KEY = 503
_KEY_OVERHEAD = 18  # bytes that a column may add to a key besides its text, at most
Values: TypeAlias = "Mapping[str, pa.ChunkedArray]"  # by the text of the expression
IDENTITY = -1  # stands for the identity of a row where columns form a record key
_COLUMN = re.compile(r"""'(?:[^']|'')*'|\bc(\d+)\b""")  # a string, which names none, or a column


@dataclass(frozen=True, slots=True)
class Expression:
    """A lowered expression: DuckDB SQL over the input's columns, its type, and the text the user
    wrote.

    `column` is the number of the input column if the expression only passes it on, else -1.
    """

    sql: str
    type: SqlType
    text: str = field(metadata=USERS_WORDS)
    raises: bool = False
    column: int = -1

    @property
    def computed(self) -> bool:
        return self.column < 0


@lru_cache(maxsize=4096)
def columns_read(expression: Expression) -> tuple[int, ...]:
    """The numbers of the input columns that an expression reads.

    The catalog keeps only the text, in which columns are called c0, c1, ...
    """
    found = (match[1] for match in _COLUMN.finditer(expression.sql))
    return tuple(sorted({int(number) for number in found if number is not None}))


@dataclass(frozen=True, slots=True)
class Select(Stateless):
    condition: Expression | None
    outputs: tuple[Expression, ...]
    errors: TableId = 0
    keys: tuple[tuple[int, ...], ...] = ()
    # of a branch of UNION ALL: a byte before the identity, so that branches stay apart
    tag: int = -1
    longest_key: int = field(default=SHORT_KEY, metadata=CAME_LATER)

    def passed_on(self) -> tuple[int, ...] | None:
        if self.condition is not None or self.tag >= 0 or self.error_table():
            return None
        return tuple(e.column for e in self.outputs)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All that may raise, in the order in which they are tried: their place is the number kept
        in error records.
        """
        return (*([self.condition] if self.condition else []), *self.outputs)

    # ------------------------------------------------------------ what it says of itself

    def columns_read(self) -> frozenset[int]:
        passed = {e.column for e in self.outputs if not e.computed}
        return frozenset(passed.union(*map(columns_read, self.expressions)))

    def tables(self) -> tuple[StateTable, ...]:
        return (error_state(self.errors),) if self.errors else ()

    def with_tables(self, new_id: NewId) -> Select:
        return replace(self, errors=new_id()) if self.errors else self

    def error_table(self) -> TableId:
        return self.errors

    def describe(self, number: int) -> str:
        if number < len(self.expressions):
            return self.expressions[number].text
        return f"the key of this row is longer than {self.longest_key} bytes"

    def explain(self, words: Wording) -> str:
        condition = f"{words.condition} {self.condition.text}; " if self.condition else ""
        outputs = (_named(e, words.names.get(i)) for i, e in enumerate(self.outputs))
        return condition + (", ".join(outputs) or "nothing but the rows themselves")

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(e.text for e in self.outputs)

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return inputs[0]

    # ------------------------------------------------------------ what it does

    def apply(self, changes: pa.Table) -> Applied:
        return next(self.apply_all([self], changes))

    @classmethod
    def apply_all(cls, operators: Sequence[Select], changes: pa.Table) -> Iterator[Applied]:
        """A query costs about as much as a thousand rows, so there is one for all of them."""
        together = [select.joins_in(changes.num_rows) for select in operators]
        joining = [s for s, joins in zip(operators, together, strict=True) if joins]
        values = _compute_once(joining, changes)
        for select, joins in zip(operators, together, strict=True):
            yield _of_all(select, changes, values) if joins else select.in_steps(changes)

    def joins_in(self, rows: int) -> bool:
        """Whether its expressions may be computed for all rows at once, together with those of
        others.
        """
        if rows > _MANY or any(e.raises for e in self.expressions):
            return False
        return self.condition is None or rows <= _FEW or not any(e.computed for e in self.outputs)

    def in_steps(self, changes: pa.Table) -> Applied:
        """First the condition, then the outputs of the rows that satisfy it; rows that raise become
        errors.
        """
        failures: list[pa.Table] = []
        if self.condition is not None and changes.num_rows:
            keep, changes = _evaluate([self.condition], changes, [0], failures)
            changes = changes.filter(keep[0])
        first = 1 if self.condition else 0
        computed = {first + i: e for i, e in enumerate(self.outputs) if e.computed}
        values: list[pa.ChunkedArray] = []
        if computed and changes.num_rows:
            values, changes = _evaluate([*computed.values()], changes, [*computed], failures)
        by_text = {
            e.sql: v for e, v in zip(computed.values(), values, strict=bool(values))
        }  # none if there are no rows
        return self.finish(changes, by_text, failures)

    def finish(self, changes: pa.Table, values: Values, failures: list[pa.Table]) -> Applied:
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

    # ------------------------------------------------------------ of which rows its rows are made

    @property
    def _passed(self) -> dict[int, int]:
        """The outputs that are only passed on, and which column of the input each is."""
        return {i: e.column for i, e in enumerate(self.outputs) if not e.computed}

    @property
    def grows(self) -> bool:
        return True

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        """Values that are computed do not say what they were computed of."""
        ids = None if wanted.ids is None else self._ids_below(wanted.ids)
        return (replace(wanted.among(self._passed), ids=ids),)

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        if self.tag >= 0:
            made = made.where(pc.starts_with(made.ids, bytes([self.tag])).to_numpy(False))
        types = [self.outputs[i].type for i in self._passed]
        (wanted,) = self.sought(Wanted.like(made.rows, [*self._passed], types, ids=True))
        assert wanted is not None  # a Select says it of its one port
        found = below.find(0, wanted)
        deciding = Wanted(ids=self._ids_below(made.ids.filter(pa.array(made.decides))))
        matters = frozenset(self._passed[i] for i in made.matters if i in self._passed)
        return (Pieces(found, deciding.holds(found), matters),)

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        (sought,) = self.sought(wanted)
        assert sought is not None  # a Select says it of its one port
        rows = below.find(0, sought)
        if not rows.num_rows:
            return Gap("", 0, sought)
        weight = pa.array(np.ones(rows.num_rows, np.int64))
        passing, _ = self.apply(rows.append_column(WEIGHT, weight))
        if not passing.num_rows and self.condition is not None:
            return Gap(f"{self.condition.text} is not true of it", 0, rows=rows)
        computed = [i for i in wanted.columns if self.outputs[i].computed]
        texts = ", ".join(self.outputs[i].text for i in computed)
        return Gap(f"{texts or 'the row'} has another value", 0, rows=rows)

    def _ids_below(self, ids: pa.BinaryArray) -> pa.BinaryArray:
        """Identities of the input; of a branch of UNION ALL only those that are of this one."""
        if self.tag < 0:
            return ids
        return pc.binary_slice(ids.filter(pc.starts_with(ids, bytes([self.tag]))), 1, _END)

    # ------------------------------------------------------------ keys that a store cannot take

    def _without_long_keys(
        self, table: pa.Table, key: tuple[int, ...], failures: list[pa.Table]
    ) -> pa.Table:
        if self._surely_fits(table, key):
            return table
        bad = too_long(self._record_keys(table, key), self.longest_key)
        rows = table.filter(bad)
        if rows.num_rows:
            failures.append(self._long_key_errors(rows))
        return table.filter(pc.invert(bad))

    def _surely_fits(self, table: pa.Table, key: tuple[int, ...]) -> bool:
        """Whether the longest texts together would make a key that is short enough, even if every
        byte had to be escaped.
        """
        texts = [ID if i == IDENTITY else f"c{i}" for i in key if self._is_text(i)]
        longest = sum(pc.max(pc.binary_length(table.column(name))).as_py() or 0 for name in texts)
        return bool(2 * longest + _KEY_OVERHEAD * len(key) <= self.longest_key)

    def _is_text(self, column: int) -> bool:
        return column == IDENTITY or self.outputs[column].type.name in ("string", "binary")

    def _record_keys(self, table: pa.Table, key: tuple[int, ...]) -> pa.BinaryArray:
        numbers = [i for i in key if i != IDENTITY]
        codec = KeyCodec(tuple(self.outputs[i].type for i in numbers))
        keys = codec.encode([column_of(table, f"c{i}") for i in numbers], rows=table.num_rows)
        if IDENTITY in key:
            keys = pc.binary_join_element_wise(keys, column_of(table, ID), b"")
        return keys

    def _long_key_errors(self, rows: pa.Table) -> pa.Table:
        number = pa.array(np.full(rows.num_rows, len(self.expressions), np.int32))
        ids = column_of(rows, ID)
        if self.tag >= 0:  # errors are known by what the row is below
            ids = pc.binary_slice(ids, 1, _END)
        return error_rows(ids, column_of(rows, WEIGHT), number)


def _named(expression: Expression, name: str | None) -> str:
    """An output as SELECT would list it; `name` is what the view calls it."""
    if name is None or _plain_name(expression).lower() == name.lower():
        return expression.text if name is None else name
    return f"{expression.text} AS {name}"


def _plain_name(expression: Expression) -> str:
    """The name of a column that is passed on, without its table; the text of anything else."""
    if expression.computed:
        return expression.text
    return expression.text.split(".")[-1].strip("`")


def _compute_once(selects: Sequence[Select], changes: pa.Table) -> Values:
    """The values of all that is computed in any of them, for all rows."""
    wanted = {e.sql: e for select in selects for e in select.expressions if e.computed}
    if not wanted or not changes.num_rows:
        return {}
    values = _query([*wanted.values()], changes)
    return dict(zip(wanted, values, strict=True))


def _of_all(select: Select, changes: pa.Table, values: Values) -> Applied:
    if select.condition is None or not changes.num_rows:
        return select.finish(changes, values, [])
    keep = _value(select.condition, changes, values)
    mine = {e.sql: values[e.sql].filter(keep) for e in select.outputs if e.computed}
    return select.finish(changes.filter(keep), mine, [])


def _value(expression: Expression, changes: pa.Table, values: Values) -> pa.ChunkedArray:
    if not expression.computed:
        return changes.column(f"c{expression.column}")
    if not changes.num_rows:
        return pa.chunked_array([], expression.type.arrow)
    return values[expression.sql]


def _evaluate(
    expressions: Sequence[Expression],
    changes: pa.Table,
    numbers: Sequence[int],
    failures: list[pa.Table],
) -> tuple[list[pa.ChunkedArray], pa.Table]:
    """Values of the expressions for the rows that raise nothing, and these rows; error rows go to
    `failures`, with the number of the first expression that raises.
    """
    try:
        return _query(expressions, changes), changes
    except duckdb.Error:
        if not any(e.raises for e in expressions):
            raise
    raising = _first_raising(expressions, changes, numbers)
    bad = pa.array(raising >= 0)
    rows = changes.filter(bad)
    failures.append(
        error_rows(column_of(rows, ID), column_of(rows, WEIGHT), pa.array(raising).filter(bad))
    )
    good = changes.filter(pc.invert(bad))
    if not good.num_rows:
        return [pa.chunked_array([], e.type.arrow) for e in expressions], good
    return _query(expressions, good), good


def _first_raising(
    expressions: Sequence[Expression], changes: pa.Table, numbers: Sequence[int]
) -> npt.NDArray[np.int32]:
    """Per row the number of the first expression that raises for it, -1 if none does."""
    tests = ", ".join(f"TRY({{'v': {e.sql}}}) IS NULL AS x{i}" for i, e in enumerate(expressions))
    raised = evaluate(f"SELECT {tests} FROM changes", changes)
    first = np.full(changes.num_rows, -1, np.int32)
    for i in reversed(range(len(expressions))):  # so that the first one is assigned last
        first[raised.column(i).to_numpy()] = numbers[i]
    return first


def _query(expressions: Sequence[Expression], changes: pa.Table) -> list[pa.ChunkedArray]:
    wanted = ", ".join(f"{e.sql} AS x{i}" for i, e in enumerate(expressions))
    return _typed(evaluate(f"SELECT {wanted} FROM changes", changes), expressions)


def _typed(table: pa.Table, expressions: Sequence[Expression]) -> list[pa.ChunkedArray]:
    return [
        column if column.type == e.type.arrow else column.cast(e.type.arrow)
        for column, e in zip(table.columns, expressions, strict=True)
    ]
