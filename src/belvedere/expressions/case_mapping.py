"""upper and lower, with Spark's full case mapping.

DuckDB maps one character to one; Spark also knows the characters whose other case is several (ß is
SS), the sigma at the end of a Greek word, and letters that are newer than DuckDB's tables. Strings
without any of these take DuckDB's way. The mapping is a macro of the connection, because it is
long.
"""

from __future__ import annotations

from sqlglot import exp

from belvedere.expressions.rules import Lower, as_string, lowers
from belvedere.expressions.typed import Typed, let, strict
from belvedere.types import STRING

# (first capital, first small, how many) of the letters added in Unicode 15.1 to 17.
_NEWER = (
    *(
        (0x1C89, 0x1C8A, 1),
        (0xA7CB, 0x264, 1),
        (0xA7CC, 0xA7CD, 1),
        (0xA7CE, 0xA7CF, 1),
        (0xA7D2, 0xA7D3, 1),
        (0xA7D4, 0xA7D5, 1),
    ),
    *((0xA7DA, 0xA7DB, 1), (0xA7DC, 0x19B, 1), (0x10D50, 0x10D70, 22), (0x16EA0, 0x16EBB, 25)),
)
_CAPITALS = "".join(chr(capital + n) for capital, _, count in _NEWER for n in range(count))
_SMALLS = "".join(chr(small + n) for _, small, count in _NEWER for n in range(count))
# The characters whose upper case is several, in runs. To look for them in all of Unicode takes
# longer than most commands.
_RUNS = (
    *(
        "ß",
        "ŉ",
        "ǰ",
        "\u0390",
        "\u03b0",
        "և",
        "\u1e96-\u1e9a",
        "\u1f50",
        "\u1f52",
        "\u1f54",
        "\u1f56",
        "\u1f80-\u1faf",
    ),
    *(
        "\u1fb2-\u1fb4",
        "\u1fb6-\u1fb7",
        "\u1fbc",
        "\u1fc2-\u1fc4",
        "\u1fc6-\u1fc7",
        "\u1fcc",
        "\u1fd2-\u1fd3",
        "\u1fd6-\u1fd7",
    ),
    *(
        "\u1fe2-\u1fe4",
        "\u1fe6-\u1fe7",
        "\u1ff2-\u1ff4",
        "\u1ff6-\u1ff7",
        "\u1ffc",
        "\ufb00-\ufb06",
        "\ufb13-\ufb17",
    ),
)
_EXPANDED = [chr(code) for run in _RUNS for code in range(ord(run[0]), ord(run[-1]) + 1)]
_CASED = r"\p{Lu}\p{Ll}\p{Lt}ªº\x{2160}-\x{217F}\x{24B6}-\x{24E9}"
_IGNORED = (
    r"\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}.:·\x{55F}\x{5F4}‘’․‧\x{FE13}\x{FE52}\x{FE55}＇．：" + "''"
)


def _upper_macro() -> str:
    text = f"translate(s, '{_SMALLS}', '{_CAPITALS}')"
    for char in _EXPANDED:
        text = f"replace({text}, '{char}', '{char.upper()}')"
    special = "".join(_EXPANDED) + _SMALLS
    return (
        f"CREATE MACRO spark_upper(s) AS CASE WHEN regexp_matches(s, '[{special}]') THEN"
        f" upper({text}) ELSE upper(s) END"
    )


def _lower_macro() -> str:
    text = f"replace(translate(s, '{_CAPITALS}', '{_SMALLS}'), 'İ', 'i{chr(0x307)}')"
    # A sigma is final after a cased letter and not before one; marks and dots in between do not
    # count.
    final = f"([{_CASED}][{_IGNORED}]*)Σ([{_IGNORED}]*(?:[^{_CASED}{_IGNORED}]|$))"
    text = f"regexp_replace({text}, '{final}', '\\1ς\\2', 'g')"
    return (
        f"CREATE MACRO spark_lower(s) AS CASE WHEN regexp_matches(s, '[İΣ{_CAPITALS}]') THEN"
        f" lower({text}) ELSE lower(s) END"
    )


MACROS = (_upper_macro(), _lower_macro())


@lowers(exp.Upper)
def upper(node: exp.Upper, lower: Lower) -> Typed:
    return strict(
        [as_string(lower(_innermost(node.this)))],
        lambda v: let(v, lambda x: f"spark_upper({x})"),
        STRING,
    )


@lowers(exp.Lower)
def lowercase(node: exp.Lower, lower: Lower) -> Typed:
    return strict(
        [as_string(lower(_innermost(node.this)))],
        lambda v: let(v, lambda x: f"spark_lower({x})"),
        STRING,
    )


def _innermost(node: exp.Expr) -> exp.Expr:
    """Spark's optimizer makes lower(upper(s)) into lower(s), which for ß is not the same."""
    while isinstance(node.unnest(), (exp.Upper, exp.Lower)):
        node = node.unnest().this
    return node
