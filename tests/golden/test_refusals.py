"""What is not maintained is refused with these words.

`BELVEDERE_UPDATE_GOLDEN=1 pytest tests/golden` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belvedere.errors import SqlError
from belvedere.sql.planner import plan_view
from tests.golden.tables import TABLES, VIEWS

FILE = Path(__file__).parent / "refusals.txt"
UPDATE = bool(os.environ.get("BELVEDERE_UPDATE_GOLDEN"))
_ARROW = "  => "
_KEY = " WITH key = "


def entries() -> list[tuple[str, str]]:
    """Statements and messages, each on a line of its own, an empty line between."""
    blocks = [block.split("\n") for block in FILE.read_text(encoding="utf-8").strip().split("\n\n")]
    return [(lines[0], lines[1].removeprefix(_ARROW) if len(lines) > 1 else "") for lines in blocks]


def refusal(statement: str) -> str:
    select, _, key = statement.partition(_KEY)
    with pytest.raises(SqlError) as caught:
        plan_view(select, [key] if key else [], [t.info for t in TABLES], VIEWS)
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.skipif(UPDATE, reason="the messages are being written")
@pytest.mark.parametrize(("statement", "message"), entries(), ids=lambda text: text[:60])
def test_a_refusal_says_what_is_wrong_and_what_to_do(statement: str, message: str) -> None:
    assert refusal(statement) == message


@pytest.mark.skipif(not UPDATE, reason="only with BELVEDERE_UPDATE_GOLDEN=1")
def test_write_the_refusals_anew() -> None:
    FILE.write_text(
        "\n\n".join(f"{s}\n{_ARROW}{refusal(s)}" for s, _ in entries()) + "\n", encoding="utf-8"
    )
