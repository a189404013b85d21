"""The judge: what readers saw, against what was written.

    history.py     what happened: operations, views, states that were seen; as JSON lines
    recompute.py   what a view's SELECT returns over some state of the tables (DuckDB)
    lattice.py     the levels, over any partly ordered set of source states
    decode.py      states that tell which row versions they contain: no search is needed
    judge.py       a history in, verdicts out
    witness.py     a small history that is wrong in the same way, for a person
    recorder.py    writes what one reader saw

Imports nothing of the engine: who shares its code would share its mistakes.
"""

from belvedere.consistency.history import History, read_history
from belvedere.consistency.judge import check, judge
from belvedere.consistency.levels import LEVELS, Verdict

__all__ = ["LEVELS", "History", "Verdict", "check", "judge", "read_history"]
