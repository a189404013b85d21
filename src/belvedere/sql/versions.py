"""VERSION AS OF and TIMESTAMP AS OF: which epoch a query reads.

A query reads all relations at one cut, so each of them says the same. The words are taken out of
the text: what is left is a query over relations, for whoever answers it.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.dialect import Token, TokenType, words_of
from belvedere.sql.query import relations
from belvedere.types import Epoch

_KINDS = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
_LITERALS = (TokenType.NUMBER, TokenType.STRING)


def as_of_text(text: str) -> Epoch | datetime:
    """An epoch, or a moment as in 2026-11-18 15:30:00, in UTC if it names no zone."""
    if re.fullmatch(r"\d{1,18}", text.strip()):
        return int(text)
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise SqlError(
            f"{text!r} is neither an epoch nor a moment: write a number, or a time as in"
            " '2026-11-18 15:30:00'"
        ) from None


def version_of(query: exp.Expr) -> Epoch | datetime | None:
    """The one version of all relations of a query; None if it names none."""
    found = {_version(node) for node in query.find_all(exp.Version)}
    if not found:
        return None
    tables = [node for node in query.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
    names = {name.lower() for name in relations(query)}
    of_others = [t.name for t in tables if t.args.get("version") and t.name.lower() not in names]
    if of_others:
        raise SqlError(f"{of_others[0]} is a query of WITH: only tables and views have versions")
    without = [t.name for t in tables if t.name.lower() in names and not t.args.get("version")]
    if without or len(found) > 1:
        which = f"{without[0]} has none" if without else "there are several"
        raise SqlError(
            "a query reads all its tables and views as of one epoch: write the same AS OF after"
            f" each of them ({which})"
        )
    return found.pop()


def _version(node: exp.Version) -> Epoch | datetime:
    value = node.args.get("expression")
    if str(node.args.get("kind")).upper() != "AS OF" or not isinstance(value, exp.Literal):
        raise SqlError(
            "a version is a literal: write VERSION AS OF 42, or TIMESTAMP AS OF"
            " '2026-11-18 15:30:00'"
        )
    version = as_of_text(value.name)
    is_epoch = isinstance(version, int)
    if is_epoch != (node.name.upper() == "VERSION"):
        kind = "an epoch, as in VERSION AS OF 42" if not is_epoch else "a moment"
        raise SqlError(f"{node.name.upper()} AS OF {value.name!r} is not {kind}")
    return version


def without_versions(text: str) -> str:
    """The text with spaces where versions stood."""
    words: list[Any] = list(words_of(text))
    for at in range(len(words) - 3):
        if _is_version(words[at : at + 4]):
            before = words[at - 1] if at else None
            begins = before if before is not None and before.text.upper() == "FOR" else words[at]
            start, end = begins.start, words[at + 3].end + 1
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _is_version(words: list[Token]) -> bool:
    kind, as_word, of_word, value = words
    texts = as_word.text.upper(), of_word.text.upper()
    is_word = kind.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
    is_kind = is_word and kind.text.upper() in _KINDS
    return is_kind and texts == ("AS", "OF") and value.token_type in _LITERALS
