"""Queries that are answered by the first rows that are found: a LIMIT over rows of one relation,
each by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

# clauses that look at more than one row at a time
_TOGETHER = (
    "with_",
    "joins",
    "laterals",
    "group",
    "having",
    "distinct",
    "order",
    "qualify",
)
_FEW = 1024  # rows to look at first, where a condition drops some of them


def takes_row_by_row(query: exp.Expr) -> bool:
    """Whether rows of the answer come from single rows of one relation, each by itself."""
    start = query.args.get("from_")
    if not isinstance(query, exp.Select) or start is None or not isinstance(start.this, exp.Table):
        return False
    if any(query.args.get(part) for part in _TOGETHER) or start.this.args.get("joins"):
        return False
    return not any(node is not query for node in query.find_all(exp.Query, exp.AggFunc, exp.Window))


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The answer has `count` rows at most, after `skipped` ones.

    `query` gives those too, and needs to be asked batch by batch.
    """

    query: exp.Expr
    count: int
    skipped: int
    has_condition: bool

    @property
    def wanted(self) -> int:
        return self.count + self.skipped

    @property
    def batch(self) -> int:
        """How many rows to read first."""
        return max(1, self.wanted, _FEW if self.has_condition else 0)


def first_rows(query: exp.Expr) -> FirstRows | None:
    """What a query with a LIMIT needs, if it can do with the first rows; the query has been
    translated, so its clauses are right.
    """
    limit, offset = query.args.get("limit"), query.args.get("offset")
    count = _number(limit)
    if count is None or not takes_row_by_row(query):
        return None
    skipped = _number(offset) or 0
    whole = query
    if offset is not None:
        whole = query.copy()
        whole.set("offset", None)
        whole.set("limit", exp.Limit(expression=exp.Literal.number(count + skipped)))
    return FirstRows(whole, count, skipped, query.args.get("where") is not None)


def _number(clause: exp.Expr | None) -> int | None:
    """None without a clause, and for ALL."""
    number = clause.expression if clause is not None else None
    return int(number.this) if isinstance(number, exp.Literal) else None
