"""Ad hoc queries: Spark's SELECT over tables and views at one cut, computed by DuckDB.

    relations(query)            which tables and views it reads
    translate(query, schemas)   DuckDB text, and the names and Spark types of the result
    ranges_in(query, relations) what has to be read of the tables and views
    direct(query, relations)    what to read, if the answer is just that
    first_rows(query)           whether the first rows that are found will do
    run(translated, tables)     the result as an Arrow table
    take(translated, ...)       the same from as few batches as give enough rows

Names are bound in `sql.front`; what is bound is translated stage by stage (see `stage`). What has
no translation with Spark's meaning raises `NotAnswered`.
"""

from belvedere.sql.query.direct import Direct, direct, parameters_of_key
from belvedere.sql.query.first_rows import FirstRows, first_rows, takes_row_by_row
from belvedere.sql.query.keyed import Keyed, ranges_in
from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.running import run, take
from belvedere.sql.query.translation import Translated, relations, translate

__all__ = [
    "Direct",
    "FirstRows",
    "Keyed",
    "NotAnswered",
    "Translated",
    "direct",
    "first_rows",
    "parameters_of_key",
    "ranges_in",
    "relations",
    "run",
    "take",
    "takes_row_by_row",
    "translate",
]
