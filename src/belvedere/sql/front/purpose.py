"""Who reads a query: a view, which is maintained, or a query, which is answered once.

Both read the same language. They differ in what they refuse and in the words for it, and in the few
places where one of them has to look at an expression before it is bound. Each back end has one
object of this kind (`VIEW` in `plan.refusal`, `QUERY` in `query.refusal`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

from sqlglot import exp

from belvedere.errors import SqlError

# Where a condition or a value stands; "" is the select list and all that is evaluated after it.
Clause = Literal["", "ON", "WHERE"]


class Purpose(ABC):
    name: ClassVar[Literal["view", "query"]]
    grouping: ClassVar[str] = ""  # what can be done instead of CUBE and the like
    aggregates: ClassVar[str]  # which aggregates there are

    @abstractmethod
    def refused(self, construct: str, instead: str = "") -> SqlError:
        """The refusal of a construct that is SQL, but not done here."""

    @abstractmethod
    def refused_argument(self, node: exp.Expr, name: str) -> SqlError:
        """The refusal of an argument of a node that nothing looks at."""

    @abstractmethod
    def refused_node(self, node: exp.Expr) -> SqlError:
        """The refusal of a node that is not known where it stands."""

    @abstractmethod
    def refused_join(self, node: exp.Join) -> SqlError:
        """The refusal of a kind of join."""

    @abstractmethod
    def refused_relation(self, node: exp.Expr) -> SqlError:
        """The refusal of something in FROM that is neither a table nor a query."""

    @abstractmethod
    def reword(self, error: SqlError, words: Callable[[str], str]) -> SqlError:
        """The error with `words` made of each of its texts."""

    @abstractmethod
    def check_subqueries(self, node: exp.Expr, clause: Clause) -> None:
        """Refuse subqueries that are not computed where they stand; `node` is not bound yet."""

    def value(self, node: exp.Expr) -> exp.Expr:
        """What is computed for a bound output or group."""
        return node

    def conditions(self, node: exp.Expr | None) -> list[exp.Expr]:
        """The conditions, not bound yet, that are tested one after the other."""
        return [node] if node is not None else []
