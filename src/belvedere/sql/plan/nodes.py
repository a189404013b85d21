"""The nodes of a plan so far.

Equal nodes over equal inputs are one (`graph.shape` says what equal means).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from belvedere.errors import Unsupported
from belvedere.graph import WANTED as WANTED
from belvedere.graph import Inputs, Node, shape
from belvedere.operators.base import Operator
from belvedere.operators.select import IDENTITY, SHORT_KEY, Select
from belvedere.sql.plan.identity import longest, of_columns
from belvedere.sql.plan.relation import (
    Branch,
    Identity,
    Relation,
    Value,
    column,
    conjunction,
    expression,
    sort_values,
)
from belvedere.types import SqlType

_BRANCHES = 250  # a tag is one byte, and some are taken
# characters of an expression that is rather computed once than written into every expression over
# it
_LONG = 1000
_ANY_LENGTH = 1 << 62  # bytes of a key: more than there can be

Key = tuple[int, ...]


class Nodes:
    """`longest_key` is what the store takes as the key of a record, in bytes; None: any length."""

    def __init__(self, longest_key: int | None = None) -> None:
        self.has_limit = longest_key is not None
        self.longest_key = _ANY_LENGTH if longest_key is None else longest_key
        self._made: list[Node] = []
        self._known: dict[tuple[str, Inputs, bool], int] = {}

    def add(self, operator: Operator, inputs: Inputs = (), local: bool = False) -> int:
        place = shape(operator), inputs, local
        if place not in self._known:
            self._made.append(Node(len(self._made) + 1, operator, inputs, local))
            self._known[place] = len(self._made)
        return self._known[place]

    def identity(self, columns: Sequence[tuple[str, SqlType]]) -> Identity:
        """Of rows that these columns tell apart, in a table that the store keeps by them."""
        return of_columns(columns, self.longest_key)

    def feed(
        self, relation: Relation, values: Sequence[Value], keys: Sequence[Key] = (), tag: int = -1
    ) -> tuple[int, ...]:
        """Selects that compute these values, one for each branch; `keys` are record keys that a
        consumer makes of them.

        `tag` is a byte before the identities of a relation with one branch; several are numbered.
        """
        if len(relation.branches) > _BRANCHES:
            raise Unsupported(
                f"a UNION ALL of more than {_BRANCHES} queries",
                "create views of its parts and unite those",
            )
        tagged = len(relation.branches) > 1
        keys = [key for key in keys if self._can_be_long(key, values, relation)]
        return tuple(
            self._select(b, i, values, keys, i if tagged else tag)
            for i, b in enumerate(relation.branches)
        )

    def _select(
        self,
        branch: Branch,
        number: int,
        values: Sequence[Value],
        keys: Sequence[Key],
        tag: int = -1,
    ) -> int:
        condition = conjunction(branch.tests)
        outputs = tuple(expression(v.each[number], v.text) for v in values)
        may_fail = (
            any(e.raises for e in outputs) or bool(condition and condition.raises) or bool(keys)
        )
        errors = WANTED if may_fail else 0
        limit = self.longest_key if self.has_limit else SHORT_KEY
        select = Select(condition, outputs, errors, tuple(keys), tag, limit)
        return self.add(select, ((branch.node,),))

    def settled(
        self, relation: Relation, needed: Iterable[str], words: Callable[[str], str]
    ) -> Relation:
        """The relation with long expressions computed once, by a Select of their own, if anything
        needs them.
        """
        texts = [text for text in needed if text in relation]
        if not any(len(b.values[text].sql) > _LONG for b in relation.branches for text in texts):
            return relation
        values = {text: relation.known(text, words(text)) for text in texts}
        columns = sort_values(values.values())
        numbers = {v.place: i for i, v in enumerate(columns)}
        branches = []
        for i, branch in enumerate(relation.branches):
            node = self._select(branch, i, columns, ())
            passed = {
                t: column(numbers[v.place], v.type, v.each[i].nullable) for t, v in values.items()
            }
            branches.append(Branch(node, passed))
        return replace(relation, branches=tuple(branches))

    def until(self, end: int) -> tuple[Node, ...]:
        """The nodes that the last one needs, numbered anew in an order
        in which inputs come first.
        """
        wanted = {end}
        for node in reversed(self._made):
            if node.id in wanted:
                wanted.update(node.below)
        kept = [n for n in self._made if n.id in wanted]
        numbers = {n.id: i + 1 for i, n in enumerate(kept)}
        return tuple(
            Node(
                numbers[n.id],
                n.operator,
                tuple(tuple(numbers[i] for i in p) for p in n.inputs),
                n.local,
            )
            for n in kept
        )

    def _can_be_long(self, key: Key, values: Sequence[Value], relation: Relation) -> bool:
        if not self.has_limit:
            return False
        limit = self.longest_key
        size = longest((values[i].type for i in key if i != IDENTITY), limit)
        if IDENTITY in key:
            size += relation.identity.longest if relation.identity else 2 * limit
        return size > limit
