"""CREATE TABLE and CREATE MATERIALIZED VIEW as values.

What would not be obeyed is refused, so that nobody relies on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from belvedere.errors import SchemaError, SqlError, Unsupported
from belvedere.expressions import sql_type
from belvedere.sql.dialect import sql_of
from belvedere.sql.foreign import OPTIONS, mapping_of
from belvedere.sql.names import key_names, plain_name
from belvedere.sql.refusal import Refused, only
from belvedere.stores.base import Mapping
from belvedere.types import Column, Schema, SqlType

_SECONDS = {"ms": 0.001, "s": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0}
TABLE_OPTIONS, VIEW_OPTIONS = {"before_images"}, {"key", "consistency", "algorithm", "every"}
_TABLE, _VIEW = "CREATE TABLE", "CREATE MATERIALIZED VIEW"
_CONSISTENCY = ("convergent", "weak", "strong", "complete")
_INSTEAD: dict[type[exp.Expr], str] = {
    exp.DefaultColumnConstraint: "give the value at INSERT or put",
    exp.CheckColumnConstraint: "check values before you write them",
    exp.UniqueColumnConstraint: "only the PRIMARY KEY is unique",
    exp.Reference: "rows of other tables are not looked at when you write",
    exp.ForeignKey: "rows of other tables are not looked at when you write",
    exp.GeneratedAsIdentityColumnConstraint: "give the value at INSERT or put",
    exp.ComputedColumnConstraint: "compute it in a view",
    exp.CommentColumnConstraint: "write it behind -- instead",
    exp.SchemaCommentProperty: "write it behind -- instead",
    exp.Constraint: "leave out CONSTRAINT and the name",
}


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    name: str
    schema: Schema
    before_images: bool
    if_not_exists: bool
    mapping: Mapping | None = None  # of a foreign table


@dataclass(frozen=True, slots=True)
class DeclaredView:
    name: str
    key: tuple[str, ...]
    consistency: str
    replace: bool
    if_not_exists: bool
    asked: str | None = None  # the level that is written there, if one is
    algorithm: str | None = None
    every: int = 0  # transactions that are taken together; 0: nothing is said
    period: float = 0.0  # seconds between batches; 0: nothing is said

    @property
    def is_in_batches(self) -> bool:
        return bool(self.every or self.period)


def declared_table(statement: exp.Create) -> DeclaredTable:
    if not isinstance(statement.this, exp.Schema):
        raise SqlError(
            "CREATE TABLE needs columns: CREATE TABLE t (id STRING, ..., PRIMARY KEY (id))"
        )
    if statement.args.get("replace"):
        raise SqlError("CREATE OR REPLACE TABLE would lose rows: DROP TABLE first")
    if statement.expression:
        raise Refused("AS SELECT", _TABLE, "create the table, then INSERT INTO it")
    only(statement, _TABLE)
    if any(isinstance(p, exp.FileFormatProperty) for p in _properties(statement)):
        return _foreign_table(statement)
    options = _options(statement, TABLE_OPTIONS, _TABLE)
    images = options.get("before_images", "true").lower()
    if images not in ("true", "false"):
        raise SqlError(f"before_images = {images} is not understood: use true or false")
    name = plain_name(statement.this.this, _TABLE)
    return DeclaredTable(
        name,
        _schema(statement.this.expressions),
        images == "true",
        bool(statement.args.get("exists")),
    )


def _foreign_table(statement: exp.Create) -> DeclaredTable:
    """CREATE TABLE ... USING hbase OPTIONS (...)."""
    given: list[exp.Expr] = []
    for p in _properties(statement):
        if isinstance(p, exp.FileFormatProperty):
            if p.name.lower() != "hbase":
                raise Refused(sql_of(p).strip(), _TABLE, "write USING hbase")
        elif isinstance(p, exp.OptionsProperty):
            given += p.expressions
        else:
            raise Refused(sql_of(p).strip(), _TABLE, "write it into OPTIONS (...)")
    schema = _schema(statement.this.expressions)
    if not schema.key:
        raise SchemaError("a table has a key: add PRIMARY KEY (column, ...), the row's key")
    mapping = mapping_of(schema, _named(given, set(OPTIONS), _TABLE))
    name = plain_name(statement.this.this, _TABLE)
    return DeclaredTable(name, schema, False, bool(statement.args.get("exists")), mapping)


def _schema(parts: list[Any]) -> Schema:
    """The columns and the key.

    a INT               a column, with its constraints
    PRIMARY KEY (a)     the key, unless a column has it among its constraints
    a                   a column without a type: refused
    """
    columns, keys, nullable = [], [], set()
    for part in parts:
        if isinstance(part, exp.PrimaryKey):
            keys.append(_key(part))
        elif isinstance(part, exp.ColumnDef):
            kinds = _kinds(part)
            nulls = _nulls(kinds)
            keys += [[part.name] for k in kinds if isinstance(k, exp.PrimaryKeyColumnConstraint)]
            nullable |= {part.name.lower()} if any(nulls) else set()
            columns.append(Column(part.name, _column_type(part), all(nulls)))
        elif isinstance(part, exp.Identifier):
            raise _untyped(part.name)
        else:
            raise Refused(sql_of(part), _TABLE, _INSTEAD.get(_kind(part), "leave it out"))
    if len(keys) > 1:
        raise SchemaError(
            "a table has one PRIMARY KEY: write PRIMARY KEY (a, b) once, after the columns"
        )
    spelled = {c.name.lower(): c.name for c in columns}
    key = tuple(spelled.get(k.lower(), k) for k in (keys[0] if keys else []))
    schema = Schema(tuple(columns), key)
    _check_nullable(schema, nullable)
    return schema


def _nulls(kinds: list[Any]) -> list[bool]:
    """What NULL and NOT NULL say of a column, if anything."""
    given = [k for k in kinds if isinstance(k, exp.NotNullColumnConstraint)]
    return [bool(k.args.get("allow_null")) for k in given]


def _check_nullable(schema: Schema, declared: set[str]) -> None:
    """Refuse NULL at a column of the key, or beside NOT NULL; `declared` are names in lower
    case.
    """
    key = {name.lower() for name in schema.key}
    for column in sorted(schema.columns, key=lambda c: c.name.lower()):
        never = column.name.lower() in key or not column.nullable
        if never and column.name.lower() in declared:
            raise SchemaError(
                f"column {column.name} cannot be NULL, but is declared NULL: leave out NULL"
            )


def _untyped(name: str) -> SqlError:
    return SqlError(f"column {name} has no type: write {name} STRING, or another type")


def _key(part: exp.PrimaryKey) -> list[str]:
    only(part, "PRIMARY KEY")
    if part.args.get("include"):
        only(part.args["include"], "PRIMARY KEY")
    for column in part.expressions:
        if not isinstance(column, exp.Identifier):
            raise Refused(sql_of(column), "PRIMARY KEY", "list columns by their names")
    return [column.name for column in part.expressions]


def _kinds(column: exp.ColumnDef) -> list[Any]:
    """The constraints of a column, all of which are obeyed."""
    if not isinstance(column.this, exp.Identifier):
        raise SqlError(
            f"{sql_of(column.this)} is not the name of a column: write a name with a dot in"
            " backquotes"
        )
    only(column, _TABLE)
    kinds = []
    for constraint in column.args.get("constraints") or []:
        if constraint.args.get("this"):
            raise Refused(sql_of(constraint), _TABLE, _INSTEAD[exp.Constraint])
        kind = constraint.args["kind"]
        if not isinstance(kind, exp.NotNullColumnConstraint | exp.PrimaryKeyColumnConstraint):
            raise Refused(
                f"{sql_of(kind)} of column {column.name}",
                _TABLE,
                _INSTEAD.get(type(kind), "leave it out"),
            )
        only(kind, "PRIMARY KEY")
        kinds.append(kind)
    return kinds


def _kind(part: exp.Expr) -> type[exp.Expr]:
    """What a constraint with a name is; PRIMARY KEY only has to lose its name."""
    inner = part.expressions[0] if isinstance(part, exp.Constraint) and part.expressions else part
    return type(part) if isinstance(inner, exp.PrimaryKey) else type(inner)


def _column_type(column: exp.ColumnDef) -> SqlType:
    if column.kind is None:
        raise _untyped(column.name)
    try:
        return sql_type(column.kind)
    except Unsupported as error:
        raise SchemaError(f"column {column.name}: {error.instead or error}") from error


def declared_view(statement: exp.Create) -> DeclaredView:
    if statement.kind != "VIEW" or not any(
        isinstance(p, exp.MaterializedProperty) for p in _properties(statement)
    ):
        raise SqlError("views are materialized here: write CREATE MATERIALIZED VIEW")
    if isinstance(statement.this, exp.Schema):
        raise SqlError(
            "a column list after the view's name is not understood: name the columns with AS in the"
            " SELECT"
        )
    only(statement, _VIEW)
    options = _options(statement, VIEW_OPTIONS, _VIEW)
    consistency = options.get("consistency", "strong")
    if consistency not in _CONSISTENCY:
        known = ", ".join(f"'{level}'" for level in _CONSISTENCY)
        raise SqlError(f"consistency = '{consistency}' is no level: use one of {known}")
    key = tuple(key_names(options.get("key", "")))
    return DeclaredView(
        plain_name(statement.this, _VIEW),
        key,
        consistency,
        bool(statement.args.get("replace")),
        bool(statement.args.get("exists")),
        options.get("consistency"),
        options.get("algorithm"),
        *_every(options.get("every")),
    )


def _every(text: str | None) -> tuple[int, float]:
    """So many transactions, or so many seconds."""
    if text is None:
        return 0, 0.0
    found = re.fullmatch(r"\s*([1-9][0-9]*)(?:\s+transactions?)?\s*", text)
    if found is not None:
        return int(found[1]), 0.0
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(\w+)\s*", text)
    words = (found[2], found[2].removesuffix("s")) if found is not None else ()
    unit = next((_SECONDS[word] for word in words if word in _SECONDS), 0.0)
    if found is None or not float(found[1]) * unit:
        raise SqlError(
            f"every = '{text}' is not understood: write every = '100 transactions' or '10 s'"
        )
    return 0, float(found[1]) * unit


def _properties(statement: exp.Create) -> list[exp.Expr]:
    properties = statement.args.get("properties")
    return list(properties.expressions) if properties else []


def _options(statement: exp.Create, known: set[str], what: str) -> dict[str, str]:
    given = [p for p in _properties(statement) if not isinstance(p, exp.MaterializedProperty)]
    return _named(given, known, what)


def _named(given: list[exp.Expr], known: set[str], what: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for p in given:
        is_algorithm = type(p) is exp.AlgorithmProperty  # a word of its own for the parser
        if type(p) is not exp.Property and not (is_algorithm and "algorithm" in known):
            raise Refused(sql_of(p).strip(), what, _INSTEAD.get(type(p), "leave it out"))
        name = "algorithm" if is_algorithm else p.name.lower()
        if name not in known:
            raise SqlError(f"unknown option {name}: {', '.join(sorted(known))} can be set")
        if name in options:
            raise SqlError(f"the option {name} is given twice: give it once")
        value = p.this if is_algorithm else p.args["value"]
        options[name] = value.name if isinstance(value, exp.Literal) else sql_of(value)
    return options
