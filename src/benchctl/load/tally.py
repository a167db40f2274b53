"""What a task comes to beside its samples: failures by kind, and how far the driver itself lagged behind."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchctl.results.samples import Columns, Outcome

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


def driver_lag_ns(columns: Columns, *, open_loop: bool) -> npt.NDArray[np.int64]:
    """How late the driver itself sent each request of one client: time that no node is to blame for.

    A request could be sent as soon as it was due and the one before had ended; in a closed loop it is always
    due. Waiting behind a slow answer is therefore not lag; it is in the latency.

    Args:
        columns: one client's samples in order, shape (n,).
        open_loop: whether requests had a due time.

    Returns:
        Nanoseconds; shape (n,) in an open loop, (n - 1,) in a closed one, whose first request follows none.
    """
    starts, ends = columns["start_ns"], columns["end_ns"]
    if not open_loop:
        return np.asarray(starts[1:] - ends[:-1], dtype=np.int64)
    possible = columns["intended_ns"].copy()
    possible[1:] = np.maximum(possible[1:], ends[:-1])
    return np.asarray(starts - possible, dtype=np.int64)
