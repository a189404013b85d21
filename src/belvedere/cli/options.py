"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

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
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The table.", show_default=False)]
