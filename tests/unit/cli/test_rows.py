"""put, get, delete and scan: values typed by their columns, keys of several columns, errors that
help.
"""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Cli

ROW = {
    "place": "north",
    "number": 1,
    "amount": "12.30",
    "total": 7,
    "share": 0.5,
    "day": "2026-01-31",
    "at": "2026-01-31T11:00:00Z",
    "raw": "00ff",
    "good": True,
}


def test_a_row_of_pairs_is_typed_by_its_columns(filled: Cli) -> None:
    pairs = (
        "place=north number=1 amount=12.3 total=7 share=0.5 day=2026-01-31"
        " at=2026-01-31T12:00:00+01:00 raw=0x00FF good=true"
    )
    assert filled("put", "readings", *pairs.split()).exit_code == 0
    result = filled("get", "readings", "north", "1", "--json")
    assert json.loads(result.stdout) == ROW


def test_what_get_prints_as_json_can_be_put_again(filled: Cli) -> None:
    assert filled("put", "readings", json.dumps(ROW)).exit_code == 0
    text = filled("get", "readings", "north", "1", "--json").stdout
    assert json.loads(text) == ROW
    assert filled("put", "readings", text).exit_code == 0
    assert filled("scan", "readings", "--json").stdout == text


def test_null_and_numbers_that_are_not_finite(filled: Cli) -> None:
    assert (
        filled(
            "put", "readings", "place=a", "number=1", "total=1", "amount=NULL", "share=NaN"
        ).exit_code
        == 0
    )
    assert (
        filled(
            "put",
            "readings",
            '{"place": "a", "number": 2, "total": 1, "amount": null, "share": "-Infinity"}',
        ).exit_code
        == 0
    )
    rows = [
        json.loads(line) for line in filled("scan", "readings", "a", "--json").stdout.splitlines()
    ]
    assert [(r["amount"], r["share"]) for r in rows] == [(None, "NaN"), (None, "-Infinity")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["place=a", "number=x", "total=1"], "'x' is not a int for column number"),
        (
            ["place=a", "number=2147483648", "total=1"],
            "'2147483648' is not a int for column number",
        ),
        (
            ["place=a", "number=1", "total=1", "amount=1.234"],
            "'1.234' is not a decimal(10,2) for column amount",
        ),
        (
            ["place=a", "number=1", "total=1", "amount=100000000"],
            "'100000000' is not a decimal(10,2) for column amount",
        ),
        (
            ["place=a", "number=1", "total=1", "day=31.1.2026"],
            "'31.1.2026' is not a date for column day",
        ),
        (
            ["place=a", "number=1", "total=1", "colour=red"],
            "unknown column 'colour': the columns are place, number",
        ),
        (["place=a", "number=1"], "column total must not be NULL"),
        (["number=1", "total=1"], "the key place must not be NULL"),
        (["place"], "neither a JSON object nor name=value"),
        (['{"place": 1, "number": 1, "total": 1}'], "'1' is not a string for column place"),
        (['{"place": "a", "number": true, "total": 1}'], "'true' is not a int for column number"),
        (['{"place": "a", "number": 1.5, "total": 1}'], "'1.5' is not a int for column number"),
        (['{"place": '], "this is not valid JSON"),
        (["place=a", "number=1", "total=1", "total=2"], "column 'total' is given twice"),
        (["place=a", "number=1", "total=1", "Total=1"], "column 'Total' is given twice"),
        (
            ['{"place": "a", "number": 1, "total": 1, "number": 2}'],
            "column 'number' is given twice",
        ),
        (
            ['{"place": "a", "number": 1, "total": 1, "NUMBER": 2}'],
            "column 'NUMBER' is given twice",
        ),
        (["place=a", "number=1_000", "total=1"], "'1_000' is not a int for column number"),
        (["place=a", "number=٣", "total=1"], "'٣' is not a int for column number"),
        (["place=a", "number=1", "total=٣"], "'٣' is not a bigint for column total"),
        (
            ["place=a", "number=1", "total=1", "share=1_0.5"],
            "'1_0.5' is not a double for column share",
        ),
        (["place=a", "number=1", "total=1", "share=٣"], "'٣' is not a double for column share"),
        (
            ["place=a", "number=1", "total=1", "amount=1_0"],
            "'1_0' is not a decimal(10,2) for column amount",
        ),
        (
            ["place=a", "number=1", "total=1", "amount=٣"],
            "'٣' is not a decimal(10,2) for column amount",
        ),
        (
            ['{"place": "a", "number": 1, "total": 1, "share": "1_0"}'],
            "'1_0' is not a double for column share",
        ),
        (
            ["place=a", "number=1", "total=1", "raw=abc"],
            "'abc' is not a binary for column raw (hexadecimal digits, two per byte",
        ),
        (
            ['{"place": "a", "number": 1, "total": 1, "raw": 5}'],
            "'5' is not a binary for column raw (hexadecimal digits, two per byte",
        ),
        (["place=a", "number=1", "total=" + "9" * 5_000], "9...' is not a bigint for column total"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_column(
    filled: Cli, row: list[str], message: str
) -> None:
    result = filled("put", "readings", *row)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert filled("scan", "readings", "--json").stdout == ""


@pytest.mark.parametrize(("text", "number"), [("+3", 3), ("-3", -3), ("007", 7), (" 8 ", 8)])
def test_an_int_is_ascii_digits_with_a_sign_perhaps(filled: Cli, text: str, number: int) -> None:
    assert filled("put", "readings", "place=a", f"number={text}", "total=1").exit_code == 0
    assert json.loads(filled("scan", "readings", "--json").stdout)["number"] == number


def test_keys_need_all_their_columns_and_prefixes_do_not(filled: Cli) -> None:
    for place, number in (("a", 1), ("a", 2), ("b", 1)):
        filled("put", "readings", f"place={place}", f"number={number}", "total=1")
    assert "give 2 value(s), not 1" in filled("get", "readings", "a").stderr
    assert "at most 2 value(s), not 3" in filled("get", "readings", "a", "1", "x").stderr
    assert len(filled("scan", "readings", "a", "--json").stdout.splitlines()) == 2
    assert len(filled("scan", "readings", "--limit", "1", "--json").stdout.splitlines()) == 1
    assert "there are more" in filled("scan", "readings", "--limit", "1").stdout


def test_negative_keys_follow_a_double_dash(filled: Cli) -> None:
    assert filled("put", "readings", "place=a", "number=-5", "total=1").exit_code == 0
    assert filled("get", "readings", "--", "a", "-5").exit_code == 0


def test_delete_says_whether_there_was_a_row(filled: Cli) -> None:
    filled("put", "readings", "place=a", "number=1", "total=1")
    assert "1 row deleted" in filled("delete", "readings", "a", "1").stdout
    assert "no such row" in filled("delete", "readings", "a", "1").stdout
    missing = filled("get", "readings", "a", "1")
    assert missing.exit_code == 1
    assert "has no row with the key a 1" in missing.stderr


def test_views_are_not_written_and_not_read_before_they_are_built(filled: Cli) -> None:
    assert "is a view: it is maintained, not written to" in filled("put", "sums", "place=a").stderr
    unready = filled("get", "sums", "a")
    assert unready.exit_code == 1
    assert "run belvedere catch-up" in unready.stderr


def test_an_unknown_name_lists_what_there_is(filled: Cli) -> None:
    assert (
        "there is no table or view nothing: there are readings, sums"
        in filled("scan", "nothing").stderr
    )


def test_text_that_looks_like_markup_is_shown_as_it_is(filled: Cli) -> None:
    assert filled("put", "readings", "place=[red]x[/red]", "number=1", "total=1").exit_code == 0
    for arguments in (
        ("get", "readings", "[red]x[/red]", "1"),
        ("scan", "readings"),
        ("sql", "SELECT place FROM readings"),
    ):
        assert "[red]x[/red]" in filled(*arguments).stdout
