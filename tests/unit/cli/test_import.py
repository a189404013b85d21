"""Imports: all formats, broken lines by their number, batches whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.conftest import Cli

HEADER = "place,number,total,amount\n"


def count(cli: Cli) -> int:
    return len(cli("scan", "readings", "--json").stdout.splitlines())


def lines(first: int, last: int) -> str:
    return "".join(f"north,{i},1,{i}.50\n" for i in range(first, last))


def test_csv_with_quotes_several_lines_a_mark_and_empty_cells(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"\xef\xbb\xbf" + b'NUMBER,place,total,amount\r\n1,"a ""b"",\nc",7,\r\n\r\n2,d,8,1.5\r\n')
    result = filled("import", "readings", str(file))
    assert result.exit_code == 0
    assert "2 rows imported" in result.stdout
    rows = [json.loads(line) for line in filled("scan", "readings", "--json").stdout.splitlines()]
    assert [(r["place"], r["number"], r["amount"]) for r in rows] == [('a "b",\nc', 1, None), ("d", 2, "1.50")]


def test_a_broken_line_is_named_and_its_batch_is_not_written(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(HEADER + lines(0, 25) + "north,x,1,1\n" + lines(26, 30))
    result = filled("import", "readings", str(file), "--batch", "10")
    assert result.exit_code == 1
    assert f"{file} line 27: 'x' is not a int for column number: correct it, or use --skip-bad" in result.stderr
    assert "20 rows before this batch are imported" in result.stderr
    assert count(filled) == 20


def test_bad_lines_go_to_a_file_that_can_be_corrected_and_imported(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    bad = ["north,x,1,1\n", "north,1,1\n", 'north,"1"2,1,1\n', ",3,1,1\n", "north,4,,1\n", "north,5,1,1.001\n", "k" * 600 + ",6,1,1\n"]
    file.write_text(HEADER + lines(0, 5) + "".join(bad) + lines(10, 15))
    result = filled("import", "readings", str(file), "--skip-bad")
    assert result.exit_code == 0
    assert f"10 rows imported into readings, {len(bad)} bad lines" in result.stdout
    assert "the first, 7" in result.stdout
    assert (tmp_path / "rows.csv.bad").read_text() == HEADER + "".join(bad)
    assert count(filled) == 10


def test_bytes_that_are_not_utf8_are_a_bad_line(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(HEADER.encode() + b"caf\xe9,1,1,1\nplain,1,1,1\n")
    assert "line 2" in filled("import", "readings", str(file)).stderr
    assert filled("import", "readings", str(file), "--skip-bad", "--bad-file", str(tmp_path / "bad")).exit_code == 0
    assert (tmp_path / "bad").read_bytes() == HEADER.encode() + b"caf\xe9,1,1,1\n"


def test_an_open_quote_is_told_by_the_line_where_it_opens(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(HEADER + lines(0, 2) + '"north,1,1,1\n' + lines(3, 6))
    assert "line 4: this is not valid CSV" in filled("import", "readings", str(file)).stderr
    assert count(filled) == 0


def test_jsonl_from_standard_input(filled: Cli) -> None:
    text = '{"place": "a", "number": 1, "total": 2, "amount": 0.1}\n\n{"place": "a", "number": 2, "total": 2}\n{"place": "a"\n'
    result = filled("import", "readings", "-", "--format", "jsonl", input=text)
    assert result.exit_code == 1
    assert "- line 4: this is not valid JSON" in result.stderr
    assert filled("import", "readings", "-", "--format", "jsonl", input="\n".join(text.splitlines()[:3])).exit_code == 0
    assert count(filled) == 2


def test_parquet_rows_are_numbered(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    good = {"place": ["a", "b", None], "number": pa.array([1, 2, 3], pa.int32()), "total": [1, 2, 3]}
    pq.write_table(pa.table(good), file)
    result = filled("import", "readings", str(file))
    assert result.exit_code == 1
    assert "row 3: the key place must not be NULL" in result.stderr
    assert "nothing was imported" in result.stderr
    assert "2 rows imported into readings, 1 bad line" in filled("import", "readings", str(file), "--skip-bad").stdout
    assert json.loads((tmp_path / "rows.parquet.bad").read_text()) == {"place": None, "number": 3, "total": 3}


def test_parquet_columns_that_never_fit_are_told_before_anything_is_written(filled: Cli, tmp_path: Path) -> None:
    pq.write_table(pa.table({"place": ["a"], "number": ["1"], "total": [1]}), tmp_path / "rows.parquet")
    result = filled("import", "readings", str(tmp_path / "rows.parquet"), "--skip-bad")
    assert result.exit_code == 1
    assert "column number is int, the data has string" in result.stderr


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("place;number;total\na;1;1\n", [], "unknown column 'place;number;total'"),
        ("", [], "there is no line"),
        ("place,place\n", [], "a column is named twice"),
        ("a,1,1\n", ["--columns", "place,colour,total"], "unknown column 'colour'"),
    ],
)
def test_a_header_that_does_not_fit_is_told(filled: Cli, tmp_path: Path, content: str, options: list[str], message: str) -> None:
    (tmp_path / "rows.csv").write_text(content)
    result = filled("import", "readings", str(tmp_path / "rows.csv"), *options)
    assert result.exit_code == 1
    assert "line 1" in result.stderr
    assert message in result.stderr


def test_delimiter_null_text_and_columns_can_be_chosen(filled: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("a;1;1;-\nb;1;1;2\n")
    chosen = ["--format", "csv", "--delimiter", ";", "--null", "-", "--columns", "place,number,total,amount"]
    assert filled("import", "readings", str(tmp_path / "rows.txt"), *chosen).exit_code == 0
    assert json.loads(filled("get", "readings", "a", "1", "--json").stdout)["amount"] is None


def test_files_that_are_not_there_or_tell_no_format(filled: Cli, tmp_path: Path) -> None:
    assert "No such file or directory: " in filled("import", "readings", str(tmp_path / "none.csv")).stderr
    assert "add --format" in filled("import", "readings", "rows.dat").stderr
    assert filled("import", "readings", "rows.csv", "--format", "xml").exit_code == 2
