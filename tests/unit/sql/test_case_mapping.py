"""The table of characters whose upper case is several, against Python's own, which is Unicode's."""

from __future__ import annotations

import sys

from belvedere.expressions.case_mapping import _EXPANDED


def test_the_table_has_every_character_whose_upper_case_is_several() -> None:
    assert [c for c in map(chr, range(sys.maxunicode + 1)) if len(c.upper()) > 1] == _EXPANDED
