"""How a command fails: one red line that says what happened and what to do, and an exit code.

No traceback unless it is asked for.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from belvedere.cli import INTERRUPTED
from belvedere.cli.place import Place
from belvedere.errors import BelvedereError, PipelineError, ViewNotReady

FAILED = 1


class Guarded(TyperGroup):
    """A group of commands; what they raise ends here."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `belvedere scan orders | head`: the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BelvedereError as error:
            _say(error, message(error), ctx)
            raise typer.Exit(FAILED) from None
        except (OSError, ImportError) as error:
            _say(
                error,
                (
                    f"{error.strerror}: {error.filename}"
                    if isinstance(error, OSError) and error.filename
                    else str(error)
                ),
                ctx,
            )
            raise typer.Exit(FAILED) from None
        except Exception as error:  # a defect of ours; the command line still says it in one line
            if not _is_defect(error):
                raise
            _say(
                error,
                f"unexpected {type(error).__name__}: {error}: please report it, with what"
                " --traceback shows",
                ctx,
            )
            raise typer.Exit(FAILED) from None


def _is_defect(error: Exception) -> bool:
    """Whether it is no way in which typer itself ends a command: usage errors, exits."""
    return not type(error).__module__.startswith(("typer", "click"))


def message(error: BelvedereError) -> str:
    """The error in the words of the command line."""
    text = " ".join(str(error).split())
    if isinstance(error, ViewNotReady):
        return f"{text.rpartition(': ')[0]}: run belvedere catch-up, or keep belvedere run going"
    if isinstance(error, PipelineError):
        from belvedere.spark.session import with_log

        return with_log(text)
    return text


def error_line(text: str) -> Text:
    return Text.assemble(("error: ", "bold red"), (text, "red"))


def _say(error: BaseException, text: str, ctx: Any) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if isinstance(ctx.obj, Place) and ctx.obj.traceback:
        console.print("".join(traceback.format_exception(error)), markup=False)
    console.print(error_line(text))
