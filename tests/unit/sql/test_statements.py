"""Statements: what is not obeyed is refused, names may be anything that is not empty, and messages
speak of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.errors import BelvedereError, CatalogError, SchemaError, SqlError, Unsupported
from belvedere.expressions import SparkSql
from belvedere.sql.dialect import split
from belvedere.sql.names import key_names, key_option

SIGNS = [
    "x y",
    "v w.x",
    "a,b",
    "a`b",
    "it's",
    'say "hi"',
    "back\\slash",
    "a;b",
    "(",
    "-- no",
    "größe",
]
ODD = [*SIGNS, "1st", "select", "Order", "primary", "key"]
NO_DATABASE = "tables and views here have no database in front of their names"


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as opened:
        opened.sql("CREATE TABLE t (id INT PRIMARY KEY, s STRING)")
        opened.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        opened.sql("CREATE MATERIALIZED VIEW v AS SELECT id, s FROM t")
        yield opened


def refused(db: belvedere.Database, statement: Any, kind: type[BelvedereError] = SqlError) -> str:
    """The message; the statement has changed nothing."""
    before = db.state(), db.sql("SELECT * FROM t").to_pylist()
    with pytest.raises(kind) as error:
        db.sql(statement)
    assert (db.state(), db.sql("SELECT * FROM t").to_pylist()) == before
    return str(error.value)


def backquoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize(
    ("constraint", "word"),
    [
        (
            "DEFAULT 5",
            (
                "DEFAULT 5 of column x is not supported in CREATE TABLE: give the value at INSERT"
                " or put"
            ),
        ),
        ("CHECK (x > 5)", "CHECK (x > 5) of column x"),
        ("UNIQUE", "UNIQUE of column x"),
        ("REFERENCES t (id)", "REFERENCES t (id) of column x"),
        ("GENERATED ALWAYS AS (id + 1)", "GENERATED ALWAYS AS (id + 1)"),
        ("GENERATED ALWAYS AS IDENTITY", "IDENTITY"),
        ("AS (id + 1)", "GENERATED ALWAYS"),
        ("COMMENT 'hello'", "COMMENT 'hello' of column x"),
        ("COLLATE UTF8_LCASE", "COLLATE"),
        ("AUTO_INCREMENT", "AUTO_INCREMENT"),
        ("FIRST", "FIRST"),
        ("CONSTRAINT c CHECK (x > 1)", "CONSTRAINT c"),
        (", CHECK (x > 1)", "CHECK (x > 1)"),
        (", CONSTRAINT c CHECK (x > 1)", "CONSTRAINT c CHECK (x > 1)"),
        (", CONSTRAINT p PRIMARY KEY (x)", "leave out CONSTRAINT and the name"),
        (", UNIQUE (x)", "UNIQUE (x)"),
        (", FOREIGN KEY (x) REFERENCES t (id)", "FOREIGN KEY"),
        (", LIKE t", "LIKE t"),
    ],
)
def test_a_constraint_that_would_not_be_kept_is_refused_by_its_name(
    db: belvedere.Database, constraint: str, word: str
) -> None:
    assert word in refused(
        db, f"CREATE TABLE d (id INT PRIMARY KEY, x INT {constraint})", Unsupported
    )


@pytest.mark.parametrize(
    "clause",
    [
        "PARTITIONED BY (x)",
        "USING PARQUET",
        "COMMENT 'hello'",
        "CLUSTERED BY (x) INTO 4 BUCKETS",
        "CLUSTER BY (x)",
        "LOCATION '/d'",
        "STORED AS PARQUET",
        "OPTIONS ('a'=1)",
        "WITH NO DATA",
        "AS SELECT",
    ],
)
def test_a_property_that_would_not_be_obeyed_is_refused_by_its_name(
    db: belvedere.Database, clause: str
) -> None:
    ends = " id, 1 AS x FROM t" if clause == "AS SELECT" else ""
    message = refused(db, f"CREATE TABLE d (id INT PRIMARY KEY, x INT) {clause}{ends}", Unsupported)
    assert message.startswith(f"{clause} is not supported in CREATE TABLE: ")


@pytest.mark.parametrize("word", ["TEMPORARY", "EXTERNAL"])
def test_a_kind_of_table_that_there_is_not_is_refused(db: belvedere.Database, word: str) -> None:
    assert refused(db, f"CREATE {word} TABLE d (id INT PRIMARY KEY)", Unsupported).startswith(
        f"{word} is not supported"
    )


@pytest.mark.parametrize("clause", ["COMMENT 'x'", "PARTITIONED BY (id)", "USING DELTA"])
def test_a_property_of_a_view_that_would_not_be_obeyed_is_refused(
    db: belvedere.Database, clause: str
) -> None:
    message = refused(db, f"CREATE MATERIALIZED VIEW w {clause} AS SELECT id FROM t", Unsupported)
    assert message.startswith(f"{clause} is not supported in CREATE MATERIALIZED VIEW: ")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id INT PRIMARY KEY, x INT PRIMARY KEY", "a table has one PRIMARY KEY"),
        ("id INT PRIMARY KEY, x INT, PRIMARY KEY (x)", "a table has one PRIMARY KEY"),
        ("id INT, x INT, PRIMARY KEY (id), PRIMARY KEY (x)", "a table has one PRIMARY KEY"),
        ("id INT, PRIMARY KEY (id, ID)", "lists id twice"),
        ("id INT NULL PRIMARY KEY", "column id cannot be NULL, but is declared NULL"),
        ("id INT NULL, PRIMARY KEY (id)", "column id cannot be NULL, but is declared NULL"),
        (
            "id INT PRIMARY KEY, x INT NOT NULL NULL",
            "column x cannot be NULL, but is declared NULL",
        ),
        ("id INT PRIMARY KEY DESC", "DESC is not supported"),
        ("id INT, PRIMARY KEY (id) NOT ENFORCED", "NOT ENFORCED"),
        ("id INT, PRIMARY KEY (lower(id))", "list columns by their names"),
        ("a.b INT PRIMARY KEY", "a.b is not the name of a column"),
        ("id, PRIMARY KEY (id)", "column id has no type"),
        ("id INT PRIMARY KEY, `` INT", "a column of table d has an empty name"),
        ("`` INT PRIMARY KEY", "a column of table d has an empty name"),
    ],
)
def test_columns_that_contradict_themselves_are_refused(
    db: belvedere.Database, columns: str, message: str
) -> None:
    assert message in refused(db, f"CREATE TABLE d ({columns})", BelvedereError)


def test_a_column_may_say_that_it_can_be_null(db: belvedere.Database) -> None:
    db.sql("CREATE TABLE d (id INT PRIMARY KEY, x INT NULL, y INT NOT NULL)")
    assert [c.nullable for c in db.state().table("d").schema.columns] == [True, True, False]


@pytest.mark.parametrize(
    "options", ["WITH (key = 'id', key = 's')", "WITH (key = 'id', KEY = 's')"]
)
def test_an_option_is_given_once(db: belvedere.Database, options: str) -> None:
    assert "the option key is given twice" in refused(
        db, f"CREATE MATERIALIZED VIEW w {options} AS SELECT id, s FROM t"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE `` (id INT PRIMARY KEY)",
        "CREATE TABLE ` ` (id INT PRIMARY KEY)",
        "CREATE MATERIALIZED VIEW `` AS SELECT id FROM t",
        "CREATE MATERIALIZED VIEW w AS SELECT id AS `` FROM t",
        "CREATE MATERIALIZED VIEW w AS SELECT * FROM (SELECT id FROM t) x (``)",
    ],
)
def test_an_empty_name_is_refused(db: belvedere.Database, statement: str) -> None:
    assert "has an empty name" in refused(db, statement, SchemaError)


@pytest.mark.parametrize(
    ("statement", "kind", "said"),
    [
        ("INSERT INTO {} VALUES (3, 'z')", CatalogError, "there is no table {}"),
        ("INSERT INTO {} (id) VALUES (3)", CatalogError, "there is no table {}"),
        ("UPDATE {} SET s = 'q'", CatalogError, "there is no table {}"),
        ("UPDATE {} AS a SET s = 'q'", CatalogError, "there is no table {}"),
        ("DELETE FROM {}", CatalogError, "there is no table {}"),
        ("SELECT * FROM {}", CatalogError, "there is no relation {}: if x is a source"),
        ("DROP TABLE {}", CatalogError, "there is no table {}"),
        ("DROP MATERIALIZED VIEW {}", CatalogError, "there is no view {}"),
        ("DESCRIBE {}", CatalogError, "there is no relation {}: if x is a source"),
        ("SHOW CREATE TABLE {}", CatalogError, "there is no relation {}: if x is a source"),
        ("EXPLAIN {}", CatalogError, "there is no view {}"),
        ("EXPLAIN COST {}", CatalogError, "there is no view {}"),
        ("REFRESH MATERIALIZED VIEW {}", CatalogError, "there is no view {}"),
        ("CREATE TABLE {} (id INT PRIMARY KEY)", SqlError, NO_DATABASE),
        ("CREATE MATERIALIZED VIEW {} AS SELECT id FROM t", SqlError, NO_DATABASE),
        ("CREATE MATERIALIZED VIEW w AS SELECT id FROM {}", SqlError, "there is no relation {}"),
    ],
)
@pytest.mark.parametrize("name", ["x.t", "x.y.t"])
def test_a_dotted_name_is_of_a_source(
    db: belvedere.Database, statement: str, kind: type[BelvedereError], said: str, name: str
) -> None:
    assert said.format(name) in refused(db, statement.format(name), kind)


def test_update_and_delete_know_the_alias_of_their_table(db: belvedere.Database) -> None:
    db.sql("UPDATE t AS a SET a.s = upper(a.s) WHERE a.id = 1")
    db.sql("DELETE FROM t b WHERE b.id = 2")
    assert db.sql("SELECT * FROM t").to_pylist() == [{"id": 1, "s": "X"}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE t AS a SET t.s = 'n'", "there is no column t.s"),
        ("UPDATE t AS a SET s = 'n' WHERE t.id = 1", "there is no column t.id"),
        ("UPDATE t SET z.s = 'n'", "there is no column z.s"),
        ("UPDATE t SET x.t.s = 'n'", "there is no column x.t.s"),
        ("UPDATE t SET s = x.t.s", "there is no column x.t.s"),
        ("DELETE FROM t WHERE x.t.id = 1", "there is no column x.t.id"),
        ("UPDATE t SET s = 'a', s = 'b'", "column s is set twice"),
        ("UPDATE t SET s = 'a', S = 'b'", "column s is set twice"),
        ("UPDATE t", "UPDATE sets nothing"),
        ("UPDATE t SET s = 'a' FROM v WHERE t.id = v.id", "FROM is not supported in UPDATE"),
        ("UPDATE t SET s = 'a' ORDER BY id LIMIT 1", "ORDER BY is not supported in UPDATE"),
        ("UPDATE t SET s = 'a' RETURNING id", "RETURNING is not supported in UPDATE"),
        ("WITH c AS (SELECT 1) UPDATE t SET s = 'w'", "WITH in front is not supported in UPDATE"),
        ("DELETE t", "write DELETE FROM t"),
        ("DELETE t WHERE id = 1", "write DELETE FROM t"),
        ("DELETE FROM t LIMIT 1", "LIMIT is not supported in DELETE"),
        ("DELETE FROM t USING v WHERE t.id = v.id", "USING is not supported in DELETE"),
        ("DELETE FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE is not supported in DELETE"),
        ("DELETE FROM t VERSION AS OF 1", "AS OF is not supported in DELETE"),
        ("DELETE FROM t AS a (x, y)", "COLUMNS is not supported in DELETE"),
        ("INSERT INTO t (id, s, id) VALUES (3, 'a', 4)", "column id is listed twice"),
        ("INSERT INTO t (id, s, S) VALUES (3, 'a', 'b')", "column s is listed twice"),
        ("INSERT INTO t (id, x.s) VALUES (3, 'a')", "x.s is not the name of a column"),
        ("INSERT INTO t () VALUES (3, 'a')", "INSERT lists no columns"),
        ("INSERT INTO t AS a VALUES (3, 'a')", "ALIAS is not supported in INSERT"),
        ("INSERT INTO t VALUES (3, 'a') AS a", "ALIAS is not supported in VALUES"),
        ("INSERT INTO t VALUES (3, DEFAULT)", "DEFAULT is not supported in INSERT"),
        ("INSERT INTO t DEFAULT VALUES", "DEFAULT VALUES is not supported in INSERT"),
        ("INSERT INTO t PARTITION (id = 3) VALUES ('a')", "PARTITION is not supported in INSERT"),
        ("INSERT INTO t BY NAME SELECT 'a' AS s, 9 AS id", "BY NAME is not supported in INSERT"),
        (
            "INSERT INTO t VALUES (1, 'u') ON CONFLICT DO NOTHING",
            "ON CONFLICT is not supported in INSERT",
        ),
        ("INSERT OR IGNORE INTO t VALUES (1, 'u')", "INSERT OR is not supported in INSERT"),
        (
            "INSERT INTO t REPLACE WHERE id = 1 VALUES (7, 'u')",
            "REPLACE WHERE is not supported in INSERT",
        ),
        ("INSERT INTO t SELECT * FROM t RETURNING id", "RETURNING is not supported in INSERT"),
        ("DROP TABLE t CASCADE", "CASCADE is not supported in DROP TABLE: drop the views"),
        ("DROP TEMPORARY VIEW v", "TEMPORARY is not supported in DROP VIEW"),
        ("DESCRIBE EXTENDED t", "EXTENDED"),
        ("DESCRIBE FUNCTION t", "DESCRIBE FUNCTION is not understood"),
        ("REFRESH TABLE t", "write REFRESH MATERIALIZED VIEW"),
        ("EXPLAIN CREATE VIEW x AS SELECT id FROM t", "write CREATE MATERIALIZED VIEW"),
        (
            "MERGE INTO t USING v ON t.id = v.id WHEN MATCHED THEN DELETE",
            "MERGE is not understood here: a statement begins with SELECT",
        ),
    ],
)
def test_a_part_of_a_statement_is_obeyed_or_refused(
    db: belvedere.Database, statement: str, message: str
) -> None:
    assert message in refused(db, statement)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("INSERT INTO t VALUES (3, (SELECT 'a'))", "INSERT"),
        ("UPDATE t SET s = (SELECT 'a')", "UPDATE"),
        ("UPDATE t SET s = 'a' WHERE id IN (SELECT id FROM v)", "UPDATE"),
        ("DELETE FROM t WHERE EXISTS (SELECT id FROM v)", "DELETE"),
        ("DELETE FROM t WHERE id = (SELECT max(id) FROM v)", "DELETE"),
        ("INSERT INTO t VALUES (3, uuid())", "INSERT"),
        ("UPDATE t SET s = max(s)", "UPDATE"),
        ("DELETE FROM t WHERE foo(id)", "DELETE"),
    ],
)
def test_what_cannot_be_computed_in_a_statement_is_not_said_of_views(
    db: belvedere.Database, statement: str, kind: str
) -> None:
    message = refused(db, statement, Unsupported)
    assert f"is not supported in {kind}" in message
    assert "view" not in message
    assert "join" not in message


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DESCRIBE nope", "there is no table or view nope: "),
        ("SHOW CREATE TABLE nope", "there is no table or view nope: "),
        ("SELECT * FROM nope", "there is no table or view nope: "),
        (
            "CREATE MATERIALIZED VIEW t AS SELECT id FROM t",
            "a table t exists already: choose another name, or drop it first",
        ),
        (
            "CREATE OR REPLACE MATERIALIZED VIEW t AS SELECT id FROM t",
            "a table t exists already: choose another name, or drop it first",
        ),
        (
            "CREATE TABLE v (id INT PRIMARY KEY)",
            "a view v exists already: choose another name, or drop it first",
        ),
        (
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "a table t exists already: drop it first, or use IF NOT EXISTS",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM t",
            "a view v exists already: drop it first, or use OR REPLACE",
        ),
        ("DROP TABLE v", "v is a view: use DROP MATERIALIZED VIEW"),
        ("DROP MATERIALIZED VIEW t", "t is a table: use DROP TABLE"),
    ],
)
def test_a_name_that_is_missing_or_taken_is_said_in_words_that_help(
    db: belvedere.Database, statement: str, message: str
) -> None:
    assert refused(db, statement, CatalogError).startswith(message)


@pytest.mark.parametrize("text", ["-- nothing", "/* nothing */", ";", " ; -- a\n; /* b */", ""])
def test_a_text_without_a_statement_says_so(db: belvedere.Database, text: str) -> None:
    assert refused(db, text) == "there is no statement in this text"


@pytest.mark.parametrize("text", [None, 7, b"SELECT 1", ["SELECT 1"]])
def test_a_statement_is_text(db: belvedere.Database, text: Any) -> None:
    assert refused(db, text) == f"a statement is text: pass a str, not {type(text).__name__}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GARBAGE", "GARBAGE is not understood here: a statement begins with"),
        ("GARBAGE t", "GARBAGE is not understood here: a statement begins with"),
        (
            "EXPLAIN GARBAGE t",
            "EXPLAIN takes the name of a view, a SELECT or a CREATE MATERIALIZED VIEW, not GARBAGE",
        ),
        ("CREATE MATERIALIZED VIEW w AS t", "a view is defined by a SELECT, not by t"),
        (
            "SELECT * FROM",
            "this is not valid SQL: a table name is missing after FROM (line 1, column 10)",
        ),
        (
            "SELECT *\n  FROM WHERE id = 1",
            "this is not valid SQL: a table name is expected, not WHERE (line 2, column 8)",
        ),
        (
            "CREATE TABLE d (id INT, PRIMARY KEY ())",
            "this is not valid SQL: something is missing at ) (line 1, column 39)",
        ),
        (
            "UPDATE t SET s = 'a' WHERE",
            "this is not valid SQL: something is missing at WHERE (line 1, column 22)",
        ),
        (
            "SELECT id FROM t t t",
            "this is not valid SQL: t is not expected here (line 1, column 20)",
        ),
        ("SELECT 'a", "this is not valid SQL: a ' is opened and never closed"),
        ("SELECT `a", "this is not valid SQL: a ` is opened and never closed"),
        ("SELECT 1 /* a", "this is not valid SQL: a quote or a comment is opened and never closed"),
        ("SHOW GARBAGE", "this form of SHOW is not understood: write SHOW TABLES"),
        ("EXPLAIN", "EXPLAIN takes the name of a view"),
    ],
)
def test_what_is_not_sql_is_said_without_the_parsers_own_words(
    db: belvedere.Database, text: str, message: str
) -> None:
    said = refused(db, text)
    assert said.startswith(message)
    assert not any(word in said for word in ("<Token", "<class", "sqlglot", "COLUMN", "ALIAS"))


def test_a_script_is_split_at_semicolons_outside_of_quotes_and_comments() -> None:
    script = (
        "-- a;\nSELECT ';'; /* ; */ EXPLAIN SELECT * FROM t WHERE s = 'a;b'; SHOW CREATE TABLE"
        " `a;b`; -- done"
    )
    parts = [
        "-- a;\nSELECT ';'",
        "/* ; */ EXPLAIN SELECT * FROM t WHERE s = 'a;b'",
        "SHOW CREATE TABLE `a;b`",
    ]
    assert split(script) == parts


def test_comments_may_stand_anywhere(db: belvedere.Database) -> None:
    assert db.sql("-- which\nSHOW /* all */ TABLES -- please").to_pylist() == [
        {"name": "t", "kind": "table"}
    ]
    assert str(db.sql("/* how */ EXPLAIN v -- please")).startswith("v  keyed by id")
    assert str(db.sql("EXPLAIN -- how\n SELECT id FROM t WHERE s = ';'")).startswith("(query)")


@pytest.mark.parametrize("name", ODD)
def test_names_may_be_anything_in_backquotes(db: belvedere.Database, name: str) -> None:
    table, view = backquoted(f"{name} t"), backquoted(name)
    db.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, {view} STRING)")
    db.sql(f"CREATE MATERIALIZED VIEW {view} AS SELECT {view}, id FROM {table}")
    db.sql(f"INSERT INTO {table} (id, {view}) VALUES (1, 'a'), (2, 'b')")
    db.sql(f"UPDATE {table} SET {view} = 'c' WHERE {table}.{view} = 'a'")
    db.sql(f"DELETE FROM {table} WHERE {view} = 'b'")
    db.sql(f"REFRESH MATERIALIZED VIEW {view}")
    assert db.sql(f"SELECT * FROM {view}").to_pylist() == [{name: "c", "id": 1}]
    assert str(db.sql(f"EXPLAIN {view}")).startswith(f"{name}  keyed by id")
    assert str(db.sql(f"EXPLAIN COST {view}")).startswith(f"{name}:")
    assert [row["column"] for row in db.sql(f"DESCRIBE {view}")] == [name, "id"]
    db.sql(f"DROP MATERIALIZED VIEW {view}; DROP TABLE {table}")


def made_again(db: belvedere.Database, name: str) -> Any:
    """The definition that SHOW CREATE of a table or view gives, in another database with the same
    tables.
    """
    found = db.state().relation(name)
    with belvedere.open("memory:") as other:
        for table in db.state().tables.values():
            other.sql(str(db.sql(f"SHOW CREATE TABLE {backquoted(table.name)}")))
        if name.lower() not in other.state().tables:
            other.sql(str(db.sql(f"SHOW CREATE MATERIALIZED VIEW {backquoted(name)}")))
        again = other.state().relation(name)
    for definition in (found, again):
        yield (
            definition.name,
            definition.schema,
            getattr(definition, "key", ()),
            getattr(definition, "before_images", None),
        )


@pytest.mark.parametrize("before_images", ["true", "false"])
@pytest.mark.parametrize("name", ODD)
def test_show_create_can_be_run_as_it_is(name: str, before_images: str) -> None:
    column = backquoted(name)
    with belvedere.open("memory:") as db:
        options = f"WITH (before_images = {before_images})"
        db.sql(
            f"CREATE TABLE {column} ({column} INT, d DECIMAL(9,2) NOT NULL, `{'é'}` DATE, PRIMARY"
            f" KEY (d, {column})) {options}"
        )
        db.sql(
            f"CREATE MATERIALIZED VIEW `w {column[1:-1]}` WITH (key = {key_option([name])}) AS"
            f" SELECT {column}, d FROM {column}"
        )
        for relation in (name, f"w {name}"):
            first, again = made_again(db, relation)
            assert first == again


def test_show_create_quotes_every_word_that_the_parser_knows() -> None:
    known = (
        *SparkSql.Tokenizer.KEYWORDS,
        *SparkSql.Parser.CONSTRAINT_PARSERS,
        *SparkSql.Parser.SCHEMA_UNNAMED_CONSTRAINTS,
    )
    words = sorted({word.lower() for phrase in known for word in phrase.split() if word.strip()})
    with belvedere.open("memory:") as db:
        db.sql(
            f"CREATE TABLE t ({', '.join(f'{backquoted(w)} INT' for w in words)}, PRIMARY KEY"
            f" ({', '.join(map(backquoted, words))}))"
        )
        first, again = made_again(db, "t")
        assert first == again


def test_plain_names_are_shown_plainly(db: belvedere.Database) -> None:
    assert (
        str(db.sql("SHOW CREATE TABLE t")) == "CREATE TABLE t (id INT, s STRING, PRIMARY KEY (id))"
    )
    assert str(db.sql("SHOW CREATE TABLE v")) == "CREATE MATERIALIZED VIEW v AS SELECT id, s FROM t"


def test_the_key_option_lists_columns_and_odd_names_in_backquotes(db: belvedere.Database) -> None:
    assert key_names("a, b c ,d") == ["a", "b c", "d"]
    assert key_names("`a,b`, c, `d``e` ") == ["a,b", "c", "d`e"]
    assert key_names("") == []
    db.sql("CREATE MATERIALIZED VIEW w WITH (key = '`a,b`') AS SELECT s AS `a,b`, id FROM t")
    assert db.state().view("w").schema.key == ("a,b", "id")


@pytest.mark.parametrize("option", ["`a", "a`b", "`a` b", "``a`"])
def test_a_key_option_with_a_lost_backquote_is_refused(db: belvedere.Database, option: str) -> None:
    assert "odd names in backquotes" in refused(
        db, f"CREATE MATERIALIZED VIEW w WITH (key = '{option}') AS SELECT s, id FROM t"
    )
