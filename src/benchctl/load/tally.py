"""What a task comes to beside its samples: failures by kind, with the first few reasons."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchctl.results.samples import Outcome

_DETAILS_KEPT = 3


@dataclass(frozen=True)
class Failure:
    """Requests that ended alike, warm-up included.

    Attributes:
        outcome: how they ended.
        count: how many.
        details: the first few distinct reasons, in the words of the engine or of libcurl.
    """

    outcome: Outcome
    count: int
    details: tuple[str, ...]


class FailureTally:
    """Counts one client's failures and remembers the first few reasons of each kind."""

    def __init__(self) -> None:
        self._counts: dict[Outcome, int] = {}
        self._details: dict[Outcome, list[str]] = {}

    def add(self, outcome: Outcome, detail: str) -> None:
        """Count one failed request."""
        self._counts[outcome] = self._counts.get(outcome, 0) + 1
        details = self._details.setdefault(outcome, [])
        if detail and detail not in details and len(details) < _DETAILS_KEPT:
            details.append(detail)

    def take(self, other: "FailureTally") -> None:
        """Add what another one counted."""
        for failure in other.failures():
            self._counts[failure.outcome] = self._counts.get(failure.outcome, 0) + failure.count
            details = self._details.setdefault(failure.outcome, [])
            new = [detail for detail in failure.details if detail not in details]
            details += new[: _DETAILS_KEPT - len(details)]

    def failures(self) -> tuple[Failure, ...]:
        """Everything counted, by outcome."""
        return tuple(
            Failure(outcome, count, tuple(self._details[outcome]))
            for outcome, count in sorted(self._counts.items())
        )


def merge_failures(parts: Iterable[tuple[Failure, ...]]) -> tuple[Failure, ...]:
    """Add up the failures of several clients."""
    merged: dict[Outcome, Failure] = {}
    for failure in (failure for part in parts for failure in part):
        known = merged.get(failure.outcome, Failure(failure.outcome, 0, ()))
        details = dict.fromkeys(known.details + failure.details)
        merged[failure.outcome] = Failure(
            failure.outcome, known.count + failure.count, tuple(details)[:_DETAILS_KEPT]
        )
    return tuple(merged[outcome] for outcome in sorted(merged))
