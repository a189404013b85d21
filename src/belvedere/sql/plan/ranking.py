"""The first rows of groups: ROW_NUMBER() with a bound, and ORDER BY with LIMIT.

    Select (partition, order, rest) -> Arrange in that order -> TopK

Row numbers of a subquery wait until the query around it gives them a bound. Rows that are equal in
the order are told apart by their identity. The SQL text has no word for it, so the text by which a
view is verified gets the identity's columns at the end of its ORDER BY (`Context.ties`); where they
cannot be named there, the user has to make the order total.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.expressions import Typed
from belvedere.operators.arrange import Arrange
from belvedere.operators.select import IDENTITY
from belvedere.operators.topk import TopK
from belvedere.sql.front.binding import check_int, text_of
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.relation import (
    Branch,
    Place,
    Ranking,
    Relation,
    Test,
    Value,
    column,
    sort_values,
)
from belvedere.types import BOOLEAN, DOUBLE, INT

Order = tuple[tuple[Value, bool], ...]  # True: descending
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
}
_BOUND = (
    "keep the first rows: write rn <= 3, rn < 4 or rn = 1, with a whole number, in WHERE of a query"
    " around it or in QUALIFY"
)


def ordering(keys: Sequence[exp.Expr], relation: Relation, context: Context) -> Order:
    """Bound sort keys as columns whose encoding has that order: NULLs come first, or last where it
    is descending.
    """
    found: list[tuple[Value, bool]] = []
    for key in keys:
        assert isinstance(key, exp.Ordered)
        value = relation.value(key.this, context.words(key.this))
        descending, nulls_first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
        if value.nullable and nulls_first == descending:
            tests = tuple(Typed(f"({v.sql} IS NULL)", BOOLEAN, v.raises, False) for v in value.each)
            found.append((Value(tests, f"{value.text} IS NULL"), descending))
        found.append((value, descending))
    return tuple(found)


def plan_first_rows(
    relation: Relation,
    partition: Sequence[Value],
    order: Order,
    keep: Iterable[str],
    limit: int,
    rank: str,
    context: Context,
) -> Relation:
    """The first `limit` rows of each part, with the values `keep`; `rank` is the text of the row
    number, or "".
    """
    if limit < 1:
        return _no_rows(relation, rank)
    kept = {text: relation.known(text, context.label(text)) for text in keep}
    leaf = _leaf(partition, order, list(kept.values()))
    below = context.nodes.feed(relation, leaf.columns, [(*range(leaf.key), IDENTITY)])
    node = _add_topk(TopK(leaf.arrange(len(partition)), limit, bool(rank)), below, context)
    values = {text: column(leaf.places[v.place], v.type, v.nullable) for text, v in kept.items()}
    if rank:
        values[rank] = column(len(leaf.columns), INT, False)
    by = tuple(relation.equal(v) if v.type != DOUBLE else frozenset[str]() for v in partition)
    return Relation((Branch(node, values),), relation.identity, by, missing=relation.missing)


def _add_topk(operator: TopK, below: tuple[int, ...], context: Context) -> int:
    arranged = context.nodes.add(operator.rows, (below,))
    return context.nodes.add(operator, ((arranged,),), local=True)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The columns of an ordered arrangement: partition, order, and the rest that is kept.

    The first `key` of them are its key; `places` says which column holds a value.
    """

    columns: tuple[Value, ...]
    key: int
    descending: tuple[bool, ...]
    places: Mapping[Place, int]

    def arrange(self, partition: int) -> Arrange:
        """The operator that keeps them, under as many columns of the partition."""
        return Arrange(WANTED, tuple(v.type for v in self.columns), partition, self.descending)


def _leaf(partition: Sequence[Value], order: Order, kept: Sequence[Value]) -> _Leaf:
    """A value that partitions the rows does not order them. The rest stands in an order that does
    not depend on the query.
    """
    fixed = {v.place for v in partition}
    order = tuple((v, descending) for v, descending in order if v.place not in fixed)
    key = [*partition, *(v for v, _ in order)]
    # A value that stands twice is read from the first; a double that partitions has lost the sign
    # of zero, so it is kept once more.
    readable = [(i, v) for i, v in enumerate(key) if i >= len(partition) or v.type != DOUBLE]
    places = {v.place: i for i, v in reversed(readable)}
    rest = sort_values(v for v in kept if v.place not in places)
    places.update({v.place: len(key) + i for i, v in enumerate(rest)})
    return _Leaf((*key, *rest), len(key), tuple(d for _, d in order), places)


