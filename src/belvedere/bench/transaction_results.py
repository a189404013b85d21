"""What the scenario of transactions found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionCost:
    """The same operations in a transaction and by plain calls, p50 of a time, in turns."""

    name: str
    count: int
    transaction_ms: float
    plain_ms: float
    correct: bool

    @property
    def overhead(self) -> float:
        """What the transaction takes more, as a part of the plain calls."""
        return self.transaction_ms / self.plain_ms - 1
