"""FROM: the relations that stand in it, how each is joined to those before it, and which columns a name means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.operators.graph import Source
from belvedere.sql.binding import Field, bind, text_of
from belvedere.sql.dialect import parse
from belvedere.sql.names import qualified
from belvedere.sql.plan.conditions import conjuncts
from belvedere.sql.plan.context import Answer, Context
from belvedere.sql.plan.identity import of_columns
from belvedere.sql.plan.join import ANTI, FULL, INNER, LEFT, RIGHT, SEMI
from belvedere.sql.plan.names import Names
from belvedere.sql.plan.refusal import refuse_subqueries, unknown_table
from belvedere.sql.plan.relation import Branch, Relation, column
from belvedere.sql.planned import TableInfo

_KINDS = {"SEMI": SEMI, "ANTI": ANTI}
_SIDES = {"": INNER, "LEFT": LEFT, "RIGHT": RIGHT, "FULL": FULL}
_OF_TABLE = ("this", "alias", "db", "catalog")


@dataclass(frozen=True, slots=True)
class Joined:
    """A relation of FROM; `on` are the conjuncts of its join, with columns bound. `crossed`: after a comma or CROSS JOIN."""

    relation: Relation
    fields: tuple[Field, ...]
    kind: str = INNER
    on: tuple[exp.Expr, ...] = ()
    crossed: bool = False


@dataclass(frozen=True, slots=True)
class From:
    joined: tuple[Joined, ...]
    names: Names

    @property
    def places(self) -> dict[str, int]:
        """The number of the relation that each bound column is of."""
        return {f.text: i for i, j in enumerate(self.joined) for f in j.fields}


def from_clause(query: exp.Select, context: Context) -> From:
    start = query.args.get("from_")
    if start is None:
        raise Unsupported("a SELECT without FROM", "a view needs a table whose changes it follows")
    first = _relation(start.this, None, context)
    joined = [Joined(first.relation, first.fields)]
    names = Names(first.fields, context.outer, context.beside)
    crossed = False
    for node in query.args.get("joins") or []:
        item, names = _joined(node, names, context)
        crossed = crossed or item.crossed
        if crossed and item.kind in (RIGHT, FULL):  # the parser does not tell whether a comma or CROSS JOIN came before
            raise Unsupported(f"{item.kind.upper()} JOIN after a comma or CROSS JOIN", "write it first")
        joined.append(item)
    context.labels.update(names.labels())
    return From(tuple(joined), names)


def _relation(node: exp.Expr, beside: Names | None, context: Context) -> Answer:
    """What stands in FROM, with its alias in front of its columns."""
    alias = node.args.get("alias")
    if isinstance(node, exp.Table):
        found = _table(node, context)
    elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and not isinstance(node.this, exp.Table):
        _only(node, ("this", "alias"))
        found = context.answer(node.this, context.apart(beside))
    elif isinstance(node, exp.Subquery):
        raise Unsupported("a join in parentheses", "write it as a subquery: (SELECT ... FROM ... JOIN ...)")
    elif isinstance(node, exp.Lateral):
        raise Unsupported("LATERAL", "join with a subquery that is grouped or ranked by the key")
    else:
        raise Unsupported(f"{text_of(node)} in FROM")
    found = renamed(found, [c.name for c in alias.args.get("columns") or []] if alias else [], text_of(node))
    name = node.alias_or_name if isinstance(node, exp.Table) else node.alias
    return Answer(tuple(replace(f, relation=name, visible=True) for f in found.fields), found.relation)


def renamed(answer: Answer, names: Sequence[str], text: str) -> Answer:
    """The columns under other names, as in AS t (a, b)."""
    if not names:
        return answer
    if len(names) != len(answer.fields):
        raise SqlError(f"{text} names {len(names)} column(s), the relation has {len(answer.fields)}")
    return Answer(tuple(replace(f, name=n) for f, n in zip(answer.fields, names, strict=True)), answer.relation)


def _only(node: exp.Expr, known: Sequence[str]) -> None:
    for name, value in node.args.items():
        if value and name not in known:
            raise Unsupported("a join in parentheses" if name == "joins" else f"{text_of(node)} in FROM")


def _table(node: exp.Table, context: Context) -> Answer:
    _only(node, _OF_TABLE)
    if not isinstance(node.this, exp.Identifier):
        raise Unsupported(f"{text_of(node)} in FROM")
    if node.args.get("db"):
        raise qualified(part.name for part in node.parts)
    name = node.name.lower()
    if name in context.ctes:
        cte = context.ctes[name]
        return renamed(context.answer(cte.query, cte.context), [c.name for c in cte.alias.args.get("columns") or []], text_of(cte.alias))
    if name in context.tables:
        return _base(context.tables[name], context)
    if name not in context.views:
        raise unknown_table(node.name)
    view = context.views[name]
    context.reads[name] = None
    return renamed(context.answer(parse(view.select), context.elsewhere()), view.names, view.name)


def _base(table: TableInfo, context: Context) -> Answer:
    columns = table.schema.columns
    node = context.nodes.add(Source(table.id, tuple(c.type for c in columns)))
    fields = tuple(context.fresh(table.name, c.name) for c in columns)
    nullable = [c.nullable and c.name not in table.schema.key for c in columns]
    values = {f.text: column(i, c.type, nullable[i]) for i, (f, c) in enumerate(zip(fields, columns, strict=True))}
    identity = of_columns([(fields[i].text, columns[i].type) for i in map(table.schema.names.index, table.schema.key)])
    return Answer(fields, Relation((Branch(node, values),), identity, identity.parts))


def _joined(node: exp.Join, before: Names, context: Context) -> tuple[Joined, Names]:
    if node.method:
        raise Unsupported(f"{node.method} JOIN", "name the columns: JOIN ... USING (...)")
    for name, value in node.args.items():
        if value and name not in ("this", "on", "using", "side", "kind"):
            raise Unsupported(text_of(node).strip())
    if node.kind not in ("", "INNER", "OUTER", "CROSS", *_KINDS) or (node.kind in _KINDS and node.side not in ("", "LEFT")):
        raise Unsupported(text_of(node).strip())
    right = _relation(node.this, before, context)
    kind = _KINDS.get(node.kind) or _SIDES[node.side]
    pairs = [(_one(before, c.name), _one(Names(right.fields), c.name)) for c in node.args.get("using") or []]
    on: list[exp.Expr] = [exp.EQ(this=a.bound, expression=b.bound) for a, b in pairs]
    both = Names(before.fields + right.fields, before.outer, before.beside)
    for condition in conjuncts(node.args.get("on")):
        refuse_subqueries(condition, "ON")
        on.append(bind(condition, both.find))
    fields = before.fields if kind in _KINDS.values() else both.fields
    names = replace(both, fields=_merged(fields, pairs, kind, context) if pairs else fields)
    crossed = node.kind == "CROSS"
    return Joined(right.relation, right.fields, kind, tuple(on), crossed), names


def _one(names: Names, name: str) -> Field:
    found = [f for f in names.fields if f.visible and f.name.lower() == name.lower()]
    if len(found) != 1:
        raise SqlError(f"USING ({name}): {'both sides must have the column' if not found else 'the column is ambiguous'}")
    return found[0]


def _merged(fields: Sequence[Field], pairs: Sequence[tuple[Field, Field]], kind: str, context: Context) -> tuple[Field, ...]:
    """USING gives one column for two: the side that is always there, or whichever is there after a FULL JOIN."""
    merged = []
    for left, right in pairs:
        kept = right if kind == RIGHT else left
        if kind == FULL:
            either = exp.Coalesce(this=left.bound, expressions=[right.bound])
            kept = replace(context.fresh("", left.name), meaning=either)
        merged.append(kept)
    first = {f.key for f in merged}
    gone = {f.key for pair in pairs for f in pair}
    # Before the others, because t.* gives them out first.
    hidden = [replace(f, visible=False) for f in fields if f.key in gone - first]
    return (*merged, *hidden, *(f for f in fields if f.key not in gone))
