"""What every part of planning shares: relations in sight, the nodes so far, fresh keys, and the way
back to the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from belvedere.sql.front.binding import Field, text_of
from belvedere.sql.front.names import Names
from belvedere.sql.front.sources import Answer
from belvedere.sql.front.values import in_words
from belvedere.sql.plan.nodes import Nodes
from belvedere.sql.plan.relation import Relation
from belvedere.sql.planned import TableInfo, ViewInfo

# A planned query: its columns, and the relation that has a value for each.
Planned = Answer[Relation]


@dataclass(frozen=True, slots=True)
class Cte:
    query: exp.Expr
    alias: exp.Expr
    context: Context  # as of its definition


@dataclass(frozen=True, slots=True)
class Context:
    tables: Mapping[str, TableInfo]  # by lower-case name
    views: Mapping[str, ViewInfo]
    answer: Callable[[exp.Expr, Context], Planned]
    related: Callable[[exp.Subquery, Context], Planned]  # a join in parentheses
    nodes: Nodes = field(default_factory=Nodes)
    numbers: count[int] = field(default_factory=count)
    labels: dict[str, str] = field(default_factory=dict)  # the user's names of bound columns
    # ORDER BYs and what makes them total
    ties: dict[int, tuple[exp.Expr, list[exp.Expr]]] = field(default_factory=dict)
    reads: dict[str, None] = field(default_factory=dict)  # the views that the query names
    used: set[int] = field(default_factory=set)  # the queries of WITH that something names
    # definitions of WITH that nothing names
    unused: dict[int, exp.Expr] = field(default_factory=dict)
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    # False for a SELECT of another view, which was checked when that view was created
    created: bool = True
    outer: Names | None = None
    beside: Names | None = None

    def fresh(self, relation: str, name: str) -> Field:
        """A new column that the user calls `name`."""
        made = Field(f"f{next(self.numbers)}", relation, name)
        self.labels[made.text] = name
        return made

    def words(self, node: exp.Expr) -> str:
        """A bound expression in the user's words."""
        return self.label(text_of(node))

    def label(self, text: str) -> str:
        return in_words(text, self.labels)

    def inside(self, names: Names) -> Context:
        """The context of a subquery in a condition over `names`."""
        return replace(self, outer=names, beside=None)

    def apart(self, beside: Names | None) -> Context:
        """The context of a subquery in FROM, which does not see the
        columns around and beside it.
        """
        return replace(self, outer=None, beside=beside)

    def elsewhere(self) -> Context:
        """The context of another view's SELECT."""
        return replace(
            self, outer=None, beside=None, ctes={}, ties={}, reads={}, unused={}, created=False
        )

    def with_cte(self, name: str, query: exp.Expr, alias: exp.Expr) -> Context:
        return replace(self, ctes={**self.ctes, name.lower(): Cte(query, alias, self)})
