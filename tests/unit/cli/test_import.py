"""Imports: all formats, broken lines by their number, batches whole or not at all."""

from __future__ import annotations

import json
import random
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
    file.write_bytes(
        b"\xef\xbb\xbf" + b'NUMBER,place,total,amount\r\n1,"a ""b"",\nc",7,\r\n\r\n2,d,8,1.5\r\n'
    )
    result = filled("import", "readings", str(file))
    assert result.exit_code == 0
    assert "2 rows imported" in result.stdout
    rows = [json.loads(line) for line in filled("scan", "readings", "--json").stdout.splitlines()]
    assert [(r["place"], r["number"], r["amount"]) for r in rows] == [
        ('a "b",\nc', 1, None),
        ("d", 2, "1.50"),
    ]


def test_a_cell_may_be_long(filled: Cli, tmp_path: Path) -> None:
    filled("sql", "CREATE TABLE texts (id INT, s STRING, PRIMARY KEY (id))")
    file = tmp_path / "texts.csv"
    file.write_text(f"id,s\n1,{'x' * 300_000}\n")
    assert "1 row imported" in filled("import", "texts", str(file)).stdout
    assert len(json.loads(filled("get", "texts", "1", "--json").stdout)["s"]) == 300_000


def test_a_broken_line_is_named_and_its_batch_is_not_written(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(HEADER + lines(0, 25) + "north,x,1,1\n" + lines(26, 30))
    result = filled("import", "readings", str(file), "--batch", "10")
    assert result.exit_code == 1
    assert (
        f"{file} line 27: 'x' is not a int for column number: correct it, or use --skip-bad"
        in result.stderr
    )
    assert "20 rows before this batch are imported" in result.stderr
    assert count(filled) == 20


def test_bad_lines_go_to_a_file_that_can_be_corrected_and_imported(
    filled: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    bad = [
        "north,x,1,1\n",
        "north,1,1\n",
        'north,"1"2,1,1\n',
        ",3,1,1\n",
        "north,4,,1\n",
        "north,5,1,1.001\n",
    ]
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
    assert (
        filled(
            "import", "readings", str(file), "--skip-bad", "--bad-file", str(tmp_path / "bad")
        ).exit_code
        == 0
    )
    assert (tmp_path / "bad").read_bytes() == HEADER.encode() + b"caf\xe9,1,1,1\n"


def test_bad_lines_do_not_replace_what_is_imported(filled: Cli, tmp_path: Path) -> None:
    file, link = tmp_path / "rows.csv", tmp_path / "link"
    file.write_text(HEADER + lines(0, 2) + "north,x,1,1\n")
    link.symlink_to(file)
    before = file.read_text()
    for named in (file, link):
        refused = filled("import", "readings", str(file), "--skip-bad", "--bad-file", str(named))
        assert refused.exit_code == 2
    assert filled("import", "readings", str(file), "--bad-file", "elsewhere").exit_code == 2
    assert file.read_text() == before
    assert count(filled) == 0


def test_an_open_quote_is_told_by_the_line_where_it_opens(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(HEADER + lines(0, 2) + '"north,1,1,1\n' + lines(3, 6))
    assert "line 4: this is not valid CSV" in filled("import", "readings", str(file)).stderr
    assert count(filled) == 0


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_may_end_with_a_carriage_return_alone(
    filled: Cli, tmp_path: Path, mark: bytes
) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(mark + b'place,number,total\r"a\rb",1,7\rc,2,8\rd,x,9\r')
    result = filled("import", "readings", str(file), "--skip-bad")
    assert "2 rows imported into readings, 1 bad line" in result.stdout
    assert "the first, 5" in result.stdout  # the quoted cell has two lines
    rows = [json.loads(line) for line in filled("scan", "readings", "--json").stdout.splitlines()]
    assert [(r["place"], r["total"]) for r in rows] == [("a\rb", 7), ("c", 8)]


def test_a_carriage_return_inside_a_line_that_ends_otherwise_is_a_bad_line(
    filled: Cli, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_bytes(b"place,number,total\na,1,1\rb,2,2\n")
    assert (
        "line 2: this is not valid CSV: new-line character seen in unquoted field: correct it"
        in (filled("import", "readings", str(tmp_path / "rows.csv")).stderr)
    )
    assert count(filled) == 0


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("options", [[], ["--skip-bad"]])
def test_random_bytes_are_an_error_that_names_the_file(
    filled: Cli, tmp_path: Path, ending: str, options: list[str]
) -> None:
    file = tmp_path / f"rows.{ending}"
    for seed in range(5):
        file.write_bytes(
            (b'a"b,"c"d\n' if seed == 0 else b"") + random.Random(seed).randbytes(seed * 2_000)
        )
        result = filled("import", "readings", str(file), *options)
        assert "unexpected" not in result.output
        if result.exit_code:
            (told,) = result.stderr.strip().splitlines()
            assert told.startswith(f"error: {file} ")
            assert len(told) < 1_000
    assert count(filled) == 0


@pytest.mark.parametrize(
    "bad",
    [
        f'{{"total": {"9" * 5000}}}',
        "[" * 100_000,
        '{"total": 1e9999999999999999999}',
        '{"total": 1e999999999}',
    ],
)
def test_json_that_python_cannot_hold_is_a_bad_line(filled: Cli, tmp_path: Path, bad: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(bad + '\n{"place": "a", "number": 1, "total": 2}\n')
    assert f"{file} line 1: " in filled("import", "readings", str(file)).stderr
    assert (
        "1 row imported into readings, 1 bad line"
        in filled("import", "readings", str(file), "--skip-bad").stdout
    )


def test_a_column_given_twice_is_a_bad_line(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    twice = (
        '{"place": "a", "number": 1, "total": 2, "TOTAL": 3}\n{"place": "a", "number": 2, "total":'
        ' 2, "total": 2}\n'
    )
    file.write_text(twice + '{"place": "a", "number": 3, "total": 2}\n')
    result = filled("import", "readings", str(file))
    assert f"{file} line 1: column 'TOTAL' is given twice" in result.stderr
    assert (
        "1 row imported into readings, 2 bad lines"
        in filled("import", "readings", str(file), "--skip-bad").stdout
    )
    assert (tmp_path / "rows.jsonl.bad").read_text() == twice


def test_jsonl_from_standard_input(filled: Cli) -> None:
    text = (
        '{"place": "a", "number": 1, "total": 2, "amount": 0.1}\n\n{"place": "a", "number": 2,'
        ' "total": 2}\n{"place": "a"\n'
    )
    result = filled("import", "readings", "-", "--format", "jsonl", input=text)
    assert result.exit_code == 1
    assert "- line 4: this is not valid JSON" in result.stderr
    assert (
        filled(
            "import", "readings", "-", "--format", "jsonl", input="\n".join(text.splitlines()[:3])
        ).exit_code
        == 0
    )
    assert count(filled) == 2


def test_parquet_rows_are_numbered(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    good = {
        "place": ["a", "b", None],
        "number": pa.array([1, 2, 3], pa.int32()),
        "total": [1, 2, 3],
    }
    pq.write_table(pa.table(good), file)
    result = filled("import", "readings", str(file))
    assert result.exit_code == 1
    assert "row 3: the key place must not be NULL" in result.stderr
    assert "nothing was imported" in result.stderr
    assert (
        "2 rows imported into readings, 1 bad line"
        in filled("import", "readings", str(file), "--skip-bad").stdout
    )
    assert json.loads((tmp_path / "rows.parquet.bad").read_text()) == {
        "place": None,
        "number": 3,
        "total": 3,
    }


def test_a_parquet_file_of_pandas_may_have_row_labels(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    rows = pa.table({"place": ["north"], "number": [900], "total": [1], "__index_level_0__": [7]})
    pq.write_table(rows.replace_schema_metadata({"pandas": "{}"}), file)
    assert "1 row imported" in filled("import", "readings", str(file)).stdout


def test_parquet_columns_that_never_fit_are_told_before_anything_is_written(
    filled: Cli, tmp_path: Path
) -> None:
    pq.write_table(
        pa.table({"place": ["a"], "number": ["1"], "total": [1]}), tmp_path / "rows.parquet"
    )
    result = filled("import", "readings", str(tmp_path / "rows.parquet"), "--skip-bad")
    assert result.exit_code == 1
    assert "column number is int, the data has string" in result.stderr


def broken_text(values: list[bytes]) -> pa.Array:
    """A column of strings whose bytes nobody has checked."""
    plain = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(plain), plain.buffers())


@pytest.mark.parametrize("dictionary", [False, True])
def test_parquet_values_that_cannot_be_read_are_bad_rows(
    filled: Cli, tmp_path: Path, dictionary: bool
) -> None:
    file, texts = tmp_path / "rows.parquet", broken_text([b"a", b"caf\xe9", b"c"])
    at = pa.array([0, 0, 1 << 62], pa.timestamp("us", "UTC"))
    columns = {
        "place": texts.dictionary_encode() if dictionary else texts,
        "number": pa.array([1, 2, 3], pa.int32()),
        "total": [1, 2, 3],
    }
    pq.write_table(pa.table(columns | {"at": at}), file)
    result = filled("import", "readings", str(file))
    assert result.exit_code == 1
    assert (
        f"{file} row 2: column place: 'caf\\udce9' cannot be read as UTF-8 text: correct it, or use"
        " --skip-bad" in result.stderr
    )
    assert (
        "1 row imported into readings, 2 bad lines"
        in filled("import", "readings", str(file), "--skip-bad").stdout
    )
    bad = (tmp_path / "rows.parquet.bad").read_bytes().splitlines()
    assert b"caf\xe9" in bad[0]
    assert json.loads(bad[1])["at"] == str(1 << 62)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"place,number\na,1\n"]
)
def test_a_file_that_is_not_parquet_is_named(filled: Cli, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "rows.parquet"
    file.write_bytes(content)
    for options in ([], ["--skip-bad"]):
        result = filled("import", "readings", str(file), *options)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {file} is damaged, or not a Parquet file (")
        assert "write it again, or name its --format" in result.stderr


def test_a_parquet_file_that_breaks_off_says_how_far_it_was_imported(
    filled: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "rows.parquet"
    rows = {
        "place": ["a"] * 20_000,
        "number": pa.array(range(20_000), pa.int32()),
        "total": list(range(20_000)),
    }
    pq.write_table(pa.table(rows), file, row_group_size=10_000, compression="zstd")
    second = pq.ParquetFile(file).metadata.row_group(1).column(2)
    data = bytearray(file.read_bytes())
    data[second.dictionary_page_offset : second.dictionary_page_offset + 200] = b"\xff" * 200
    file.write_bytes(data)
    result = filled("import", "readings", str(file))
    assert result.exit_code == 1
    assert f"error: {file} is damaged" in result.stderr
    assert "10,000 rows before this batch are imported" in result.stderr
    assert count(filled) == 10_000


def test_parquet_is_not_read_from_standard_input(filled: Cli) -> None:
    assert (
        "name the file"
        in filled("import", "readings", "-", "--format", "parquet", input=b"PAR1").stderr
    )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("place;number;total\na;1;1\n", [], "unknown column 'place;number;total'"),
        ("", [], "there is no line"),
        ('place,"number"x,total\na,1,1\n', [], "this is not valid CSV"),
        (b"caf\xe9,number,total\n", [], "this is not UTF-8 text"),
        ("place,place\n", [], "a column is named twice"),
        ("a,1,1\n", ["--columns", "place,colour,total"], "unknown column 'colour'"),
    ],
)
def test_a_header_that_does_not_fit_is_told(
    filled: Cli, tmp_path: Path, content: str | bytes, options: list[str], message: str
) -> None:
    (tmp_path / "rows.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = filled("import", "readings", str(tmp_path / "rows.csv"), *options)
    assert result.exit_code == 1
    assert "line 1" in result.stderr
    assert message in result.stderr


def test_delimiter_null_text_and_columns_can_be_chosen(filled: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("a;1;1;-\nb;1;1;2\n")
    chosen = [
        "--format",
        "csv",
        "--delimiter",
        ";",
        "--null",
        "-",
        "--columns",
        "place,number,total,amount",
    ]
    assert filled("import", "readings", str(tmp_path / "rows.txt"), *chosen).exit_code == 0
    assert json.loads(filled("get", "readings", "a", "1", "--json").stdout)["amount"] is None


@pytest.mark.parametrize("delimiter", ["\\t", "\t"])
def test_a_tab_may_be_written_as_shells_give_it(
    filled: Cli, tmp_path: Path, delimiter: str
) -> None:
    (tmp_path / "rows.tsv").write_text("place\tnumber\ttotal\na\t1\t1\n")
    assert (
        filled("import", "readings", str(tmp_path / "rows.tsv"), "--delimiter", delimiter).exit_code
        == 0
    )
    assert count(filled) == 1


@pytest.mark.parametrize("delimiter", ["", ";;", "\\n", "\n", "\r", '"'])
def test_what_cannot_stand_between_cells_is_wrong_usage(
    filled: Cli, tmp_path: Path, delimiter: str
) -> None:
    (tmp_path / "rows.csv").write_text(HEADER)
    assert (
        filled("import", "readings", str(tmp_path / "rows.csv"), "--delimiter", delimiter).exit_code
        == 2
    )


def test_files_that_are_not_there_or_tell_no_format(filled: Cli, tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet"):
        assert (
            f"No such file or directory: {tmp_path / name}"
            in filled("import", "readings", str(tmp_path / name)).stderr
        )
    assert "add --format" in filled("import", "readings", "rows.dat").stderr
    assert filled("import", "readings", "rows.csv", "--format", "xml").exit_code == 2
