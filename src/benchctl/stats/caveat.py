"""Doubts as data: what weakens a figure, in words that tell the reader what to make of it."""

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from benchctl.results.model import RunRecord

CaveatCode = Literal[
    "answers-differ", "builds", "busy-host", "coarse", "counted-less", "counted-more", "cut-short",
    "driver-limited", "failed-forks",
    "failures", "few-units", "hits-changed", "ignored-errors", "lower-bound", "missing-values", "no-ratio",
    "no-spread", "not-cold", "not-restarted", "not-steady", "nothing-found", "offered-rate", "other-tasks",
    "run", "saturated", "stalled", "test-mode", "too-few-samples", "unfinished", "unlike", "unlike-units",
    "unsupported",
]  # fmt: skip

WITHHOLDING: Final[frozenset[CaveatCode]] = frozenset(
    {"coarse", "counted-less", "hits-changed", "lower-bound", "offered-rate", "saturated", "unlike-units"}
)
"""With these a verdict would judge the load, not the engine; `check_load` has what the driver limits."""

WITHOUT_VERDICT: Final[frozenset[CaveatCode]] = (WITHHOLDING - {"offered-rate"}) | frozenset(
    {"driver-limited", "few-units", "missing-values", "no-spread", "unsupported"}
)
"""Doubts that leave a row without one."""

_WHOLE_FROM: Final = 100

Replicate = Literal["fork", "build", "run"]
"""Unit of replication behind an interval."""


class Caveat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A doubt."""

    code: CaveatCode
    text: str  # for readers; one sentence without a final full stop


def counted(count: int, noun: str) -> str:
    """Return `1 fork` or `3 forks`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def plain(value: float) -> str:
    """Return a value with three digits, and large ones whole: never in powers of ten."""
    return f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.3g}"


def missed_percent(replicates: int) -> float:
    """Return the share of all that so many miss with a chance of 5%: (1 - share) ** n."""
    return 100 * (1 - math.pow(0.05, 1 / replicates))


# Doubts that several kinds of analysis have.


def run_doubts(record: RunRecord) -> Iterator[Caveat]:
    """Yield what must stand with every figure of a run: that it was a trial, or has not ended."""
    if record.plan.test_mode:
        yield Caveat("test-mode", f"run {record.id} was a trial (--test-mode): its values mean nothing")
    if record.unfinished:
        done = record.total - len(record.missing())
        forks = f"{done} of {record.total_text} forks are done"
        if record.status == "running":
            yield Caveat("unfinished", f"run {record.id} is being measured: {forks}")
        else:
            yield Caveat("unfinished", f"run {record.id} is unfinished ({record.unfinished}): {forks}")


def answers_differ(variant: str, baseline: str, detail: str) -> Caveat:
    """A timing beside which the answers are not the same."""
    return Caveat("answers-differ", f"{variant} and {baseline} return different results: {detail}")


def failed_forks(variant: str, failed: int) -> Caveat:
    """Forks that did not finish."""
    what = f"{counted(failed, 'fork')} of {variant} failed and {'is' if failed == 1 else 'are'}"
    return Caveat("failed-forks", f"{what} not included")


def one_index_build(measurements: Sequence[str] = ()) -> Caveat:
    """Document order decides the point tree, and it was drawn once; of some of several measurements."""
    where = f"{', '.join(measurements)}: " if measurements else ""
    text = f"{where}one index build per engine: intervals do not include differences between builds"
    return Caveat("builds", text)
