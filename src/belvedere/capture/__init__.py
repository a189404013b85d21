"""Following sources: their transactions become transactions of our log, with the position behind
them.

    progress.py     how far a source was followed: one row, written with what it tells of
    images.py       changes as keys and values, of all that came in one piece
    operations.py   what a transaction did to a relation, as operations on our table
    follower.py     one source, step by step: what is known, what comes next
    copying.py      the first copy of a relation, or a new one: what differs from what we have
    threads.py      a thread for each source beside the pipeline, and what it does about errors
    condition.py    how it goes, for other processes to see
    awaited.py      positions that somebody waits for, and that are written at once
    arrival.py      waiting until what a source has by now has arrived
"""
