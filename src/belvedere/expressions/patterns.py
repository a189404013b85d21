"""LIKE and RLIKE patterns: checked, and rewritten so that DuckDB's matchers mean the same."""

from __future__ import annotations

import re

from belvedere.errors import SqlError, Unsupported

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
    "s": r"[\t\n\x0B\f\r ]",
    "S": r"[^\t\n\x0B\f\r ]",
}
_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?[^\[\]\\&^]+\])|(?P<group>\((?:\?:)?|\)|\|)|(?P<repeat>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??)"
    r"|(?P<any>\.)|(?P<begin>\^)|(?P<end>\$)|(?P<plain>[^\\\[\]{}()*+?.^$|])",
    re.DOTALL,
)


def like(pattern: str, mark: str) -> str:
    """The same pattern with a backslash as escape character.

    Spark refuses an escape before anything else.
    """
    result, rest = "", iter(pattern)
    for char in rest:
        if char == mark:
            escaped = next(rest, None)
            if escaped is None or escaped not in ("%", "_", mark):
                raise SqlError(
                    f"the LIKE pattern {pattern!r} has an escape character before"
                    f" {escaped or 'its end'}: escape only %, _ and itself"
                )
            char = escaped if escaped not in "%_\\" else "\\" + escaped
        elif char == "\\":
            char = "\\\\"
        result += char
    return result


def regular(pattern: str) -> str:
    """The pattern in RE2's syntax, if it uses only what Java's and RE2's matchers agree on after
    rewriting.
    """
    result, position, repeated = "", 0, True
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None or (match.lastgroup == "repeat" and repeated):
            raise _refused(pattern)
        repeated = match.lastgroup == "repeat" or match[0] in ("(", "(?:", "|", "^")
        result += _translated(match, pattern)
        position = match.end()
    return result


def _translated(match: re.Match[str], pattern: str) -> str:
    token, kind = match[0], match.lastgroup
    if kind == "escape":
        return _escaped(token[1], pattern)
    if kind == "any":
        return f"[^{_LINE_ENDS}]"
    if kind == "end":
        if match.end() != len(pattern) or "|" in pattern:
            raise _refused(pattern)
        return rf"(?:\r\n|[{_LINE_ENDS}])?\z"
    if kind == "begin" and match.start() != 0:
        raise _refused(pattern)
    return token


def _escaped(char: str, pattern: str) -> str:
    if char in _CLASSES:
        return _CLASSES[char]
    if char in ".\\[](){}*+?^$|-/":
        return "\\" + char
    raise _refused(pattern)


def _refused(pattern: str) -> Unsupported:
    return Unsupported(
        f"the regular expression {pattern!r}",
        "use plain characters, . [...] \\d \\w \\s ( ) | * + ? {n,m}, ^ at the start and $ at"
        " the end",
    )
