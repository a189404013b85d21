"""A plan evaluated on whole relations, one small query per node: what its operators must maintain.

Beside the rows it holds what the planner claims: identities are unique, a `unique` arrangement has
one row per key, a sink keyed by identity has the identity of its columns, and a local node finds
its rows where it needs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from belvedere.encoding import KeyCodec
from belvedere.expressions import connect
from belvedere.graph import Node
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.arrange import Arrange
from belvedere.operators.join import Join
from belvedere.operators.select import Select
from belvedere.operators.set_operation import SetOperation
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.operators.source import Source
from belvedere.operators.topk import TopK
from belvedere.sql.planner import PlannedView
from belvedere.types import SqlType

Row = tuple[Any, ...]
_MISSING = "'\\xFE'::BLOB"
_engine = connect()  # making one takes longer than a plan
_CALLS = {"count_rows": "count(*)", "count_distinct": "count(DISTINCT {})"}


class Reference:
    def __init__(
        self,
        planned: PlannedView,
        tables: Mapping[int, pa.Table],
        keys: Mapping[int, Sequence[int]],
    ) -> None:
        self.nodes = {n.id: n for n in planned.nodes}
        self.columns = planned.columns
        self.tables, self.keys = tables, keys
        self.made: dict[int, pa.Table] = {}

    def rows(self) -> Counter[Row]:
        """The rows of the view, with how often each occurs."""
        for node in self.nodes.values():
            self.made[node.id] = self._evaluate(node)
            _check_unique(self.made[node.id].column("_id").to_pylist(), f"identities of {node}")
        last = self.made[max(self.nodes)]
        return Counter(zip(*(last.column(i).to_pylist() for i in self.columns), strict=True))

    def _evaluate(self, node: Node) -> pa.Table:
        inputs = [pa.concat_tables([self.made[i] for i in port]) for port in node.inputs]
        rules: dict[type, Callable[..., pa.Table]] = {
            Source: self._source,
            Select: self._select,
            Aggregate: self._aggregate,
            Arrange: self._arrange,
            Join: self._join,
            TopK: self._top,
            SetOperation: self._set_operation,
            KeyedSink: self._keyed,
            BagSink: self._bag,
        }
        found = rules[type(node.operator)](node.operator, *inputs)
        if node.local and not isinstance(node.operator, Join | TopK):
            places = dict(
                zip(
                    inputs[0].column("_id").to_pylist(),
                    inputs[0].column("_k").to_pylist(),
                    strict=True,
                )
            )
            for identity, key in zip(
                found.column("_id").to_pylist(), found.column("_k").to_pylist(), strict=True
            ):
                assert places[identity] == key, f"{node} is not local"
        return found

    def _query(self, text: str, **tables: pa.Table) -> pa.Table:
        for name, table in tables.items():
            _engine.register(name, table)
        return _engine.sql(text).to_arrow_table()

    def _source(self, operator: Source) -> pa.Table:
        table, key = self.tables[operator.table], self.keys[operator.table]
        ids = _encoded(
            [operator.types[i] for i in key],
            [table.column(i) for i in key],
            table.num_rows,
            normalize=False,
        )
        return _named(table.columns, ids, ids)

    def _select(self, operator: Select, rows: pa.Table) -> pa.Table:
        places = dict(
            zip(rows.column("_id").to_pylist(), rows.column("_k").to_pylist(), strict=True)
        )
        changes = rows.drop_columns(["_k"]).append_column(
            "_w", pa.array([1] * rows.num_rows, pa.int64())
        )
        found, errors = operator.apply(changes)
        assert errors is None or (operator.errors and not errors.num_rows)
        ids = found.column("_id").to_pylist()
        tag = 1 if operator.tag >= 0 else 0
        return _named(
            found.drop_columns(["_w", "_id"]).columns, ids, [places[i[tag:]] for i in ids]
        )

    def _aggregate(self, operator: Aggregate, rows: pa.Table) -> pa.Table:
        groups = [f"c{i}" for i in range(len(operator.groups))]
        calls = []
        for call in operator.calls:
            inputs = (
                [f"c{i}" for i in operator.arguments[call.argument].inputs]
                if call.argument >= 0
                else []
            )
            tuple_ = f"({', '.join(inputs)})" if len(inputs) > 1 else "".join(inputs)
            text = _CALLS.get(call.function, call.function + "({})").format(tuple_)
            calls.append(f"CAST({text} AS {call.type.duckdb})")
        columns = ", ".join([*groups, *calls]) or "1"
        found = self._query(f"SELECT {columns} FROM rows {_clause('GROUP BY', groups)}", rows=rows)
        data = found.columns[: len(operator.types)]
        ids = _encoded(operator.groups, data[: len(groups)], found.num_rows)
        return _named(
            [*_decoded(operator.groups, ids), *_typed(data, operator.types)[len(groups) :]],
            ids,
            ids,
        )

    def _arrange(self, operator: Arrange, rows: pa.Table) -> pa.Table:
        assert [c.type for c in rows.columns[:-2]] == [t.arrow for t in operator.types]
        keys = _encoded(operator.types[: operator.key], rows.columns[: operator.key], rows.num_rows)
        if operator.unique:
            _check_unique(keys, f"keys of {operator}")
        return _named(rows.columns[:-2], rows.column("_id"), keys)

    def _join(self, operator: Join, left: pa.Table, right: pa.Table) -> pa.Table:
        count, a, b = operator.left.key, len(operator.left.types), len(operator.right.types)
        signs = ["IS NOT DISTINCT FROM" if safe else "=" for safe in operator.null_safe]
        on = " AND ".join(f"l.c{i} {sign} r.c{i}" for i, sign in enumerate(signs)) or "TRUE"
        rest = [f"r.c{i} AS c{a + i - count}" for i in range(count, b)]
        mine = ", ".join([*(f"l.c{i}" for i in range(a)), *rest, "l._id AS lid", "r._id AS rid"])
        only = f"WHERE {operator.condition.sql}" if operator.condition else ""
        pairs = self._query(
            f"SELECT * FROM (SELECT {mine} FROM l JOIN r ON {on}) {only}", l=left, r=right
        )
        lonely = ", ".join(
            [
                *(f"l.c{i}" for i in range(a)),
                *(f"NULL AS c{a + i - count}" for i in range(count, b)),
            ]
        )
        absent = [
            *(f"r.c{i}" for i in range(count)),
            *(f"NULL AS c{i}" for i in range(count, a)),
            *rest,
        ]
        parts = {
            "inner": "SELECT * FROM pairs",
            "left": (
                f"SELECT {lonely}, _id AS lid, NULL AS rid FROM l WHERE _id NOT IN (SELECT lid FROM"
                " pairs)"
            ),
            "right": (
                f"SELECT {', '.join(absent)}, NULL AS lid, _id AS rid FROM r WHERE _id NOT IN"
                " (SELECT rid FROM pairs)"
            ),
            "anti": (
                f"SELECT {', '.join(f'c{i}' for i in range(a))}, _id AS lid FROM l WHERE _id NOT IN"
                " (SELECT lid FROM pairs)"
            ),
            "semi": (
                f"SELECT {', '.join(f'c{i}' for i in range(a))}, _id AS lid FROM l WHERE _id IN"
                " (SELECT lid FROM pairs)"
            ),
        }
        kinds = {"left": ["inner", "left"], "full": ["inner", "left", "right"]}.get(
            operator.kind, [operator.kind]
        )
        both = f"coalesce(lid, {_MISSING}) || coalesce(rid, {_MISSING})"
        identity = {"left": "lid", "right": "rid", "both": both}[operator.identity]
        union = " UNION ALL ".join(parts[kind] for kind in kinds)
        found = self._query(
            f"SELECT *, {identity} AS _id FROM ({union})", l=left, r=right, pairs=pairs
        )
        types = [
            *operator.left.types,
            *([] if operator.kind in ("semi", "anti") else operator.right.types[count:]),
        ]
        data = _typed([found.column(f"c{i}") for i in range(len(types))], types)
        return _named(
            data, found.column("_id"), _encoded(types[:count], data[:count], found.num_rows)
        )

    def _top(self, operator: TopK, rows: pa.Table) -> pa.Table:
        arranged = operator.rows
        keys = [f"c{i}" for i in range(arranged.key)]
        order = [
            f"c{arranged.key + i} {'DESC NULLS LAST' if down else 'ASC NULLS FIRST'}"
            for i, down in enumerate(arranged.order)
        ]
        window = f"{_clause('PARTITION BY', keys)} ORDER BY {', '.join([*order, '_id'])}"
        text = f"SELECT *, CAST(row_number() OVER ({window}) AS INTEGER) AS rn FROM rows"
        found = self._query(f"SELECT * FROM ({text}) WHERE rn <= {operator.limit}", rows=rows)
        data = [found.column(f"c{i}") for i in range(len(arranged.types))] + (
            [found.column("rn")] if operator.rank else []
        )
        return _named(data, found.column("_id"), found.column("_k"))

    def _set_operation(self, operator: SetOperation, left: pa.Table, right: pa.Table) -> pa.Table:
        names = ", ".join(f"c{i}" for i in range(len(operator.types)))
        word = f"{operator.kind} {'ALL' if operator.all else ''}"
        found = self._query(f"SELECT {names} FROM l {word} SELECT {names} FROM r", l=left, r=right)
        keys = _encoded(operator.types, found.columns, found.num_rows)
        seen: Counter[bytes] = Counter()
        ids = []
        for key in keys:
            seen[key] += 1
            ids.append(key + seen[key].to_bytes(8, "big") if operator.all else key)
        return _named(_decoded(operator.types, keys), ids, keys)

    def _keyed(self, operator: KeyedSink, rows: pa.Table) -> pa.Table:
        keys = _encoded(
            [operator.types[i] for i in operator.key],
            [rows.column(i) for i in operator.key],
            rows.num_rows,
            normalize=False,
        )
        _check_unique(keys, f"keys of {operator}")
        if operator.by_id:
            assert keys == rows.column("_id").to_pylist(), (
                f"{operator} is not keyed by its identity"
            )
        assert sorted((*operator.key, *operator.value)) == list(range(len(operator.types)))
        return _named(rows.columns[:-2], rows.column("_id"), keys)

    def _bag(self, operator: BagSink, rows: pa.Table) -> pa.Table:
        assert sorted(operator.order) == list(range(len(operator.types)))
        keys = _encoded(
            [operator.types[i] for i in operator.order],
            [rows.column(i) for i in operator.order],
            rows.num_rows,
        )
        return _named(rows.columns[:-2], rows.column("_id"), keys)


def _clause(words: str, columns: Sequence[str]) -> str:
    return f"{words} {', '.join(columns)}" if columns else ""


def _encoded(
    types: Sequence[SqlType], columns: Sequence[pa.ChunkedArray], rows: int, normalize: bool = True
) -> list[bytes]:
    data = _typed(columns, types)
    keys: list[bytes] = KeyCodec(tuple(types), normalize=normalize).encode(data, rows).to_pylist()
    return keys


def _decoded(types: Sequence[SqlType], keys: Sequence[bytes]) -> list[pa.Array]:
    """The columns of keys, in which -0.0 is 0.0."""
    return KeyCodec(tuple(types)).decode(pa.array(keys, pa.binary())) if types else []


def _typed(columns: Sequence[pa.ChunkedArray], types: Sequence[SqlType]) -> list[pa.Array]:
    return [pa.array(c.to_pylist(), t.arrow) for c, t in zip(columns, types, strict=True)]


def _named(columns: Sequence[Any], ids: Any, keys: Any) -> pa.Table:
    binary = [
        pa.array(x.to_pylist() if hasattr(x, "to_pylist") else x, pa.binary()) for x in (ids, keys)
    ]
    return pa.table(
        [*columns, *binary], names=[*(f"c{i}" for i in range(len(columns))), "_id", "_k"]
    )


def _check_unique(values: Sequence[bytes], what: str) -> None:
    assert len(set(values)) == len(values), f"not unique: {what}"
