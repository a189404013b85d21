"""Names of tables, views and columns in statements: read, and written so that they can be read
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sqlglot import exp

from belvedere.errors import SchemaError, SqlError
from belvedere.expressions import SparkSql
from belvedere.sql.dialect import Token, TokenType, sql_of
from belvedere.sql.refusal import only

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PHRASES = (
    *SparkSql.Tokenizer.KEYWORDS,
    *SparkSql.Parser.CONSTRAINT_PARSERS,
    *SparkSql.Parser.SCHEMA_UNNAMED_CONSTRAINTS,
)
_KEYWORDS = {word for phrase in _PHRASES for word in phrase.upper().split()}
_KEY_PART = re.compile(r"\s*(?:`((?:[^`]|``)*)`\s*|([^,`]*))(?:,|$)")


def plain_name(node: Any, statement: str, alias: bool = False) -> str:
    """The name that a statement gives to the table or view that it is about."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        what = sql_of(node) if isinstance(node, exp.Expr) else "this"
        raise SqlError(f"{what} is not the name of a table or view: write {statement} and its name")
    if node.args.get("db"):
        raise qualified(part.name for part in node.parts)
    only(node, statement, *(() if alias else ("alias",)))
    return str(node.name)


def name_in(words: Sequence[Token]) -> str | None:
    """The name that these words are, a relation's with its source's in front; None if they are
    something else.
    """
    names, dots = words[::2], words[1::2]
    if (
        len(names) != len(dots) + 1
        or any(d.token_type != TokenType.DOT for d in dots)
        or not all(map(_is_name, names))
    ):
        return None
    return ".".join(str(name.text) for name in names)


def _is_name(word: Token) -> bool:
    return word.token_type == TokenType.IDENTIFIER or (
        word.token_type != TokenType.STRING and re.fullmatch(r"\w+", word.text) is not None
    )


def qualified(parts: Iterable[str]) -> SqlError:
    return SqlError(
        f"{'.'.join(map(quoted, parts))}: tables and views here have no database in front of their"
        " names"
    )


def unknown_relation(name: str) -> SqlError:
    """Of a query that names something that is not there."""
    source, dot, relation = name.partition(".")
    if dot:
        return SqlError(
            f"there is no relation {name}: if {source} is a source (SHOW SOURCES), ALTER SOURCE"
            f" {quoted(source)} COPY {quoted(relation)} follows it, and so does a view that reads"
            " it"
        )
    return SqlError(f"there is no table or view {name}: SHOW TABLES and SHOW VIEWS list them")


def check_names(what: str, names: Iterable[str]) -> None:
    if not all(name.strip() for name in names):
        raise SchemaError(f"{what} has an empty name: give it one with at least a letter")


def quoted(name: str) -> str:
    """The name as a statement must write it: in backquotes if it is not a plain word."""
    return name if _PLAIN.fullmatch(name) and name.upper() not in _KEYWORDS else backquoted(name)


def backquoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quoted_in(node: exp.Expr) -> exp.Expr:
    """A copy of an expression that we made ourselves, with the names in it that need it in
    backquotes.
    """
    made = node.copy()
    for identifier in made.find_all(exp.Identifier):
        identifier.set("quoted", quoted(identifier.name) != identifier.name)
    return made


def key_names(option: str) -> list[str]:
    """The columns that WITH (key = '...') lists; one with a comma in
    its name stands in backquotes.
    """
    found, at = [], 0
    while at < len(option):
        match = _KEY_PART.match(option, at)
        if match is None:
            raise SqlError(
                f"key = '{option}' is not understood: list columns with commas between, odd names"
                " in backquotes"
            )
        found.append(match[1].replace("``", "`") if match[1] is not None else match[2].strip())
        at = match.end()
    return [name for name in found if name]


def key_option(names: Iterable[str]) -> str:
    """The string literal for WITH (key = ...) that `key_names` reads as these names."""
    listed = ", ".join(name if _PLAIN.fullmatch(name) else backquoted(name) for name in names)
    return "'" + listed.replace("\\", "\\\\").replace("'", "\\'") + "'"
