"""Options that several commands take."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from belvedere.types import Epoch


def as_of(text: str | None) -> Epoch | datetime | None:
    """What --as-of says; None if it is not given."""
    if text is None:
        return None
    from belvedere.sql.versions import as_of_text  # which knows SQL: others do without

    return as_of_text(text)


Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Master = Annotated[
    str,
    typer.Option(
        "--master",
        metavar="URL",
        envvar="BELVEDERE_MASTER",
        help="Where Spark runs, as in spark://host:7077.",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help="A setting of Spark, as in spark.driver.memory=4g; may be given several times.",
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option("--max-rows", min=1, metavar="N", help="Operations per epoch, at most."),
]
Relation = Annotated[
    str, typer.Argument(metavar="NAME", help="A table or a view.", show_default=False)
]
AsOfText = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="EPOCH|TIME",
        help="Of the past: an epoch, or a time (UTC) as in '2026-11-18 15:30:00'.",
    ),
]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The table.", show_default=False)]
