"""What a statement in the log does to relations.

With binlog_format = ROW, rows are logged as rows and statements are those that change tables. A
statement stops a relation if it may have changed its rows or columns; when in doubt it does: to
load a relation again is dear, a gap is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_TOKEN = re.compile(
    r"""/\*M?!\d*|\*/               # code in a comment for some versions: its marks are no words
      | /\*.*?\*/ | --\s[^\n]* | \#[^\n]*
      | '(?:[^'\\]|\\.|'')*'
      | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
      | (?P<word>[\w$]+)
      | (?P<dot>\.)""",
    re.DOTALL | re.VERBOSE,
)
# Rows written as a statement: which rows of which tables, its text does not tell (triggers).
_WRITES = {"insert", "update", "delete", "replace", "load", "call", "with", "values", "do"}
_HARMLESS = {"analyze", "optimize", "repair", "check", "grant", "revoke", "flush", "set", "comment"}
_KINDS = {"table", "database", "schema", "view", "trigger", "procedure", "function", "event"}
_KINDS |= {"index", "user", "role", "sequence", "server", "package"}

Token = tuple[str, bool]  # a word, and whether it was quoted: then it is a name


def affected(text: str, default: str, database: str, tables: Iterable[str]) -> list[str]:
    """The tables of a database whose rows or columns a statement may have changed; `default` is the
    database in which it ran.
    """
    tokens = _tokens(text)
    words = [word.lower() if not quoted and word != "." else "" for word, quoted in tokens]
    verb = words[0] if words else ""
    if verb in _WRITES and not _empties(words):
        return list(tables)
    kind = next((word for word in words if word in _KINDS), "")
    if verb in _HARMLESS or "temporary" in words[:4]:
        return []
    if verb in ("create", "drop", "alter") and kind != "table":
        drops = verb == "drop" or "replace" in words[:3]
        whole = kind in ("database", "schema") and drops
        return list(tables) if whole and _is_named(tokens, database) else []
    found = _names(tokens, default, database)
    if verb == "create":
        found = found[:1]
    return [table for table in tables if table.lower() in found]


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        if quoted := match["quoted"]:
            found.append((quoted[1:-1].replace(quoted[0] * 2, quoted[0]), True))
        elif match["word"] or match["dot"]:
            found.append((match[0], False))
    return found


def _empties(words: Sequence[str]) -> bool:
    """`DELETE FROM a.b` and nothing more: what the server writes when a MEMORY table is empty again
    after a start.
    """
    return list(words[:2]) == ["delete", "from"] and len(words) <= 5


def _is_named(tokens: Sequence[Token], name: str) -> bool:
    return any(word.lower() == name.lower() for word, _ in tokens)


_BEFORE_NAMES = {"create", "or", "replace", "table", "if", "not", "exists"}


def _names(tokens: Sequence[Token], default: str, database: str) -> list[str]:
    """What may be names of tables of the database, in order: `database.name`, or `name` where that
    is the default.
    """
    found = []
    for at, (word, quoted) in enumerate(tokens):
        if (word == "." and not quoted) or (not quoted and word.lower() in _BEFORE_NAMES):
            continue
        if _dot(tokens, at + 1):
            continue  # a database, or a table before its column
        inside = tokens[at - 2][0] if _dot(tokens, at - 1) else default
        found.append(word.lower() if inside.lower() == database.lower() else "")
    return found


def _dot(tokens: Sequence[Token], at: int) -> bool:
    return 0 < at < len(tokens) and tokens[at] == (".", False)
