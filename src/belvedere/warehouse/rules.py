"""Rules of the algorithms that tests can switch off, to show that each is needed.

The first group corrects pseudocode of the paper where it is ambiguous or wrong, the second is the
care that sources with a log and a connection need, the third what a crash asks for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Switches for tests: with one off, some schedule must show a wrong view."""

    pending: bool = True  # Strobe: deletions that come while a query is open are taken out of it
    # Strobe: a query is open until its whole answer is compensated, between two sources too
    whole_answers: bool = True
    # T-Strobe, line 4: an insertion goes away with a deletion of its key in the same relation
    same_relation: bool = True
    # G-Strobe: parts are processed as they come, and only the applying waits for the others
    parts_as_they_come: bool = True
    compensate: bool = True  # C-Strobe: what was received after a batch is taken out of its answers
    later_deletions: bool = True  # C-Strobe, line 16: deletions before the batch protect nothing
    whole_rows: bool = True  # C-Strobe, line 16: rows are compared with all that was fetched
    closed_cuts: bool = True  # batches that no global transaction crosses
    # key knowledge: what the view knows counts only if no deletion of it waits to be applied
    waiting_deletions: bool = True

    fresh: bool = True  # guard a: ask again until an answer shows all that was received before
    wait: bool = True  # guard b: an answer waits until all that it shows is received
    # guard a after a crash: what is applied may still be hidden from queries, and is remembered
    remember_unseen: bool = True
    incarnations: bool = True  # answers to a process that is gone are not taken


ALL = Rules()
