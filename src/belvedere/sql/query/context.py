"""What every part of a query's translation shares: the relations in sight, fresh names, and the way
back to the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from belvedere.sql.front.binding import Field
from belvedere.sql.front.names import Names
from belvedere.sql.front.sources import Answer
from belvedere.sql.names import unknown_relation
from belvedere.sql.query.refusal import QUERY
from belvedere.sql.query.stage import Output, Stage, Text, column_of
from belvedere.types import Schema


@dataclass(frozen=True, slots=True)
class Context:
    schemas: Mapping[str, Schema]  # by lower-case name
    answer: Callable[[exp.Expr, Context], Text]
    numbers: count[int] = field(default_factory=count)
    # definitions of common table expressions, in their order
    hoisted: list[str] = field(default_factory=list)
    # the user's names of bound columns, for messages
    labels: dict[str, str] = field(default_factory=dict)
    ctes: Mapping[str, Text] = field(default_factory=dict)
    outer: Stage | None = None

    def alias(self, prefix: str = "r") -> str:
        """A new name in the text for DuckDB."""
        return f"{prefix}{next(self.numbers)}"

    def fresh(self, name: str) -> Field:
        """A new column that the user calls `name`."""
        made = Field(self.alias("f"), "", name)
        self.labels[made.text] = name
        return made

    @property
    def around(self) -> Names:
        """No columns; those of the query around are found behind them."""
        return Names((), QUERY, self.outer.names if self.outer else None)

    def inside(self, stage: Stage) -> Context:
        """The context of a subquery in an expression over `stage`."""
        return replace(self, outer=stage)

    def relation(self, name: str) -> Text:
        lowered = name.lower()
        if lowered in self.ctes:
            return self.ctes[lowered]
        if lowered not in self.schemas:
            raise unknown_relation(name)
        outputs = tuple(
            Output(c.name, c.type, quoted(c.name)) for c in self.schemas[lowered].columns
        )
        return Text(quoted(relation_name(name)), outputs, is_table=True)

    def stage(self, text: Text) -> Answer[Stage]:
        """What stands in FROM; its columns have no relation's name yet."""
        alias = self.alias()
        fields = tuple(self.fresh(output.name) for output in text.outputs)
        values = {
            f.text: column_of(f"{alias}.{o.column}", o.type)
            for f, o in zip(fields, text.outputs, strict=True)
        }
        names = replace(self.around, fields=fields)
        return Answer(fields, Stage(f"{text.source} AS {alias}", names, values, self.outer))

    def with_cte(self, name: str, text: Text) -> Context:
        """A query under a name that the rest sees; DuckDB decides whether to compute it once."""
        alias = self.alias("cte")
        self.hoisted.append(f"{alias} AS ({text.sql})")
        hoisted = Text(alias, text.outputs, is_table=True)
        return replace(self, ctes={**self.ctes, name.lower(): hoisted})


def relation_name(name: str) -> str:
    """What a table or view is called in DuckDB."""
    return f"rel_{name.lower()}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
