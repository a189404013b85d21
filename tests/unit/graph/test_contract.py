"""Every operator answers all that the engine asks, truly.

The instances are those of the golden plans, so what SQL can make is what is asked; an operator that
is registered and in none of them is noticed.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from belvedere.cost.trial import Trial, records
from belvedere.encoding import KeyCodec
from belvedere.encoding.one_key import prefix_length
from belvedere.errors import StoreError
from belvedere.explain import Texts
from belvedere.graph import (
    Node,
    bind,
    error_table,
    from_json,
    places,
    register,
    registered_operators,
    shape,
    state_tables,
    to_json,
)
from belvedere.operators.arrange import Arrange
from belvedere.operators.base import (
    ID,
    WEIGHT,
    Derived,
    Identity,
    IdentityPart,
    NewId,
    Operator,
    Origin,
    Stateful,
    Stateless,
    StateTable,
    Wording,
    columns,
)
from belvedere.sql.planned import PlannedView
from belvedere.sql.planner import plan_view
from belvedere.stores.base import TableId
from belvedere.types import BIGINT, STRING
from tests.golden.tables import TABLES, VIEWS
from tests.golden.test_plans import FILES, statement_of

# other tests may have registered theirs
OURS = [kind for kind in registered_operators() if kind.__module__.startswith("belvedere.")]
_FIRST_ID = 100  # of state tables; base tables have smaller ones


@cache
def plans() -> tuple[PlannedView, ...]:
    """All golden plans, bound one by one."""
    found = []
    for file in FILES:
        select, key = statement_of(file)
        planned = plan_view(select, key, [t.info for t in TABLES], VIEWS)
        ids = itertools.count(_FIRST_ID)
        found.append(replace(planned, nodes=bind(planned.nodes, {}, ids.__next__)))
    return tuple(found)


def nodes() -> Iterator[Node]:
    return (node for planned in plans() for node in planned.nodes)


def operators() -> Iterator[Operator]:
    return (node.operator for node in nodes())


# ---------------------------------------------------------------- every class


def test_the_golden_plans_have_every_operator() -> None:
    assert {type(operator) for operator in operators()} == set(OURS)


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_an_operator_is_a_frozen_value_with_one_role(kind: type[Operator]) -> None:
    assert vars(kind)["__dataclass_params__"].frozen
    assert not kind.__abstractmethods__
    is_source = kind.base_table is not Operator.base_table
    assert is_source + issubclass(kind, Stateless) + issubclass(kind, Stateful) == 1


def test_an_operator_that_owes_an_answer_cannot_be_made() -> None:
    @dataclass(frozen=True)
    class Silent(Stateless):
        def apply(self, changes: pa.Table) -> tuple[pa.Table, pa.Table | None]:
            return changes, None

    with pytest.raises(TypeError, match="abstract"):
        Silent()  # type: ignore[abstract]  # that is the point


# ---------------------------------------------------------------- every instance


def test_operators_come_back_from_the_catalog() -> None:
    for operator in operators():
        assert from_json(json.loads(json.dumps(to_json(operator)))) == operator


def test_what_a_node_says_fits_what_it_emits() -> None:
    """As many words as columns, and types for every name of an identity."""
    emitting = set()
    for planned in plans():
        texts = Texts(planned, TABLES)
        identities: dict[int, Identity] = {}
        for node in planned.nodes:
            assert texts.describe(node)
            for table in trial_of(planned)[0][node.id]:
                emitted = [name for name in table.column_names if name.startswith("c")]
                assert len(texts.columns(node)) == len(emitted)
                emitting.add(type(node.operator))
            identities[node.id] = node.operator.identify(
                [(_KEYS[node.operator.base_table],)]
                if node.source
                else [identities[port[0]] for port in node.inputs]
            )
            assert all(len(part.names) == len(part.types) for part in identities[node.id])
    assert {kind for kind in OURS if issubclass(kind, Origin)} <= emitting


_KEYS = {
    t.id: IdentityPart(t.schema.key, tuple(c.type for c in t.schema.key_columns)) for t in TABLES
}


def test_who_can_raise_says_what_its_numbers_mean() -> None:
    able = [node.operator for node in nodes() if error_table(node)]
    assert able
    for operator in able:
        assert operator.describe(0)
        assert operator.error_table() in {table.id for table in operator.tables()}
    for operator in {type(o): o for o in operators() if not o.error_table()}.values():
        if type(operator).describe is Operator.describe:
            with pytest.raises(TypeError, match="no error records"):
                operator.describe(0)


# ---------------------------------------------------------------- state tables


def test_no_state_table_belongs_to_two_nodes() -> None:
    for planned in plans():
        tables = [table for node in planned.nodes for table in state_tables(node)]
        assert len(tables) == len(set(tables))
        assert all(table >= _FIRST_ID for table in tables)


def test_a_derived_operator_reads_the_tables_of_its_inputs() -> None:
    for planned in plans():
        by_id = {n.id: n for n in planned.nodes}
        for node in planned.nodes:
            if isinstance(node.operator, Derived):
                below = {t for i in node.below for t in state_tables(by_id[i])}
                assert {kept.table for kept in node.operator.kept()} == below


def test_what_an_origin_gives_rows_from_is_there() -> None:
    for planned in plans():
        written = {table for node in planned.nodes for table in state_tables(node)}
        for node in planned.nodes:
            if isinstance(node.operator, Origin):
                assert node.operator.kept()
                assert {kept.table for kept in node.operator.kept()} <= written


def test_nothing_is_loaded_from_a_sink() -> None:
    sink = next(n for n in nodes() if n.stateful and not isinstance(n.operator, Origin))
    with pytest.raises(TypeError, match="nothing can be loaded from"):
        _ = sink.origin


def test_equal_operators_have_one_shape_whatever_their_tables() -> None:
    for operator in operators():
        ids = itertools.count(1000)
        again = operator.with_tables(ids.__next__)
        assert shape(again) == shape(operator)
        before, after = ({t.id for t in o.tables()} for o in (operator, again))
        assert len(before) == len(after)
        assert not before & after


def sample(table: Any) -> pa.Table:
    """Some rows of a base table, as a source emits them."""
    made = {"string": "x\0y", "binary": b"\0", "boolean": True, "date": 7, "timestamp": 7}
    kinds = [column.type for column in table.schema.columns]
    rows = [[_value(made, kind.name, n) for kind in kinds] for n in (1, 2, 3)]
    rows[2] = [
        None if column.nullable else value
        for column, value in zip(table.schema.columns, rows[2], strict=True)
    ]
    arrays = [pa.array([row[i] for row in rows], kind.arrow) for i, kind in enumerate(kinds)]
    places = [table.schema.names.index(name) for name in table.schema.key]
    ids = KeyCodec(tuple(kinds[i] for i in places)).encode([arrays[i] for i in places])
    names = [*columns(len(arrays)), WEIGHT, ID]
    return pa.table([*arrays, pa.array([1] * len(rows), pa.int64()), ids], names=names)


def _value(made: dict[str, Any], kind: str, number: int) -> Any:
    value = made.get(kind, number)
    if kind == "decimal":
        return Decimal(number)
    return f"{value}{number}" if kind == "string" else value


@cache
def trial_of(planned: PlannedView) -> tuple[dict[int, list[pa.Table]], Trial]:
    """What each node emits for the samples, and what all of them write."""
    trial, emitted = Trial(slots=2), dict[int, list[pa.Table]]()
    base = {table.id: sample(table) for table in TABLES}
    for node in planned.nodes:
        fed = [[table for i in port for table in emitted[i]] for port in node.inputs]
        if node.source:
            emitted[node.id] = [base[node.operator.base_table]]
        elif isinstance(node.operator, Stateless):
            results = [node.operator.apply(changes)[0] for changes in fed[0]]
            emitted[node.id] = results
        else:
            assert isinstance(node.operator, Stateful)
            emitted[node.id] = trial.step(node.operator, fed)
    return emitted, trial


def test_records_are_made_of_what_the_tables_say() -> None:
    """Keys end where their columns end, or go on with an identity; a value is there if any is
    told.
    """
    looked_at = set()
    for planned in plans():
        written = trial_of(planned)[1].written
        for node in planned.nodes:
            for table in node.operator.tables():
                keys, values = records(written.get(table.id, []))
                if isinstance(node.operator, Arrange) and any(node.operator.order):
                    continue  # in descending order they are the inverted bytes
                assert len(keys) <= 1 or not table.single
                for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                    end = prefix_length(key, table.key)
                    assert end <= len(key) if table.identity else end == len(key)
                    assert bool(value) == bool(table.value)
                    looked_at.add(table.what)
    assert {"rows", "groups", "values", "counts of both sides", "counts of rows"} <= looked_at


# ---------------------------------------------------------------- operators from outside


@dataclass(frozen=True, slots=True)
class Several(Stateless):
    """An operator with tables in places of its own; a stateless one, because only that is asked."""

    many: tuple[TableId, ...]
    perhaps: TableId | None = None

    def tables(self) -> tuple[StateTable, ...]:
        kept = (*self.many, *([self.perhaps] if self.perhaps else []))
        return tuple(StateTable(table, "notes", (STRING,), (BIGINT,)) for table in kept)

    def with_tables(self, new_id: NewId) -> Several:
        many = tuple(new_id() for _ in self.many)
        return Several(many, new_id() if self.perhaps else None)

    def explain(self, words: Wording) -> str:
        return "takes notes"

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return inputs[0]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return inputs[0]

    def apply(self, changes: pa.Table) -> tuple[pa.Table, pa.Table | None]:
        return changes, None


@dataclass(frozen=True, slots=True)
class Forgetful(Several):
    """It has a table that `with_tables` does not know of."""

    def with_tables(self, new_id: NewId) -> Forgetful:
        return replace(self, many=tuple(new_id() for _ in self.many))


@pytest.mark.parametrize("operator", [Several((1, 1)), Several((1,), 1), Several((), 1)])
def test_every_table_gets_an_id_wherever_it_is_named(operator: Several) -> None:
    ids = itertools.count(_FIRST_ID)
    source = next(n for n in nodes() if n.source)
    plan = [source, *(Node(1000 + i, operator, ((source.id,),), bool(i)) for i in range(2))]
    bound = bind(plan, {}, ids.__next__)
    tables = [table for node in bound for table in state_tables(node)]
    assert len(tables) == 2 * len(operator.tables())
    assert len(set(tables)) == len(tables)
    assert all(table >= _FIRST_ID for table in tables)


def test_a_table_that_is_forgotten_is_noticed() -> None:
    source = next(n for n in nodes() if n.source)
    plan = [source, Node(1000, Forgetful((1,), 1), ((source.id,),))]
    with pytest.raises(TypeError, match="Forgetful names the state tables"):
        bind(plan, {}, itertools.count(_FIRST_ID).__next__)


def test_users_words_do_not_keep_nodes_apart() -> None:
    tables = [t.info for t in TABLES]
    one = plan_view("SELECT id, amount + 1 AS a FROM orders", (), tables)
    other = plan_view("SELECT  id, (amount+1) AS b FROM orders AS o", (), tables)
    ids = itertools.count(_FIRST_ID)
    known = places(bind(one.nodes, {}, ids.__next__))
    assert {n.id for n in bind(other.nodes, known, ids.__next__)} == {n.id for n in known.values()}


def test_a_name_belongs_to_one_class() -> None:
    taken: Any = dataclass(frozen=True)(type("Select", (), {}))
    with pytest.raises(TypeError, match=r"taken by belvedere\.operators\.select"):
        register(taken)
    with pytest.raises(TypeError, match="must be a dataclass"):
        register(int)


def test_an_operator_that_nobody_registered_is_named() -> None:
    with pytest.raises(StoreError, match=r"'Unheard'.* register it"):
        from_json({"is": "Unheard", "table": 1})