def _no_rows(relation: Relation, rank: str) -> Relation:
    """LIMIT 0, or a row number below 1."""
    nothing = [Test(Typed("FALSE", BOOLEAN, nullable=False), "false") for _ in relation.branches]
    branches = relation.where(nothing).branches
    if rank:
        branches = tuple(
            replace(b, values={**b.values, rank: Typed("CAST(0 AS INTEGER)", INT, nullable=False)})
            for b in branches
        )
    return replace(relation, branches=branches, ranking=None)


def plan_bound(
    relation: Relation, conditions: Sequence[exp.Expr], needed: Iterable[str], context: Context
) -> tuple[Relation, list[exp.Expr]]:
    """A relation with row numbers, cut by one of the conditions; and the conditions that are still
    to be tested.
    """
    ranking = relation.ranking
    assert ranking is not None
    key = ranking.key
    for number, node in enumerate(conditions):
        limit, whole = _bound(node, key)
        if limit is None:
            continue
        others = [c for i, c in enumerate(conditions) if i != number or not whole]
        wanted = dict.fromkeys(needed) | relation.used(others)
        keep = [text for text in wanted if text in relation and text != key]
        rank = key if key in wanted else ""
        cut = plan_first_rows(
            relation, ranking.partition, ranking.order, keep, limit, rank, context
        )
        return cut, others
    tests = [context.words(node) for node in conditions if key in relation.used([node])]
    raise unbounded(ranking, " AND ".join(tests))


def unbounded(ranking: Ranking, tests: str = "") -> Unsupported:
    return Unsupported(
        f"the window function {ranking.words} {f'with {tests} for' if tests else 'without'} a"
        " bound",
        _BOUND,
    )


def _bound(node: exp.Expr, key: str) -> tuple[int | None, bool]:
    """The largest row number that a condition lets pass, and whether it says no more than that.

    rn BETWEEN 1 AND n, rn <= n     n, and no more
    rn < n                          n - 1, and no more
    rn = n                          n, and no more if n is 1
    """
    node = node.unnest()
    if isinstance(node, exp.Between) and text_of(node.this) == key:
        return _number(node.args["high"]), _number(node.args["low"]) == 1
    kind, number = _comparison(node, key)
    if number is None:
        return None, False
    if kind is exp.LT:
        return number - 1, True
    return (number, kind is exp.LTE or number == 1) if kind in (exp.LTE, exp.EQ) else (None, False)


def _comparison(node: exp.Expr, key: str) -> tuple[type[exp.Expr], int | None]:
    """How a condition compares the row number, which is turned to the left, with a whole number;
    None if it does not.
    """
    kind: type[exp.Expr] = type(node)
    if not isinstance(node, exp.LTE | exp.LT | exp.GTE | exp.GT | exp.EQ):
        return kind, None
    left, right = node.this.unnest(), node.expression.unnest()
    if text_of(right) == key:
        kind = _TURNED.get(kind, kind)
        left, right = right, left
    return kind, _number(right) if text_of(left) == key else None


def _number(node: exp.Expr) -> int | None:
    return (
        int(node.this)
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
        else None
    )


def limit_of(query: exp.Expr) -> int:
    clause = query.args["limit"]
    number = (
        _number(clause.expression)
        if isinstance(clause, exp.Limit) and clause.expression is not None
        else None
    )
    if number is None:
        raise Unsupported(f"{text_of(clause).strip()}", "write LIMIT with a whole number")
    check_int(number, "LIMIT")
    return number


def make_total(
    order: exp.Expr,
    texts: Iterable[str],
    relation: Relation,
    nameable: Sequence[tuple[exp.Expr, str]],
    outputs: Iterable[str],
    context: Context,
) -> None:
    """Note what has to be added to an ORDER BY so that every engine orders as we do.

    `texts` are the values that the rows are partitioned and ordered by, `outputs` those that are
    seen of a row.
    """
    given = set(texts)
    if given.issuperset(outputs):
        return  # rows that are equal in the order are equal in all that is seen
    identity = relation.identity
    missing = [part for part in identity.parts if not part & given] if identity else []
    found = [next((node for node, text in nameable if text in part), None) for part in missing]
    if identity is None or None in found or (missing and not identity.ordered):
        raise Unsupported(
            "an ORDER BY that leaves open which of several rows comes first",
            "order by columns that make the order total",
        )
    if missing:
        context.ties[id(order)] = (
            order,
            [exp.Ordered(this=node, nulls_first=True) for node in found if node is not None],
        )
