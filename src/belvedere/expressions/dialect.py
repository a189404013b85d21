"""Spark's SQL dialect for sqlglot, with corrections.

In Spark a doubled quote inside a string is that quote: 'It''s' is It's, where sqlglot's "spark"
reads 'It' 's' and so Its. sqlglot forgets a unary plus, which in Spark turns a string into a
number. It knows functions that Spark does not, takes calls with too few or too many arguments, and
writes units out that Spark does not know (see calls.py). It takes strings for names, a SELECT
without columns, two definitions of one name after WITH, a comma inside parentheses in FROM, two ON
one after the other, and GROUP BY ALL with more behind it, where ALL is the name of a column. Long
conditions become balanced trees, so that nothing that walks through them goes as deep as they are
long. Parse views with `read=SparkSql`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from belvedere.errors import SqlError
from belvedere.expressions.calls import AS_WRITTEN, FOREIGN, miscounted, not_in_spark

_Builders = dict[str, Callable[..., Any]]
_SHORT_UNITS = exp.TimeUnit.UNABBREVIATED_UNIT_NAME
_LONG = 16  # terms of a condition from which on it is balanced
_COMMA = "comma"
WRITTEN, PLACE = "written", "place"


def _positive(parser: Parser) -> exp.Expr:
    value = parser._parse_unary()
    if value is None:
        parser.raise_error("Required keyword: a value after +")
    return exp.Anonymous(this="positive", expressions=[value])


def _placeholder(parser: Parser) -> exp.Expr:
    """A question mark remembers where it stands: values are bound in the order of the text, and the
    tree has another.
    """
    found = exp.Placeholder()
    found.meta[PLACE] = parser._prev.start
    return found


def _binary(parser: Parser, token: Token) -> exp.Expr:
    if parser.sql[token.start] == "0":
        parser.raise_error(
            f"0x{token.text} is not a literal in Spark: write X'{token.text}' for bytes, or digits"
            " for a number",
            token,
        )
    return exp.HexString(this=token.text)


def _known(builders: _Builders) -> _Builders:
    """The functions of which sqlglot makes what Spark means; others stay calls by name."""
    return {
        name: build for name, build in builders.items() if name.lower() not in FOREIGN | AS_WRITTEN
    }


class SparkSql(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    class Parser(SparkParser):
        UNARY_PARSERS: ClassVar = {**SparkParser.UNARY_PARSERS, TokenType.PLUS: _positive}
        PRIMARY_PARSERS: ClassVar = {**SparkParser.PRIMARY_PARSERS, TokenType.HEX_STRING: _binary}
        PLACEHOLDER_PARSERS: ClassVar = {
            **SparkParser.PLACEHOLDER_PARSERS,
            TokenType.PLACEHOLDER: _placeholder,
        }
        FUNCTIONS: ClassVar = _known(SparkParser.FUNCTIONS)
        FUNCTION_PARSERS: ClassVar = _known(SparkParser.FUNCTION_PARSERS)
        _type_written: Sequence[str] = ()  # the words of the type that was read last

        def _parse_function_call(
            self,
            functions: _Builders | None = None,
            anonymous: bool = False,
            optional_parens: bool = True,
            any_token: bool = False,
        ) -> exp.Expr | None:
            if (
                self._curr
                and self._next
                and self._next.token_type == TokenType.L_PAREN
                and self._curr.token_type in self.FUNC_TOKENS
            ):
                problem = miscounted(self._tokens, self._index)
                if problem:
                    self.raise_error(problem)
            start, name = self._curr, self._curr.text.lower() if self._curr else ""
            try:
                found = super()._parse_function_call(
                    functions, anonymous, optional_parens, any_token
                )
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                # Functions without a rule here are not counted, and sqlglot fails at missing
                # arguments of some, such as map(1).
                self.raise_error(f"the arguments of {name} are not understood")
                return None
            if isinstance(found, exp.Func):
                found.meta.setdefault(WRITTEN, self.sql[start.start : self._prev.end + 1])
            return found

        def _parse_interval_span(
            self, this: exp.Expr, parse_function_unit: bool = True
        ) -> exp.Interval:
            start = self._index
            if isinstance(this, exp.Paren):
                self.raise_error("the number of an interval stands without parentheses")
            interval = super()._parse_interval_span(this, parse_function_unit)
            written = [
                *(str(this.name).split() if this.is_string else []),
                *(t.text for t in self._tokens[start : self._index][:1]),
            ]
            for word in written:
                if word.upper() in _SHORT_UNITS:
                    self.raise_error(
                        f"{word} is not a unit of an interval in Spark: write"
                        f" {_SHORT_UNITS[word.upper()]}"
                    )
            return interval

        def _parse_types(
            self,
            check_func: bool = False,
            schema: bool = False,
            allow_identifiers: bool = True,
            with_collation: bool = False,
        ) -> exp.Expr | None:
            start = self._index
            found = super()._parse_types(check_func, schema, allow_identifiers, with_collation)
            self._type_written = [token.text.upper() for token in self._tokens[start : self._index]]
            return found

        def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:
            problem = not_in_spark(self._type_written)
            if problem:
                self.raise_error(problem)
            return super().build_cast(strict, **kwargs)

        def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
            found = super()._parse_projections()
            if not found[0]:
                self.raise_error("SELECT has no columns: name some after it, or write SELECT *")
            return found

        def _parse_disjunction(self) -> exp.Expr | None:
            return _balanced(super()._parse_disjunction(), exp.Or)

        def _parse_conjunction(self) -> exp.Expr | None:
            return _balanced(super()._parse_conjunction(), exp.And)

        def _parse_join(
            self,
            skip_join_token: bool = False,
            parse_bracket: bool = False,
            alias_tokens: Collection[TokenType] | None = None,
        ) -> exp.Join | None:
            comma = self._curr.token_type == TokenType.COMMA
            found = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
            if found is not None and found.this is not None and found.this.args.get("joins"):
                self.raise_error(
                    "a join inside a join needs parentheses: a JOIN (b JOIN c ON ...) ON ..."
                )
            if found is not None and comma:
                found.meta[_COMMA] = True
            return found

        def _parse_subquery(
            self, this: exp.Expr | None, parse_alias: bool = True
        ) -> exp.Subquery | None:
            if (
                this is not None
                and not isinstance(this, exp.Select)
                and any(j.meta.get(_COMMA) for j in this.args.get("joins") or [])
            ):
                self.raise_error(
                    "a comma cannot stand between relations in parentheses: write CROSS JOIN",
                    self._prev,
                )
            return super()._parse_subquery(this, parse_alias)

        def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
            start = self._index if skip_group_by_token else self._index + 1
            found = super()._parse_group(skip_group_by_token)
            if found is None or found.args.get("all") is None:
                return found
            quantifier, after = self._tokens[start], self._tokens[start + 1 : start + 2]
            if quantifier.token_type == TokenType.DISTINCT:
                self.raise_error("DISTINCT cannot stand behind GROUP BY: leave it out", quantifier)
            if not found.expressions:
                return found
            if not (after and after[0].token_type == TokenType.COMMA):
                self.raise_error(
                    f"{after[0].text} cannot stand behind GROUP BY ALL: leave out one of them",
                    after[0],
                )
            column = exp.Column(this=exp.Identifier(this=quantifier.text, quoted=False))
            found.set("all", None)
            found.set("expressions", [column, *found.expressions])
            return found

        def _parse_with(self, skip_with_token: bool = False) -> exp.With | None:
            found = super()._parse_with(skip_with_token)
            names = [cte.alias.lower() for cte in found.expressions] if found else []
            twice = next((name for i, name in enumerate(names) if name in names[:i]), "")
            if twice:
                self.raise_error(
                    f"WITH defines {twice} twice: give each definition a name of its own"
                )
            return found

        def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
            if this is not None:
                self._refuse_string()
            return super()._parse_alias(this, explicit)

        def _parse_table_alias(
            self, alias_tokens: Collection[TokenType] | None = None
        ) -> exp.TableAlias | None:
            self._refuse_string()
            return super()._parse_table_alias(alias_tokens)

        def _parse_function_parameter(self) -> exp.Expr | None:
            self._refuse_string()  # a column of an alias: t (a, b)
            return super()._parse_function_parameter()

        def _parse_string_as_identifier(self) -> exp.Identifier | None:
            self._refuse_string()
            return super()._parse_string_as_identifier()

        def _refuse_string(self) -> None:
            """What stands in single or double quotes is a string for Spark, and no name."""
            token = self._next if self._curr.token_type == TokenType.ALIAS else self._curr
            if token.token_type == TokenType.STRING:
                self.raise_error(
                    f"{self.sql[token.start : token.end + 1]} is a string, not a name: put names in"
                    " backquotes",
                    token,
                )

        def _build_predicate(
            self, klass: Any, this: Any, expression: Any, *args: Any, **kwargs: Any
        ) -> exp.Expr:
            if klass is not exp.Is and any(
                isinstance(s.this if isinstance(s, exp.Not) else s, exp.Is)
                for s in (this, expression)
            ):
                # For Spark x IS NULL = y is not SQL; sqlglot would put parentheses around x IS
                # NULL.
                self.raise_error("IS beside a comparison needs parentheses")
            return super()._build_predicate(klass, this, expression, *args, **kwargs)


class _AsWritten(SparkSql):
    class Generator(SparkGenerator):
        def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
            node = (
                expression.args.get(key) if key and isinstance(expression, exp.Expr) else expression
            )
            written = node.meta.get(WRITTEN) if isinstance(node, exp.Func) else None
            return str(written or super().sql(expression, key, comment))


def _balanced(node: exp.Expr | None, kind: type[exp.Connector]) -> exp.Expr | None:
    """A long chain a OR b OR c ... as a tree of little depth.

    AND and OR are associative, and the order of the terms stays.
    """
    terms: list[exp.Expr] = []
    spine = node
    while type(spine) is kind:
        terms.append(spine.expression)
        spine = spine.this
    if spine is None or len(terms) < _LONG:
        return node
    level = [spine, *reversed(terms)]
    while len(level) > 1:
        pairs = [kind(this=a, expression=b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[len(pairs) * 2 :]]
    return level[0]


def written_of(node: exp.Expr) -> str:
    """The text of an expression with the calls in it as the user wrote them: the parser has names
    of its own for functions.
    """
    return str(node.sql(dialect=_AsWritten))


def called(node: exp.Expr) -> str:
    """The name of a function as the user wrote it."""
    match = re.match(r"\s*`?(\w+)", written_of(node))
    return match[1] if match else written_of(node)


def parse(text: str) -> exp.Expr:
    """One scalar expression."""
    try:
        return sqlglot.parse_one(text, read=SparkSql)
    except (ParseError, TokenError) as error:
        raise SqlError(f"cannot read the expression {text!r}: {error}") from error
