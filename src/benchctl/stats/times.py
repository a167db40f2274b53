"""All the times of a task side by side: the engine's own, on the wire, and what the driver adds."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan
from benchctl.stats.analysis import TimeKind, TimeRow
from benchctl.stats.caveat import SAMPLES_FOR_P90
from benchctl.stats.values import ForkSummaries, collect, places, task_at

LEAST_FOR_P90 = 10
LEAST_FOR_P99 = SAMPLES_FOR_P90
_NS_PER_MS = 1e6

_KINDS: Mapping[TimeKind, Callable[[TaskSummary], Quantiles | None]] = {
    "took": lambda summary: summary.took,
    "first byte": lambda summary: summary.first_byte,
    "service": lambda summary: summary.service_time,
    "processing": lambda summary: summary.processing_time,
    "latency": lambda summary: summary.latency,
    "page": lambda summary: summary.pages,
}


def time_rows(done: Mapping[str, Sequence[ForkRecord]], plan: Plan) -> tuple[TimeRow, ...]:
    """Every time that is known, task by task and variant by variant.

    Args:
        done: label -> finished forks.
        plan: of the run.
    """
    return tuple(
        row
        for place in places(plan)
        for label, forks in collect(done, place, task_at(plan, place)).items()
        for kind in _KINDS
        if (row := _row(place, label, kind, forks)) is not None
    )


def _row(place: tuple[int, int], label: str, kind: TimeKind, forks: ForkSummaries) -> TimeRow | None:
    known = [(summary, found) for _, summary in forks if (found := _KINDS[kind](summary)) is not None]
    if not known:
        return None
    # Of pages there are at least as many as of operations.
    fewest = min(summary.samples for summary, _ in known)
    return TimeRow(
        schedule=place[0],
        task=place[1],
        label=known[0][0].label,
        variant=label,
        kind=kind,
        p50_ms=median(found.p50 for _, found in known) / _NS_PER_MS,
        p90_ms=median(found.p90 for _, found in known) / _NS_PER_MS if fewest >= LEAST_FOR_P90 else None,
        p99_ms=median(found.p99 for _, found in known) / _NS_PER_MS if fewest >= LEAST_FOR_P99 else None,
    )
