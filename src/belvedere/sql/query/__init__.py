"""Ad hoc queries: Spark's SELECT over tables and views at one cut, computed by DuckDB.

    relations(query)            which tables and views it reads
    translate(query, schemas)   DuckDB text, and the names and Spark types of the result
    run(translated, tables)     the result as an Arrow table

Names are bound in `sql.front`; what is bound is translated stage by stage (see `stage`). What has
no translation with Spark's meaning raises `NotAnswered`.
"""

from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.running import run
from belvedere.sql.query.translation import Translated, relations, translate

__all__ = ["NotAnswered", "Translated", "relations", "run", "translate"]
