"""Views over several databases of others that keep nothing but the view: the Strobe family.

rows.py          rows, combinations of them, joins; a view as relations, joins and columns
machine.py       what the algorithms have in common: events in, Ask and Apply out
strobe.py        Strobe, T-Strobe, G-Strobe: the view changes in quiet moments
cstrobe.py       C-Strobe: batch after batch, answers compensated by queries
asof.py          batch after batch, answers taken back to the position that is wanted
conventional.py  what goes wrong without all this
cuts.py          which transactions are taken together
rules.py         what tests can switch off
evaluation.py    the way of a query over the sources
shape.py         a SELECT in two: the joins, and what is computed over their rows
choice.py        which algorithm, and why another one does not fit
processor.py     queries, and the guards around answers of sources with two channels
exchange.py      transactions, questions and answers as sources tell and take them
manager.py       keeps one view over real sources; loading.py, kept.py, covered.py: what it writes
keeping.py       its thread
definition.py    a core as the catalog keeps it
"""
