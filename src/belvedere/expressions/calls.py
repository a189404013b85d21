"""What Spark knows: the numbers of arguments of every function that has a rule here, and the types
of casts.

sqlglot reads the functions of all dialects, drops arguments that it does not know and lets others
be missing. So the names are Spark's only, and arguments are counted as they are written, before
anything is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

_MANY = 1_000_000
_COUNTS = {
    (0, 0): "row_number rank dense_rank",
    (1, 1): (
        "abs ascii avg boolean char char_length character_length chr count_if date"
        " date_from_unix_date day dayofmonth dayofweek dayofyear double float hex hour int isnan"
        " isnotnull isnull last_day lcase len length lower max md5 mean min minute month"
        " octet_length positive quarter reverse second sha sha1 sign signum sqrt string sum"
        " timestamp timestamp_millis timestamp_seconds ucase unix_date unix_micros unix_seconds"
        " upper weekday weekofyear year"
    ),
    (
        1,
        2,
    ): "btrim ceil ceiling floor ltrim round rtrim to_date to_timestamp to_unix_timestamp trim",
    (2, 2): (
        "add_months and contains date_sub date_trunc div endswith extract ifnull left mod nanvl"
        " nullif nvl or pmod regexp_like repeat right rlike sha2 startswith trunc"
    ),
    (2, 3): (
        "date_add date_diff dateadd datediff ilike like locate lpad position replace rpad substr"
        " substring"
    ),
    (3, 3): "if make_date nvl2 split_part timestampadd timestampdiff translate",
    (0, 2): "unix_timestamp",
    (2, 4): "instr",
    (1, _MANY): "coalesce concat concat_ws count",
    (2, _MANY): "greatest least",
}
CALLS = {name: counts for counts, names in _COUNTS.items() for name in names.split()}
# Functions that only sqlglot knows, although it makes the same of them as of one of Spark's.
_FOREIGN = (
    "charindex convert countif date_to_date_str day_of_month day_of_week day_of_year ends_with iif"
    " is_nan last_day_of_month leftpad pad rightpad safe_cast starts_with str_position str_to_unix"
    " strpos time_to_time_str timestamp_ltz timestamp_ntz timestamp_trunc to_hex try_convert"
    " ts_or_ds_add ts_or_ds_to_date ts_or_ds_to_date_str week_of_year"
)
FOREIGN = frozenset(_FOREIGN.split())
# Functions of which sqlglot makes something else: it turns the unit 'M' into MINUTE and date_sub(d,
# n) into d + n * -1. Its instr looks like a locate with the same arguments, which it is not.
AS_WRITTEN = frozenset({"trunc", "date_trunc", "date_sub", "instr"})
_TYPES = (
    "BOOLEAN TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG FLOAT REAL DOUBLE DATE TIME"
    " TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ STRING CHARACTER CHAR VARCHAR BINARY DECIMAL DEC"
    " NUMERIC VOID INTERVAL VARIANT ARRAY MAP STRUCT GEOMETRY GEOGRAPHY"
)
_SUFFIXES = frozenset({"L", "S", "Y", "D", "F", "BD"})  # 1L is read as a cast to L
_SIZED = frozenset({"CHARACTER", "CHAR", "VARCHAR"})
_TRIMMED = ("BOTH", "LEADING", "TRAILING")
_WORDS = {
    "extract": "FROM",
    "substr": "FROM",
    "substring": "FROM",
    "trim": "FROM",
    "position": "IN",
}


def miscounted(tokens: Sequence[Token], at: int) -> str:
    """What is wrong with the arguments of the call whose name stands at `at`, or ""."""
    name, parts = tokens[at].text.lower(), _arguments(tokens, at + 1)
    if parts is None:
        return f"the parenthesis after {name} is never closed"
    if name not in CALLS or _has_words(name, parts):
        return ""
    if (parts != [[]] and [] in parts) or [token.token_type for token in parts[0]] == [
        TokenType.DISTINCT
    ]:
        return f"an argument of {name} is missing"
    if name == "trim" and len(parts[0]) > 1 and parts[0][0].text.upper() in _TRIMMED:
        return f"trim({parts[0][0].text.upper()} ...) needs FROM and a string"
    least, most = CALLS[name]
    count = 0 if parts == [[]] else len(parts)
    if least <= count <= most:
        return ""
    wanted = (
        str(least)
        if least == most
        else f"{least} or more"
        if most == _MANY
        else f"{least} to {most}"
    )
    return f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {count}"


def not_in_spark(words: Sequence[str]) -> str:
    """What is wrong with the type of a cast, of which these are the words in capitals, or ""."""
    if not words or words[0] in _SUFFIXES:
        return ""
    name, *rest = words
    if name not in _TYPES.split() or rest[:1] == ["PRECISION"]:
        return (
            f"{' '.join(words)} is not a type of Spark, so nothing can be cast to it: write STRING,"
            " BOOLEAN, DOUBLE or the like"
        )
    return f"{name} needs a length in a cast: write STRING" if name in _SIZED and not rest else ""


def _arguments(tokens: Sequence[Token], at: int) -> list[list[Token]] | None:
    """The tokens between the parenthesis at `at` and its partner, split at commas; None if there is
    no partner.
    """
    depth = 0
    parts: list[list[Token]] = [[]]
    for token in tokens[at:]:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            return parts
        if depth == 1 and token.token_type == TokenType.COMMA:
            parts.append([])
        elif depth > 1 or token.token_type != TokenType.L_PAREN:
            parts[-1].append(token)
    return None


def _has_words(name: str, parts: list[list[Token]]) -> bool:
    """Whether words stand between the arguments: extract(year FROM d), position('a' IN s)."""
    if name not in _WORDS or len(parts) != 1:
        return False
    words, depth = [], 0
    for token in parts[0]:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        words += [token.text.upper()] if depth == 0 else []
    return any(
        word == _WORDS[name] and before != "DISTINCT"
        for before, word in zip(["", *words], words, strict=False)
    )
