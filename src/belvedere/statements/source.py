"""CREATE SOURCE, ALTER SOURCE and DROP SOURCE, by their words; and relations of sources that are
named.

    CREATE SOURCE [IF NOT EXISTS] shop TYPE postgres OPTIONS (host = 'db1', password = env('P'))
    ALTER SOURCE shop COPY orders, items    follow them, and keep them here with all their rows
    ALTER SOURCE shop RELOAD [orders, items]
    DROP SOURCE [IF EXISTS] shop [FORCE]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from belvedere.catalog.definitions import Followed, TableDefinition
from belvedere.catalog.filling import keep_rows
from belvedere.catalog.source_definition import COPY, TRANSACTIONS, SecretPlace, SourceDefinition
from belvedere.catalog.sources import (
    ask_reload,
    begin_drop_source,
    check_follows,
    create_relation,
    create_source,
    end_drop_source,
    relation_name,
)
from belvedere.connections import connect
from belvedere.errors import CatalogError, SourceError, SqlError
from belvedere.result import Message
from belvedere.sources.secrets import ENV, FILE
from belvedere.sql.dialect import Token, TokenType, parse
from belvedere.sql.names import check_names, quoted
from belvedere.sql.parameters import Parameters
from belvedere.sql.query import relations
from belvedere.warehouse.choice import LOCAL, SCENARIOS
from belvedere.warehouse.covered import ask_load

if TYPE_CHECKING:
    from belvedere.database import Database

_SECRETS = ("password", "secret", "token")  # options that end so are given by reference only
_WRITE = {
    "CREATE": "CREATE SOURCE shop TYPE postgres OPTIONS (host = 'db1', ...)",
    "ALTER": "ALTER SOURCE shop COPY orders, or ALTER SOURCE shop RELOAD orders",
    "DROP": "DROP SOURCE shop, or DROP SOURCE shop FORCE",
}


def is_about_source(words: Sequence[Token]) -> bool:
    return len(words) > 1 and words[0].text.upper() in _WRITE and _says(words[1], "SOURCE")


def source_statement(
    db: Database, text: str, words: Sequence[Token], params: Parameters | None = None
) -> Message:
    first = words[0].text.upper()
    if params:
        raise SqlError(f"{first} SOURCE takes no parameters: leave out the values")
    reading = _Words(first, [w for w in words[2:] if w.token_type != TokenType.SEMICOLON])
    if first == "CREATE":
        return _create(db, reading)
    return _alter(db, reading) if first == "ALTER" else _drop(db, reading)


def follow_named(db: Database, select: str) -> None:
    """Relations of sources that a new view reads are followed from now on; they are not kept, if
    they need not be.
    """
    known = db.state()
    for name in relations(parse(select)):
        source, _, relation = name.partition(".")
        if relation and name.lower() not in known.tables and source.lower() in known.sources:
            _follow(db, known.sources[source.lower()], relation, keep=False)


# ---------------------------------------------------------------- CREATE


def _create(db: Database, words: _Words) -> Message:
    check_follows(db.store)
    exists = words.skip("IF", "NOT", "EXISTS")
    name = words.name()
    check_names("the source", [name])
    if "." in name:
        raise SqlError(f"{name}: the name of a source has no dot in it")
    words.need("TYPE")
    kind = words.name().lower()
    options, secrets = _options(words)
    words.end()
    if exists and name.lower() in db.state().sources:
        return Message(f"source {name} exists already")
    if (said := options.get(TRANSACTIONS, LOCAL)) not in SCENARIOS:
        raise SqlError(f"{TRANSACTIONS} = '{said}' is not known: use one of {', '.join(SCENARIOS)}")
    _try(SourceDefinition(0, name, kind, options, secrets, 0))
    if not create_source(db.store, name, kind, options, secrets, exists):
        return Message(f"source {name} exists already")
    return Message(
        f"source {name} created: name its relations as {quoted(name)}.relation in a view, or follow"
        f" them with ALTER SOURCE {quoted(name)} COPY relation"
    )


def _try(definition: SourceDefinition) -> None:
    """Options that are wrong are said at once."""
    source = connect(definition)
    try:
        offered = {name.lower() for name in source.relations()}
    finally:
        source.close()
    for name in definition.copied if COPY in definition.options else []:
        if name != "*" and name not in offered:
            raise SqlError(
                f"{COPY}: the source has no relation '{name}' that can be followed: name those to"
                " be kept, with commas, or * for all"
            )


def _options(words: _Words) -> tuple[dict[str, str], dict[str, SecretPlace]]:
    options: dict[str, str] = {}
    secrets: dict[str, SecretPlace] = {}
    if not words.skip("OPTIONS"):
        return options, secrets
    words.need("(")
    while not words.skip(")"):
        option = words.name().lower()
        words.need("=")
        _option(words, option, options, secrets)
        if not words.skip(","):
            words.need(")")
            break
    return options, secrets


def _option(
    words: _Words, option: str, options: dict[str, str], secrets: dict[str, SecretPlace]
) -> None:
    base = option.removesuffix("_file")
    if option in options or base in secrets:
        raise SqlError(f"option {option} is given twice: give it once")
    if words.skip("ENV"):
        words.need("(")
        secrets[option] = SecretPlace(ENV, words.text())
        words.need(")")
    elif base != option and base.endswith(_SECRETS):
        secrets[base] = SecretPlace(FILE, words.text())
    elif option.endswith(_SECRETS):
        raise SqlError(
            f"{option} would be kept in the catalog for everybody to read: write {option} ="
            f" env('VARIABLE'), or {option}_file = 'path'"
        )
    else:
        options[option] = words.text()


# ---------------------------------------------------------------- ALTER


def _alter(db: Database, words: _Words) -> Message:
    name = words.name()
    source = db.state().source(name)
    if words.skip("COPY"):
        names = words.names()
        words.end()
        made = [relation for relation in names if _keep(db, source, relation)]
        if not made:
            return Message(f"{_listed(source, names)}: kept already")
        return Message(f"{_listed(source, made)}: kept from now on, and copied by a pipeline")
    words.need("RELOAD")
    names = words.names() if words.is_left else []
    words.end()
    return _reload(db, source, names)


def _keep(db: Database, source: SourceDefinition, relation: str) -> bool:
    """Have a relation followed, and kept with all its rows; False if it is already."""
    known = db.state().tables.get(relation_name(source.name, relation).lower())
    if known is None or not known.passes:
        return _follow(db, source, relation, keep=True)
    return keep_rows(db.store, known.id)


def _follow(db: Database, source: SourceDefinition, relation: str, keep: bool) -> bool:
    """Describe a relation, and have it followed; False if it is already. A source that does not
    tell rows before says of some changes only what they are to rows that we have.
    """
    name, state = relation_name(source.name, relation), db.state()
    if name.lower() in state.tables and state.tables[name.lower()].id not in state.dropping:
        return False
    found = db.connections.of(source).describe(relation)
    needed = found.needs_copy or not (found.has_before and db.store.capabilities.passing)
    passes = not (keep or needed or source.is_kept(found.name))
    followed = Followed(source.name, found.name, found.has_before, passes)
    return create_relation(db.store, name, followed, found.schema)


def _reload(db: Database, source: SourceDefinition, names: list[str]) -> Message:
    state = db.state()
    tables = [state.table(relation_name(source.name, name)) for name in names]
    for table in tables or state.relations_of(source.name):
        _check_unchanged(db, source, table)
    ask_reload(db.store, source.name, [table.id for table in tables] if names else None)
    what = _listed(source, names) if names else f"all relations of {source.name}"
    for table in state.joined() if not names else ():
        if table.joined is not None and source.name in table.joined.sources:
            ask_load(db.store, table.joined.progress)
            what += f", view {table.joined.view}"
    return Message(f"{what}: loaded again by a pipeline")


def _check_unchanged(db: Database, source: SourceDefinition, table: TableDefinition) -> None:
    """Views were planned for the columns that it had."""
    assert table.followed is not None
    if db.connections.of(source).describe(table.followed.relation).schema != table.schema:
        raise CatalogError(
            f"{table.name} has other columns now: drop the views that read it, DROP TABLE"
            f" {table.name}, and create the views anew"
        )


# ---------------------------------------------------------------- DROP


def _drop(db: Database, words: _Words) -> Message:
    exists = words.skip("IF", "EXISTS")
    name = words.name()
    force = words.skip("FORCE")
    words.end()
    if exists and name.lower() not in db.state().sources:
        return Message(f"there is no source {name}")
    source = begin_drop_source(db.store, name)
    left = _remove(db, source, force)
    end_drop_source(db.store, source)
    db.connections.close_one(source)
    return Message(f"source {source.name} dropped{left}")


def _remove(db: Database, source: SourceDefinition, force: bool) -> str:
    """Have the server forget us; with FORCE it may be gone."""
    try:
        db.connections.of(source).remove()
    except SourceError as error:
        if force:
            return f"; its server was not told, and may keep its log for us: {error}"
        raise SourceError(
            f"source {source.name} is not followed any more, but not dropped: {error}. DROP SOURCE"
            f" {source.name} tries again; with FORCE at its end the server is not told"
        ) from error
    return ""


def _listed(source: SourceDefinition, names: Sequence[str]) -> str:
    return ", ".join(relation_name(source.name, name) for name in names)


# ---------------------------------------------------------------- words


class _Words:
    """The words of a statement, read one after the other."""

    def __init__(self, first: str, words: Sequence[Token]) -> None:
        self._first, self._words, self._at = first, words, 0

    @property
    def is_left(self) -> bool:
        return self._at < len(self._words)

    def skip(self, *texts: str) -> bool:
        """Whether these words come next; then they are behind us."""
        found = self._words[self._at : self._at + len(texts)]
        if len(found) < len(texts) or not all(map(_says, found, texts)):
            return False
        self._at += len(texts)
        return True

    def need(self, text: str) -> None:
        if not self.skip(text):
            raise self._wrong(text)

    def name(self) -> str:
        word = self._next("a name")
        if word.token_type == TokenType.STRING or not (
            word.token_type == TokenType.IDENTIFIER or word.text.replace("_", "a").isalnum()
        ):
            self._at -= 1
            raise self._wrong("a name")
        return str(word.text)

    def names(self) -> list[str]:
        """Relations with commas between, each perhaps with a schema in front."""
        found = [self._dotted()]
        while self.skip(","):
            found.append(self._dotted())
        return found

    def _dotted(self) -> str:
        name = self.name()
        while self.skip("."):
            name += f".{self.name()}"
        return name

    def text(self) -> str:
        """A value: text in quotes, or a number."""
        word = self._next("a value")
        if word.token_type not in (TokenType.STRING, TokenType.NUMBER):
            self._at -= 1
            raise self._wrong("a value in quotes")
        return str(word.text)

    def end(self) -> None:
        if self.is_left:
            raise self._wrong("the end")

    def _next(self, wanted: str) -> Token:
        if not self.is_left:
            raise self._wrong(wanted)
        self._at += 1
        return self._words[self._at - 1]

    def _wrong(self, wanted: str) -> SqlError:
        found = self._words[self._at].text if self.is_left else "the end"
        return SqlError(
            f"{wanted} is expected, not {found}: write {_WRITE[self._first]} (docs/sources.md)"
        )


def _says(word: Token, text: str) -> bool:
    is_word = word.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
    return is_word and str(word.text).upper() == text
