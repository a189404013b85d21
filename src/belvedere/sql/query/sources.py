"""FROM and JOIN: relations side by side, and which of their columns a name means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, cast_to, common_type
from belvedere.sql.binding import Field, bind, text_of
from belvedere.sql.names import qualified
from belvedere.sql.parentheses import is_parenthesised, joins_in
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import NotAnswered, not_understood, refused_function
from belvedere.sql.query.stage import Output, Relation, Stage, stage_of

_SIDES = {"": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}
_HALF = {"SEMI": "SEMI JOIN", "ANTI": "ANTI JOIN"}


def source(query: exp.Select, context: Context) -> Stage:
    start = query.args.get("from_")
    if start is None:
        return Stage("(SELECT 1)", (), {}, context.outer)
    return _from(start.this, query.args.get("joins") or [], context)


def _from(first: exp.Expr, joins: Sequence[exp.Join], context: Context) -> Stage:
    """A relation and those that are joined to it."""
    stage = _relation(first, context)
    crossed = False
    for join in joins:
        crossed = crossed or join.kind == "CROSS"
        # the parser does not tell whether a comma or CROSS JOIN came before
        if crossed and join.side in ("RIGHT", "FULL"):
            raise NotAnswered(f"{join.side} JOIN after a comma or CROSS JOIN", "write it first")
        stage = _joined(stage, join, context)
    return stage


def _parenthesised(node: exp.Subquery, context: Context) -> Stage:
    """What stands in parentheses, its columns under the alias if there is one: what USING merged
    away is gone then.
    """
    inner = _from(node.this, joins_in(node), context)
    stage = replace(inner, sql=f"({inner.sql})") if joins_in(node) else inner
    alias = node.args.get("alias")
    if alias is None:
        return stage
    shown = [f for f in stage.fields if f.visible]
    names = [c.name for c in alias.args.get("columns") or []] or [f.name for f in shown]
    if len(names) != len(shown):
        raise SqlError(
            f"{text_of(alias)} names {len(names)} column(s), the relation has {len(shown)}"
        )
    return replace(
        stage,
        fields=tuple(
            replace(f, relation=node.alias, name=n) for f, n in zip(shown, names, strict=True)
        ),
    )


def renamed(relation: Relation, alias: exp.Expr | None) -> Relation:
    """The relation with the column names of `AS t (a, b)`."""
    columns: Sequence[exp.Expr] = alias.args.get("columns") or [] if alias else []
    if not columns:
        return relation
    if len(columns) != len(relation.outputs):
        raise SqlError(
            f"{text_of(alias) if alias else ''} names {len(columns)} column(s), the relation has"
            f" {len(relation.outputs)}"
        )
    return replace(
        relation,
        outputs=tuple(
            Output(c.name, o.type, o.column) for c, o in zip(columns, relation.outputs, strict=True)
        ),
    )


def _relation(node: exp.Expr, context: Context) -> Stage:
    if is_parenthesised(node):
        return _parenthesised(node, context)
    alias = node.args.get("alias")
    if isinstance(node, exp.Table):
        found = _table(node, context)
    elif isinstance(node, exp.Subquery):
        found = context.answer(node.this, context)
    elif isinstance(node, exp.Values):
        found = _values(node)
    else:
        raise NotAnswered(f"{text_of(node)} in FROM")
    name = node.alias_or_name if isinstance(node, exp.Table) else node.alias
    return stage_of(renamed(found, alias), context.fresh("r"), name, context.key, context.outer)


def _values(node: exp.Values) -> Relation:
    """VALUES as a union of its rows, with the common type of every column."""
    nowhere = Stage("", (), {})
    tuples = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    rows = [[nowhere.lower(bind(value, nowhere.find)) for value in row] for row in tuples]
    if len({len(row) for row in rows}) != 1:
        raise SqlError("the rows of VALUES have different numbers of columns")
    types = [common_type(value.type for value in column) for column in zip(*rows, strict=True)]
    texts = [
        ", ".join(
            f"{cast_to(v, t).sql} AS c{i}" for i, (v, t) in enumerate(zip(row, types, strict=True))
        )
        for row in rows
    ]
    outputs = tuple(Output(f"col{i + 1}", kind, f"c{i}") for i, kind in enumerate(types))
    return Relation(" UNION ALL ".join(f"SELECT {text}" for text in texts), outputs)


def _table(node: exp.Table, context: Context) -> Relation:
    if not isinstance(node.this, exp.Identifier):
        raise refused_function(node.this)
    if node.args.get("db") or node.args.get("catalog"):
        raise qualified(part.name for part in node.parts)
    return context.relation(node.name)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A column of USING on both sides."""

    name: str
    left: Field
    right: Field


