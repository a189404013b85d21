"""Functions of strings. Positions and lengths count code points, as in Spark."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions.casts import cast_to
from belvedere.expressions.rules import Lower, as_string, function, literal_number, lowers, typed_as
from belvedere.expressions.typed import Typed, let, null_of, raise_sql, strict
from belvedere.types import BIGINT, BINARY, BOOLEAN, INT, STRING

_INT_MAX = 2**31 - 1


def _int(node: exp.Expr, lower: Lower, where: str) -> Typed:
    return typed_as(lower(node), INT, where)


def joined(values: list[Typed]) -> Typed:
    """|| and concat: NULL if any is NULL; all arguments are evaluated,
    unlike with other functions.
    """
    kind = BINARY if values and all(v.type == BINARY for v in values) else STRING
    if any(v.is_null for v in values):
        return null_of(kind)
    cast = [cast_to(v, kind) for v in values]
    sql = "(" + " || ".join(v.sql for v in cast) + ")" if cast else "''"
    return Typed(sql, kind, any(v.raises for v in cast), any(v.nullable for v in cast))


@lowers(exp.DPipe, args="this expression safe")
def pipe(node: exp.DPipe, lower: Lower) -> Typed:
    if isinstance(node.expression, (exp.Add, exp.Sub)):
        # Spark gives || and + the same precedence, sqlglot does not.
        raise Unsupported(
            f"{node.sql('spark')} without parentheses", "put parentheses around the sum"
        )
    return joined([lower(node.this), lower(node.expression)])


@lowers(exp.Concat, args="expressions safe coalesce")
def concat(node: exp.Concat, lower: Lower) -> Typed:
    if node.args.get("safe") is None:
        # Parsed with sqlglot's own "spark" dialect this may be 'It''s': see dialect.py.
        raise Unsupported("adjacent string literals", "write one literal, or use ||")
    return joined([lower(e) for e in node.expressions])


@lowers(exp.ConcatWs, args="expressions safe coalesce flatten")
def concat_ws(node: exp.ConcatWs, lower: Lower) -> Typed:
    """NULLs are skipped, but a NULL separator makes it NULL."""
    separator, *values = [as_string(lower(e)) for e in node.expressions]
    items = ", ".join(v.sql for v in values) or "NULL"
    return Typed(
        f"concat_ws({separator.sql}, {items})",
        STRING,
        any(v.raises for v in (separator, *values)),
        separator.nullable,
    )


@lowers(exp.Length)
def length(node: exp.Length, lower: Lower) -> Typed:
    value = lower(node.this)
    if value.type == BINARY:
        return strict([value], lambda v: f"CAST(octet_length({v}) AS INTEGER)", INT)
    return strict([as_string(value)], lambda v: f"CAST(length({v}) AS INTEGER)", INT)


@function("octet_length", 1)
def octet_length(node: exp.Anonymous, lower: Lower) -> Typed:
    value = lower(node.expressions[0])
    name = "octet_length" if value.type == BINARY else "strlen"
    return strict(
        [value if value.type == BINARY else as_string(value)],
        lambda v: f"CAST({name}({v}) AS INTEGER)",
        INT,
    )


@lowers(exp.Trim, args="this expression position")
def trim(node: exp.Trim, lower: Lower) -> Typed:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
        str(node.args.get("position") or "").upper(), "trim"
    )
    return _trimmed(name, node.this, node.args.get("expression"), lower)


@function("btrim", 1, 2)
def btrim(node: exp.Anonymous, lower: Lower) -> Typed:
    text, *chars = node.expressions
    return _trimmed("trim", text, chars[0] if chars else None, lower)


def _trimmed(name: str, text: exp.Expr, chars: exp.Expr | None, lower: Lower) -> Typed:
    value = as_string(lower(text))
    if chars is None:
        return strict([value], lambda v: f"{name}({v}, ' ')", STRING)
    return strict([value, as_string(lower(chars))], lambda v, c: f"{name}({v}, {c})", STRING)


@lowers(exp.Substring, args="this start length")
def substring(node: exp.Substring, lower: Lower) -> Typed:
    text, start = lower(node.this), _int(node.args["start"], lower, "the start of substring")
    if text.type == BINARY:
        raise Unsupported("substring of binary", "use hex first")
    size_node = node.args.get("length")
    size = _int(size_node, lower, "the length of substring") if size_node is not None else None
    args = [as_string(text), start] + ([size] if size is not None else [])
    return strict(args, lambda v, p, n=str(_INT_MAX): _substring(v, p, n, start, size), STRING)


def _substring(text: str, position: str, count: str, start: Typed, size: Typed | None) -> str:
    """Positions count from 1, negative ones from the end, and 0 is 1; what lies before the text
    counts against the length.
    """
    simple = isinstance(start.literal, int) and start.literal > 0
    if simple and (size is None or (isinstance(size.literal, int) and size.literal >= 0)):
        return f"substring({text}, {position}, {count})"

    def body(v: str, p: str) -> str:
        first = (
            f"CASE WHEN {p} > 0 THEN CAST({p} AS BIGINT) - 1 WHEN {p} < 0 THEN length({v}) + {p}"
            " ELSE 0 END"
        )
        return let(
            first,
            lambda f: (
                f"substring({v}, greatest({f}, 0) + 1, greatest({f} + CAST({count} AS BIGINT) -"
                f" greatest({f}, 0), 0))"
            ),
        )

    def whole(v: str, p: str) -> str:
        return f"CASE WHEN {p} IS NOT NULL AND {count} IS NOT NULL THEN {body(v, p)} END"

    return let(text, lambda v: let(position, lambda p: whole(v, p)))


@lowers(exp.Left, args="this expression")
def left(node: exp.Left, lower: Lower) -> Typed:
    args = [_text(lower(node.this), "left"), _int(node.expression, lower, "the length of left")]
    return strict(args, lambda v, n: f"left({v}, {_not_below_zero(n)})", STRING)


@lowers(exp.Right, args="this expression")
def right(node: exp.Right, lower: Lower) -> Typed:
    args = [_text(lower(node.this), "right"), _int(node.expression, lower, "the length of right")]
    return strict(args, lambda v, n: f"right({v}, {_not_below_zero(n)})", STRING)


def _not_below_zero(count: str) -> str:
    """Not greatest(), which skips NULL."""
    return let(count, lambda n: f"CASE WHEN {n} < 0 THEN 0 ELSE {n} END")


def _text(value: Typed, where: str) -> Typed:
    if value.type == BINARY:
        raise Unsupported(f"{where} of binary", "use hex first")
    return as_string(value)


@lowers(exp.StrPosition, args="this substr position")
def position(node: exp.StrPosition, lower: Lower) -> Typed:
    """position and locate.

    Spark's locate finds an empty string at 1 from any start, and nothing from a start below 1.
    """
    text, part = as_string(lower(node.this)), as_string(lower(node.args["substr"]))
    start_node = node.args.get("position")
    if start_node is None:
        return strict([text, part], lambda v, s: f"CAST(strpos({v}, {s}) AS INTEGER)", INT)
    start = literal_number(lower(start_node), "the start of locate")
    if start < 1:
        raise Unsupported(f"locate from {start}", "positions count from 1")

    def build(s: str, v: str) -> str:
        found = let(
            f"strpos(substring({v}, {start}), {s})",
            lambda f: f"CASE WHEN {f} = 0 THEN 0 ELSE {f} + {start - 1} END",
        )
        return f"CAST(CASE WHEN {s} = '' AND {v} IS NOT NULL THEN 1 ELSE {found} END AS INTEGER)"

    return strict([part, text], build, INT)


@function("instr", 2)
def instr(node: exp.Anonymous, lower: Lower) -> Typed:
    text, part = (as_string(lower(e)) for e in node.expressions)
    return strict([text, part], lambda v, s: f"CAST(strpos({v}, {s}) AS INTEGER)", INT)


@lowers(exp.Replace, args="this expression replacement")
def replace(node: exp.Replace, lower: Lower) -> Typed:
    new = node.args.get("replacement")
    args = [as_string(lower(e)) for e in (node.this, node.expression, new) if e is not None]
    return strict(args, lambda v, old, by="''": f"replace({v}, {old}, {by})", STRING)


@lowers(exp.Pad, args="this expression fill_pattern is_left")
def pad(node: exp.Pad, lower: Lower) -> Typed:
    fill_node = node.args.get("fill_pattern")
    fill = (
        as_string(lower(fill_node))
        if fill_node is not None
        else Typed("' '", STRING, nullable=False, literal=" ")
    )
    args = [
        _text(lower(node.this), "lpad and rpad"),
        _int(node.expression, lower, "the length of lpad and rpad"),
        fill,
    ]
    name = "lpad" if node.args.get("is_left") else "rpad"

    def build(v: str, n: str, f: str) -> str:
        return (
            f"CASE WHEN {f} = '' THEN left({v}, {_not_below_zero(n)}) ELSE {name}({v},"
            f" {_not_below_zero(n)}, {f}) END"
        )

    return strict(args, lambda v, n, f: let(v, lambda x: let(n, lambda y: build(x, y, f))), STRING)


@lowers(exp.Repeat, args="this times")
def repeat(node: exp.Repeat, lower: Lower) -> Typed:
    args = [as_string(lower(node.this)), _int(node.args["times"], lower, "the count of repeat")]
    return strict(args, lambda v, n: f"repeat({v}, {n})", STRING)


@lowers(exp.Reverse)
def reverse(node: exp.Reverse, lower: Lower) -> Typed:
    """DuckDB's reverse keeps combined characters together, Spark's does not."""
    return strict(
        [_text(lower(node.this), "reverse")],
        lambda v: f"array_to_string(list_reverse(string_split({v}, '')), '')",
        STRING,
    )


@lowers(exp.Translate, args="this from_ to")
def translate(node: exp.Translate, lower: Lower) -> Typed:
    args = [as_string(lower(node.args[name])) for name in ("this", "from_", "to")]
    return strict(args, lambda v, old, new: f"translate({v}, {old}, {new})", STRING)


@lowers(exp.SplitPart, args="this delimiter part_index")
def split_part(node: exp.SplitPart, lower: Lower) -> Typed:
    args = [
        as_string(lower(node.this)),
        as_string(lower(node.args["delimiter"])),
        _int(node.args["part_index"], lower, "the index of split_part"),
    ]

    def build(v: str, d: str, n: str) -> str:
        failed = raise_sql("INVALID_INDEX_OF_ZERO", n, "VARCHAR")
        unsplit = f"CASE WHEN {n} IN (1, -1) THEN {v} ELSE '' END"
        return (
            f"CASE WHEN {n} = 0 THEN {failed} WHEN {d} = '' THEN {unsplit} ELSE split_part({v},"
            f" {d}, {n}) END"
        )

    def checked(v: str, d: str, n: str) -> str:
        return (
            f"CASE WHEN {v} IS NOT NULL AND {d} IS NOT NULL AND {n} IS NOT NULL THEN"
            f" {build(v, d, n)} END"
        )

    return strict(
        args,
        lambda v, d, n: let(v, lambda x: let(d, lambda y: let(n, lambda z: checked(x, y, z)))),
        STRING,
        raises=not args[2].literal,
    )


@lowers(exp.Ascii)
def ascii_code(node: exp.Ascii, lower: Lower) -> Typed:
    return strict([as_string(lower(node.this))], lambda v: f"CAST(ascii({v}) AS INTEGER)", INT)


@lowers(exp.Chr, args="expressions charset")
def character(node: exp.Chr, lower: Lower) -> Typed:
    value = lower(node.expressions[0])
    if not value.is_null and value.kind not in ("int", "bigint"):
        raise SqlError(f"chr needs a whole number, not {value.type}")
    return strict(
        [cast_to(value, BIGINT)],
        lambda v: let(
            v, lambda n: f"CASE WHEN {n} < 0 THEN '' ELSE chr(CAST({n} & 255 AS INTEGER)) END"
        ),
        STRING,
    )


@lowers(exp.Hex)
def hexadecimal(node: exp.Hex, lower: Lower) -> Typed:
    value = lower(node.this)
    if value.kind not in ("int", "bigint", "string", "binary"):
        raise Unsupported(f"hex of {value.type or 'NULL'}", "cast it to bigint, string or binary")
    return strict(
        [cast_to(value, BIGINT) if value.type == INT else value], lambda v: f"hex({v})", STRING
    )


def _digest(name: str) -> Callable[[exp.Expr, Lower], Typed]:
    def rule(node: exp.Expr, lower: Lower) -> Typed:
        value = lower(node.this)
        if not value.is_null and value.kind not in ("string", "binary"):
            raise SqlError(f"{node.key} needs a string or binary, not {value.type}")
        return strict([value], lambda v: f"{name}({v})", STRING)

    return rule


lowers(exp.MD5)(_digest("md5"))
lowers(exp.SHA)(_digest("sha1"))


@lowers(exp.SHA2, args="this length")
def sha2(node: exp.SHA2, lower: Lower) -> Typed:
    bits = node.args.get("length")
    if bits is None or literal_number(lower(bits), "the bits of sha2") not in (0, 256):
        raise Unsupported("sha2 with other than 256 bits", "use sha2(s, 256)")
    return _digest("sha256")(node, lower)


_TESTS: dict[type[exp.Expr], str] = {
    exp.StartsWith: "starts_with",
    exp.EndsWith: "suffix",
    exp.Contains: "contains",
}


@lowers(*_TESTS, args="this expression")
def text_test(node: exp.Func, lower: Lower) -> Typed:
    args = [_text(lower(e), node.key) for e in (node.this, node.expression)]
    return strict(args, lambda v, s: f"{_TESTS[type(node)]}({v}, {s})", BOOLEAN)
