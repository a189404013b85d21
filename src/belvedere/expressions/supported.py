"""The allow-list, written down: constructs, examples over the columns below, and what to know about
them.

Columns of the examples: b boolean; i, j int; l, k bigint; d, e double; m decimal(10,2), n
decimal(5,3), w decimal(38,2); s, t string; q string with numbers, r string with dates; x binary;
dt, du date; ts, tu timestamp. The conformance test evaluates every example in Spark and in DuckDB
and compares types, values and raising rows.
"""

from __future__ import annotations

from typing import NamedTuple


class Supported(NamedTuple):
    construct: str
    examples: tuple[str, ...]
    note: str = ""


def _row(construct: str, examples: str, note: str = "") -> Supported:
    return Supported(construct, tuple(e.strip() for e in examples.split(";")), note)


SUPPORTED: tuple[Supported, ...] = (
    _row(
        "literals",
        "1; 3000000000; -2147483648; 1.5; 0.10; 1e3; 1.0D; 1.5BD; 2L; 'It''s'; \"dq\"; r'a\\n';"
        " 'tab\\t'; TRUE; X'1F'; date '2024-02-29'",
    ),
    _row(
        "timestamp literals",
        "timestamp '2024-01-01 10:00:00.5'; timestamp '1960-01-01 00:00:00+02:00'",
    ),
    _row(
        "= <> < <= > >=",
        "i = j; i <> l; i + 1 > 5; i - 3 < 0; 2 * i = 14; d < e; d = 0.0D; s >= t; m <= n; m = i; w"
        " > m; l = d; b = true; dt < ts; x = x; x < X'41'",
    ),
    _row(
        "comparison with a string",
        "i = '7'; q = 5; d > '1.5'; dt = '2024-02-29'; b = 'true'; ts < '2024-01-01'",
        "the string is cast",
    ),
    _row(
        "<=> and IS [NOT] DISTINCT FROM",
        "i <=> j; d <=> e; s <=> null; i IS DISTINCT FROM l; s IS NOT DISTINCT FROM t",
    ),
    _row(
        "BETWEEN",
        "i BETWEEN -1 AND 7; d NOT BETWEEN 0 AND e; dt BETWEEN du AND date '2030-01-01'; i BETWEEN"
        " 1 AND 10 / j",
    ),
    _row(
        "IN (list)",
        "i IN (1, 7, j); i NOT IN (1, null); s IN ('a', 'Hello'); d IN (1, 1.5D); m IN (1, 2.50); 5"
        " IN (10 / i, 5)",
    ),
    _row(
        "LIKE",
        "s LIKE 'H%o'; s LIKE '_'; s LIKE '%\\_%'; s NOT LIKE '%a%'; s LIKE 'a/%%' ESCAPE '/'; i"
        " LIKE '7%'; s LIKE ''",
        "literal pattern",
    ),
    _row(
        "RLIKE",
        "s RLIKE 'l+'; s RLIKE '^[A-Z].*o$'; s RLIKE '\\\\d'; s RLIKE 'a|b'; s RLIKE '^\\\\w+$'; s"
        " RLIKE 'a.b'",
        "literal pattern without look-around",
    ),
    _row(
        "IS [NOT] NULL, TRUE, FALSE",
        "i IS NULL; s IS NOT NULL; b IS TRUE; b IS NOT FALSE; (1 / i) IS NULL; isnull(s);"
        " isnotnull(d)",
    ),
    _row(
        "AND, OR, NOT",
        "b AND i > 0; b OR i > 0; NOT b; !b; i <> 0 AND 10 / i > 1; i = 0 OR 10 / i > 1; 10 / i > 1"
        " AND i <> 0; null AND b",
    ),
    _row(
        "+ - *",
        "i + 1; i + j; l + k; i - j; l - 1; i * j; l * k; d + e; d * e; d - 1; i + d; m + n; m - n;"
        " m * n; m + i; m * 2; w + w; w * 10; m * d",
    ),
    _row("+ - * with strings", "1 + q; q * 2", "the string is cast; two strings are refused"),
    _row(
        "/",
        "i / 2; i / j; l / k; d / e; m / n; m / i; m / 3; 1 / m; n / m; i / 0.0D; null / i; d / m",
    ),
    _row("%", "i % 3; i % j; l % k; d % e; m % n; m % 3; i % -1; l % i; mod(i, 7); m % i"),
    _row("div", "i div 2; i div j; l div k; l div -1; m div n; m div 2; div(i, 3)"),
    _row("pmod", "pmod(i, 3); pmod(l, 7); pmod(d, 2); pmod(m, 3)", "positive literal divisor"),
    _row("unary minus and plus", "-i; -l; -d; -m; -(i + 1); +i; positive(m)"),
    _row(
        "|| and concat",
        "s || t; s || i; concat(s, '-', t); concat(s, m, dt); s || null; x || x; concat(b, ts);"
        " concat(i)",
    ),
    _row(
        "CASE",
        "CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE 'z' END; CASE i WHEN 7 THEN 1 WHEN j"
        " THEN 2 END; CASE WHEN i <> 0 THEN 10 / i ELSE 0 END",
    ),
    _row(
        "CASE with mixed types",
        "CASE WHEN b THEN 1 ELSE 2.5 END; CASE WHEN b THEN i ELSE d END; CASE WHEN b THEN dt ELSE"
        " ts END; CASE WHEN b THEN i ELSE q END",
    ),
    _row("IF", "if(i > 0, s, t); if(b, i, l); if(null, 1, 2); if(i = 0, 0, 10 / i)"),
    _row(
        "COALESCE, NVL, IFNULL",
        "coalesce(i, 0); coalesce(i, l, 5); nvl(m, i); ifnull(s, 'none'); coalesce(i, 10 / j);"
        " coalesce(d, m); coalesce(m, n, w)",
    ),
    _row("NULLIF, NVL2", "nullif(i, 7); nullif(i, m); nullif(s, t); nvl2(i, s, t); nvl2(s, i, d)"),
    _row(
        "GREATEST, LEAST",
        "greatest(i, j); least(i, l, 3); greatest(d, e); least(d, e, 0); greatest(s, t); least(dt,"
        " ts); greatest(m, i)",
    ),
    _row(
        "CAST to boolean",
        "CAST(i AS boolean); CAST(d AS boolean); CAST(m AS boolean); CAST(s AS boolean);"
        " boolean(l)",
    ),
    _row(
        "CAST to int and bigint",
        "CAST(l AS int); CAST(d AS int); CAST(d AS bigint); CAST(m AS int); CAST(w AS bigint);"
        " CAST(q AS int); CAST(q AS bigint); CAST(b AS int)",
    ),
    _row("CAST of timestamp to numbers", "CAST(ts AS int); CAST(ts AS bigint); CAST(ts AS double)"),
    _row(
        "CAST to double",
        "CAST(i AS double); CAST(l AS double); CAST(m AS double); CAST(w AS double); CAST(q AS"
        " double); CAST(b AS double); d::double",
    ),
    _row(
        "CAST to decimal",
        "CAST(i AS decimal(10,0)); CAST(l AS decimal(12,2)); CAST(d AS decimal(12,2)); CAST(m AS"
        " decimal(4,1)); CAST(w AS decimal(10,0)); CAST(b AS decimal(3,1))",
    ),
    _row("CAST of string to decimal", "CAST(q AS decimal(6,2)); CAST(q AS decimal(38,10))"),
    _row(
        "CAST to string",
        "CAST(i AS string); CAST(l AS string); CAST(m AS string); CAST(n AS string); CAST(b AS"
        " string); CAST(dt AS string); CAST(ts AS string); CAST(dt + 3000000 AS string); CAST(dt -"
        " 800000 AS string); CAST(ts - interval 3000 years AS string)",
    ),
    _row("CAST to binary", "CAST(s AS binary)"),
    _row(
        "CAST to date and timestamp",
        "CAST(r AS date); CAST(ts AS date); CAST(dt AS timestamp); CAST(i AS timestamp); CAST(r AS"
        " timestamp)",
        "no named time zones",
    ),
    _row(
        "TRY_CAST",
        "try_cast(q AS int); try_cast(q AS decimal(6,2)); try_cast(q AS boolean); try_cast(r AS"
        " timestamp); try_cast(r AS date); try_cast(l AS int); try_cast(10 / i AS int); try_cast(d"
        " AS decimal(4,1)); try_cast(q AS double)",
    ),
    _row("abs, sign", "abs(i); abs(l); abs(d); abs(m); sign(i); sign(d); signum(m)"),
    _row(
        "ceil, floor",
        "ceil(d); floor(d); ceil(m); floor(n); ceiling(i); floor(l); ceil(w)",
        "one argument",
    ),
    _row(
        "round",
        "round(d); round(d, 2); round(m); round(m, 1); round(n, 5); round(i, -1); round(l, -3);"
        " round(m, -1); round(i)",
        "0 to 20 digits for doubles",
    ),
    _row("sqrt", "sqrt(d); sqrt(i); sqrt(m)"),
    _row("isnan, nanvl", "isnan(d); isnan(i); nanvl(d, 0); nanvl(d, e)"),
    _row(
        "length, char_length, octet_length",
        "length(s); char_length(t); len(s); length(x); octet_length(s); octet_length(x); length(i)",
    ),
    _row("upper, lower", "upper(s); lower(s); lower(upper(s)); ucase(t); lcase(t)"),
    _row(
        "trim, ltrim, rtrim, btrim",
        "trim(s); ltrim(s); rtrim(s); btrim(s); trim(BOTH 'lH' FROM s); ltrim('a ', s);"
        " trim(TRAILING 'o' FROM s); btrim(s, 'o')",
    ),
    _row(
        "substring, substr",
        "substring(s, 2); substring(s, 2, 3); substring(s, 0, 2); substring(s, -3, 2); substr(s, i,"
        " j); substring(s, -10, 12); substring(s FROM 2 FOR 1)",
    ),
    _row("left, right", "left(s, 2); right(s, 2); left(s, -1); right(s, i); left(s, j)"),
    _row(
        "instr, locate, position",
        "instr(s, 'l'); locate('l', s); locate('l', s, 4); position('o' IN s); instr(s, t);"
        " locate('', s, 2)",
    ),
    _row(
        "replace", "replace(s, 'l', 'L'); replace(s, 'l'); replace(s, t, '*'); replace(s, '', 'x')"
    ),
    _row(
        "lpad, rpad",
        "lpad(s, 8, '*'); rpad(s, 8, 'ab'); lpad(s, 3); rpad(s, 3, ''); lpad(i, 5, '0'); rpad(t,"
        " -1, 'x')",
    ),
    _row("repeat, reverse", "repeat(t, 3); repeat(t, -1); reverse(s); reverse(i)"),
    _row(
        "startswith, endswith, contains",
        "startswith(s, 'He'); endswith(s, t); contains(s, 'l'); contains(s, t); startswith(s, '')",
    ),
    _row(
        "concat_ws",
        "concat_ws('-', s, t); concat_ws('', s, null, i); concat_ws(t, s, s); concat_ws(',')",
    ),
    _row(
        "split_part",
        "split_part(s, 'l', 1); split_part(s, 'l', -1); split_part(s, t, 2); split_part(s, 'l', i);"
        " split_part(s, '', 1)",
    ),
    _row(
        "translate, ascii, chr",
        "translate(s, 'el', 'ip'); translate(s, 'lH', 'x'); ascii(s); ascii(t); chr(i); char(65);"
        " chr(l)",
    ),
    _row(
        "hex, md5, sha, sha2",
        "hex(i); hex(l); hex(s); hex(x); md5(s); md5(x); sha(s); sha1(s); sha2(s, 256); sha2(x, 0)",
    ),
    _row(
        "year, quarter, month, day",
        "year(dt); year(ts); quarter(dt); month(dt); day(dt); dayofmonth(ts); month(r)",
    ),
    _row(
        "dayofweek, weekday, dayofyear, weekofyear",
        "dayofweek(dt); weekday(dt); dayofyear(dt); weekofyear(dt); dayofweek(ts); weekofyear(ts)",
    ),
    _row("hour, minute, second", "hour(ts); minute(ts); second(ts); hour(dt)"),
    _row(
        "EXTRACT",
        "extract(year FROM dt); extract(week FROM ts); extract(dow FROM dt); extract(doy FROM dt);"
        " extract(second FROM ts); extract(hour FROM ts); extract(dayofweek_iso FROM dt);"
        " extract(dow_iso FROM ts)",
    ),
    _row(
        "date_add, date_sub, date + int",
        "date_add(dt, 1); date_sub(dt, 1); dt + 1; dt - 30; date_add(ts, 7); 1 + dt; date_add(dt,"
        " -365)",
    ),
    _row(
        "datediff, add_months, last_day",
        "datediff(dt, du); datediff(ts, dt); date_diff(dt, du); add_months(dt, 1); add_months(dt,"
        " -13); last_day(dt); last_day(ts)",
    ),
    _row(
        "intervals",
        "dt + interval 1 month; dt - interval 1 day; dt + interval 2 weeks; dt + interval 1 hour; "
        "ts + interval 1 month; ts - interval 90 minutes; ts + interval '-1' year",
    ),
    _row(
        "trunc",
        "trunc(dt, 'MM'); trunc(dt, 'year'); trunc(dt, 'quarter'); trunc(dt, 'week'); trunc(ts,"
        " 'mon')",
    ),
    _row(
        "date_trunc",
        "date_trunc('month', ts); date_trunc('week', ts); date_trunc('day', dt); date_trunc('hour',"
        " ts); date_trunc('second', ts); date_trunc('millisecond', ts)",
    ),
    _row("to_date, date", "to_date(r); to_date(ts); date(ts)", "without a format"),
    _row(
        "unix_timestamp, unix_seconds, unix_micros, unix_date",
        "unix_timestamp(ts); unix_timestamp(dt); unix_seconds(ts); unix_micros(ts); unix_date(dt)",
    ),
    _row(
        "timestamp_seconds, make_date",
        "timestamp_seconds(i); timestamp_millis(i); timestamp_seconds(l); make_date(2024, i, 29); "
        "make_date(j, 2, 29); date_from_unix_date(j % 1000000)",
    ),
)