def _joined(left: Stage, join: exp.Join, context: Context) -> Stage:
    if join.method not in ("", "NATURAL"):
        raise not_understood(f"{join.method} JOIN", "write JOIN with ON or USING")
    if join.side not in _SIDES or join.kind not in ("", "INNER", "OUTER", "CROSS", *_HALF):
        raise NotAnswered(f"{text_of(join)}")
    right = _relation(join.this, context)
    pairs = _pairs(left, right, join)
    both = replace(left, fields=left.fields + right.fields, values={**left.values, **right.values})
    test = _condition(both, join, pairs)
    if join.kind in _HALF:
        keys = tuple(p.left for p in pairs)
        fields = (*keys, *(f for f in left.fields if f not in keys))
        return replace(
            left,
            sql=f"{left.sql} {_HALF[join.kind]} {right.sql} ON {test or 'TRUE'}",
            fields=fields,
        )
    if test is None and not join.side:
        return replace(both, sql=f"{left.sql} CROSS JOIN {right.sql}")
    joined = replace(both, sql=f"{left.sql} {_SIDES[join.side]} {right.sql} ON {test or 'TRUE'}")
    return _merged(joined, pairs, join.side, context) if pairs else joined


def _pairs(left: Stage, right: Stage, join: exp.Join) -> list[_Pair]:
    names = [column.name for column in join.args.get("using") or []]
    if join.method == "NATURAL":
        there = {f.name.lower() for f in right.fields}
        names = [f.name for f in left.fields if f.visible and f.name.lower() in there]
    return [_Pair(name, _one(left, name), _one(right, name)) for name in names]


def _one(stage: Stage, name: str) -> Field:
    found = [f for f in stage.fields if f.visible and f.name.lower() == name.lower()]
    if len(found) != 1:
        raise SqlError(
            f"USING ({name}):"
            f" {'both sides must have the column' if not found else 'the column is ambiguous'}"
        )
    return found[0]


def _condition(both: Stage, join: exp.Join, pairs: Sequence[_Pair]) -> str | None:
    if pairs:
        tests = [exp.EQ(this=p.left.bound, expression=p.right.bound) for p in pairs]
        return " AND ".join(both.condition(test, "USING").sql for test in tests)
    on = join.args.get("on")
    return both.condition(bind(on, both.find), "ON").sql if on is not None else None


def _merged(stage: Stage, pairs: Sequence[_Pair], side: str, context: Context) -> Stage:
    """USING gives one column for two: the side that is always there, or whichever is there after a
    FULL JOIN.
    """
    fields: list[Field] = []
    values = dict(stage.values)
    gone = {f.key for p in pairs for f in (p.left, p.right)}
    for pair in pairs:
        kept = pair.right if side == "RIGHT" else pair.left
        if side == "FULL":
            kept = Field(context.key(pair.name), "", pair.name)
            values[kept.text] = _either(stage, pair)
        fields.append(kept)
    first = {f.key for f in fields}
    # Before the others, because t.* gives them out first.
    hidden = [replace(f, visible=False) for f in stage.fields if f.key in gone - first]
    return replace(
        stage,
        fields=(*fields, *hidden, *(f for f in stage.fields if f.key not in gone)),
        values=values,
    )


def _either(stage: Stage, pair: _Pair) -> Typed:
    return stage.lower(exp.Coalesce(this=pair.left.bound, expressions=[pair.right.bound]))
