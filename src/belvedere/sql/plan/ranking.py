"""The first rows of groups: ROW_NUMBER() with a bound, and ORDER BY with LIMIT.

    Select (partition, order, rest) -> Arrange in that order -> TopK

Row numbers of a subquery wait until the query around it gives them a bound. Rows that are equal in
the order are told apart by their identity. The SQL text has no word for it, so the text by which a
view is verified gets the identity's columns at the end of its ORDER BY (`Context.ties`); where they
cannot be named there, the user has to make the order total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.expressions import Typed
from belvedere.operators.arrange import Arrange
from belvedere.operators.select import IDENTITY
from belvedere.operators.topk import TopK
from belvedere.sql.front.binding import check_int, text_of
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.relation import Branch, Ranking, Relation, Test, Value, column
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


def first_rows(
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
    fixed = {v.place for v in partition}
    order = tuple((v, d) for v, d in order if v.place not in fixed)
    columns = [*partition, *(v for v, _ in order)]
    places = {
        v.place: i
        for i, v in reversed(list(enumerate(columns)))
        if i >= len(partition) or v.type != DOUBLE
    }
    kept = {text: relation.known(text, context.label(text)) for text in keep}
    rest = sorted(
        {v.place: v for v in kept.values() if v.place not in places}.values(), key=lambda v: v.place
    )
    places.update({v.place: len(columns) + i for i, v in enumerate(rest)})
    everything = [*columns, *rest]
    below = context.nodes.feed(relation, everything, [(*range(len(columns)), IDENTITY)])
    rows = Arrange(
        WANTED, tuple(v.type for v in everything), len(partition), tuple(d for _, d in order)
    )
    arranged = context.nodes.add(rows, (below,))
    node = context.nodes.add(TopK(rows, limit, bool(rank)), ((arranged,),), local=True)
    values = {text: column(places[v.place], v.type, v.nullable) for text, v in kept.items()}
    if rank:
        values[rank] = column(len(everything), INT, False)
    by = tuple(relation.equal(v) if v.type != DOUBLE else frozenset[str]() for v in partition)
    return Relation((Branch(node, values),), relation.identity, by, missing=relation.missing)


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


def bounded(
    relation: Relation, conditions: Sequence[exp.Expr], needed: Iterable[str], context: Context
) -> tuple[Relation, list[exp.Expr]]:
    """A relation with row numbers, cut by one of the conditions; and the conditions that are still
    to be tested.
    """
    ranking = relation.ranking
    assert ranking is not None
    for number, node in enumerate(conditions):
        limit, whole = _bound(node, ranking.key)
        if limit is not None:
            others = [c for i, c in enumerate(conditions) if i != number or not whole]
            wanted = dict.fromkeys(needed) | relation.used(others)
            rank = ranking.key if ranking.key in wanted else ""
            keep = [text for text in wanted if text in relation and text != ranking.key]
            return (
                first_rows(relation, ranking.partition, ranking.order, keep, limit, rank, context),
                others,
            )
    tests = [context.words(node) for node in conditions if ranking.key in relation.used([node])]
    raise unbounded(ranking, " AND ".join(tests))


def unbounded(ranking: Ranking, tests: str = "") -> Unsupported:
    return Unsupported(
        f"the window function {ranking.words} {f'with {tests} for' if tests else 'without'} a"
        " bound",
        _BOUND,
    )


def _bound(node: exp.Expr, key: str) -> tuple[int | None, bool]:
    """The largest row number that a condition lets pass, and whether it says no more than that."""
    node = node.unnest()
    if isinstance(node, exp.Between) and text_of(node.this) == key:
        low, high = _number(node.args["low"]), _number(node.args["high"])
        return high, low == 1
    if not isinstance(node, exp.LTE | exp.LT | exp.GTE | exp.GT | exp.EQ):
        return None, False
    kind: type[exp.Expr] = type(node)
    left, right = node.this.unnest(), node.expression.unnest()
    if text_of(right) == key:
        kind = _TURNED.get(kind, kind)
        left, right = right, left
    number = _number(right)
    if text_of(left) != key or number is None or kind in (exp.GTE, exp.GT):
        return None, False
    return (number - 1, True) if kind is exp.LT else (number, kind is exp.LTE or number == 1)


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
