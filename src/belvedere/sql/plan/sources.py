"""FROM: the relations that stand in it, how each is joined to those before it, and which columns a
name means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.operators.source import Source
from belvedere.sql.binding import Field, bind, text_of
from belvedere.sql.dialect import parse
from belvedere.sql.names import qualified
from belvedere.sql.parentheses import is_parenthesised, joins_in
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


@dataclass(frozen=True, slots=True)
class Joined:
    """A relation of FROM; `on` are the conjuncts of its join, with columns bound.

    `crossed`: after a comma or CROSS JOIN.

    `merged` are the columns that USING makes of two in a full join: by the texts of their
    equalities.
    """

    relation: Relation
    fields: tuple[Field, ...]
    kind: str = INNER
    on: tuple[exp.Expr, ...] = ()
    crossed: bool = False
    merged: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class From:
    joined: tuple[Joined, ...]
    names: Names

    @property
    def places(self) -> dict[str, int]:
        """The number of the relation that each bound column is of; a merged one is there with the
        second of its two relations.
        """
        return {
            f.text: i for i, j in enumerate(self.joined) for f in (*j.fields, *j.merged.values())
        }


def from_clause(query: exp.Select, context: Context) -> From:
    start = query.args.get("from_")
    if start is None:
        raise Unsupported("a SELECT without FROM", "a view needs a table whose changes it follows")
    source = from_relation(start.this, query.args.get("joins") or [], context)
    context.labels.update(source.names.labels())
    return source


def from_relation(first: exp.Expr, joins: Sequence[exp.Join], context: Context) -> From:
    """A relation and those that are joined to it.

    Parentheses around the first ones only change names.
    """
    if is_parenthesised(first):
        inner = from_relation(first.this, joins_in(first), context)
        joined, names = (
            list(inner.joined),
            replace(inner.names, fields=_called(inner.names.fields, first)),
        )
    else:
        found = _relation(first, None, context)
        joined, names = (
            [Joined(found.relation, found.fields)],
            Names(found.fields, context.outer, context.beside),
        )
    crossed = any(item.crossed for item in joined)
    for node in joins:
        item, names = _joined(node, names, context)
        crossed = crossed or item.crossed
        # the parser does not tell whether a comma or CROSS JOIN came before
        if crossed and item.kind in (RIGHT, FULL):
            raise Unsupported(
                f"{item.kind.upper()} JOIN after a comma or CROSS JOIN", "write it first"
            )
        joined.append(item)
    return From(tuple(joined), names)


def _called(fields: Sequence[Field], node: exp.Expr) -> tuple[Field, ...]:
    """The columns under the alias of a relation, if it has one: what USING merged away is gone
    then.
    """
    alias = node.args.get("alias")
    if alias is None:
        return tuple(fields)
    shown = [f for f in fields if f.visible]
    names = column_names(alias) or [f.name for f in shown]
    if len(names) != len(shown):
        raise SqlError(
            f"{text_of(alias)} names {len(names)} column(s), the relation has {len(shown)}"
        )
    return tuple(replace(f, relation=node.alias, name=n) for f, n in zip(shown, names, strict=True))


def column_names(alias: exp.Expr) -> list[str]:
    return [c.name for c in alias.args.get("columns") or []]


def _relation(node: exp.Expr, beside: Names | None, context: Context) -> Answer:
    """What stands in FROM, with its alias in front of its columns."""
    if is_parenthesised(node):
        related = (
            context.related(node, replace(context, beside=beside))
            if joins_in(node)
            else _relation(node.this, beside, context)
        )
        return replace(related, fields=_called(related.fields, node))
    alias = node.args.get("alias")
    if isinstance(node, exp.Table):
        found = _table(node, context)
    elif isinstance(node, exp.Subquery):
        found = context.answer(node.this, context.apart(beside))
    elif isinstance(node, exp.Lateral):
        raise Unsupported("LATERAL", "join with a subquery that is grouped or ranked by the key")
    else:
        raise Unsupported(f"{text_of(node)} in FROM")
    found = renamed(found, column_names(alias) if alias else [], text_of(node))
    name = node.alias_or_name if isinstance(node, exp.Table) else node.alias
    return Answer(
        tuple(replace(f, relation=name, visible=True) for f in found.fields), found.relation
    )


def renamed(answer: Answer, names: Sequence[str], text: str) -> Answer:
    """The columns under other names, as in AS t (a, b)."""
    if not names:
        return answer
    if len(names) != len(answer.fields):
        raise SqlError(
            f"{text} names {len(names)} column(s), the relation has {len(answer.fields)}"
        )
    return Answer(
        tuple(replace(f, name=n) for f, n in zip(answer.fields, names, strict=True)),
        answer.relation,
    )


def _table(node: exp.Table, context: Context) -> Answer:
    if not isinstance(node.this, exp.Identifier):
        raise Unsupported(f"{text_of(node)} in FROM")
    if node.args.get("db") or node.args.get("catalog"):
        raise qualified(part.name for part in node.parts)
    name = node.name.lower()
    if name in context.ctes:
        cte = context.ctes[name]
        context.used.add(id(cte.query))
        return renamed(
            context.answer(cte.query, cte.context), column_names(cte.alias), text_of(cte.alias)
        )
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
    values = {
        f.text: column(i, c.type, nullable[i])
        for i, (f, c) in enumerate(zip(fields, columns, strict=True))
    }
    identity = of_columns(
        [(fields[i].text, columns[i].type) for i in map(table.schema.names.index, table.schema.key)]
    )
    return Answer(fields, Relation((Branch(node, values),), identity, identity.parts))


def _joined(node: exp.Join, before: Names, context: Context) -> tuple[Joined, Names]:
    kind = _kind(node)
    right = _relation(node.this, before, context)
    pairs = [
        (_one(before, name), _one(Names(right.fields), name))
        for name in _using(node, before, right)
    ]
    equalities = [exp.EQ(this=a.bound, expression=b.bound) for a, b in pairs]
    on: list[exp.Expr] = [*equalities]
    both = Names(before.fields + right.fields, before.outer, before.beside)
    for condition in conjuncts(node.args.get("on")):
        refuse_subqueries(condition, "ON")
        on.append(bind(condition, both.find))
    made = [context.fresh("", left.name) for left, _ in pairs] if kind == FULL else []
    merged = {text_of(e): f for e, f in zip(equalities, made, strict=False)}
    fields = before.fields if kind in _KINDS.values() else both.fields
    names = replace(both, fields=_merged(fields, pairs, kind, made) if pairs else fields)
    return (
        Joined(right.relation, right.fields, kind, tuple(on), node.kind == "CROSS", merged),
        names,
    )


def _kind(node: exp.Join) -> str:
    half = node.kind in _KINDS
    known = (
        node.kind in ("", "INNER", "OUTER", "CROSS", *_KINDS)
        and node.side in _SIDES
        and node.method in ("", "NATURAL")
    )
    if not known or (half and node.side not in ("", "LEFT")):
        words = " ".join(filter(None, (node.method, node.side, node.kind)))
        raise Unsupported(
            f"{words} JOIN",
            "write JOIN, LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI JOIN, with ON or USING",
        )
    return _KINDS[node.kind] if half else _SIDES[node.side]


def _using(node: exp.Join, before: Names, right: Answer) -> list[str]:
    """The names that USING lists, or for NATURAL those that both sides have."""
    if node.method != "NATURAL":
        return [c.name for c in node.args.get("using") or []]
    there = {f.name.lower() for f in right.fields if f.visible}
    return [f.name for f in before.fields if f.visible and f.name.lower() in there]


def _one(names: Names, name: str) -> Field:
    found = [f for f in names.fields if f.visible and f.name.lower() == name.lower()]
    if len(found) != 1:
        raise SqlError(
            f"USING ({name}):"
            f" {'both sides must have the column' if not found else 'the column is ambiguous'}"
        )
    return found[0]


def _merged(
    fields: Sequence[Field], pairs: Sequence[tuple[Field, Field]], kind: str, made: Sequence[Field]
) -> tuple[Field, ...]:
    """USING gives one column for two: the side that is always there, or `made`, whichever is there
    after a FULL JOIN.
    """
    merged = made or [right if kind == RIGHT else left for left, right in pairs]
    first = {f.key for f in merged}
    gone = {f.key for pair in pairs for f in pair}
    # Before the others, because t.* gives them out first. One that has no relation was merged
    # before, and cannot be named any more.
    hidden = [replace(f, visible=False) for f in fields if f.key in gone - first and f.relation]
    return (*merged, *hidden, *(f for f in fields if f.key not in gone))
