"""Has a run seen enough? Judged by how wide its intervals are, or by whether every row has a verdict.

A rule that looks at p stops on chance: with enough looks, every A/A run becomes significant. The width of an
interval depends on the spread alone, which for normal values is independent of the difference. What is left
is the luck of the spread: a run stops where it looks small. The least number of forks bounds that, and the
calibration tests measure it. Where verdicts decide, every p and interval is one that holds in spite of as
many looks (`multiplicity`), so that stopping on it costs nothing more.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from benchctl.results.plan import StopSpec
from benchctl.stats.analysis import Row
from benchctl.stats.compare import Comparison
from benchctl.stats.cost import forks_to_verdict
from benchctl.stats.metrics import metric_of
from benchctl.stats.multiplicity import FIRST_LOOK, MOST_BLOCKS

DECIDED = frozenset({"faster", "slower", "equivalent"})

_MOST_NAMED = 3
_NOTHING_PERCENT = -100.0  # a ratio of 0


class Decision(msgspec.Struct, frozen=True):
    """Whether to go on.

    Attributes:
        enough: the precision asked for is reached.
        text: why, or what is missing; one sentence without a final full stop, empty when none was asked for.
    """

    enough: bool
    text: str


class _Width(msgspec.Struct, frozen=True):
    """One interval that counts; infinite where there is none yet."""

    half: float
    forks: int
    name: str


def decide(rows: Sequence[Row], stop: StopSpec, forks_done: int) -> Decision:
    """Decide after a whole block.

    Every effect that may be judged counts. What can never get there does not: figures without a verdict,
    operations that a node cannot do, and forks that have no figure for a task; the text names them.

    Args:
        rows: what the analysis of the forks so far compares.
        stop: what was asked for.
        forks_done: finished forks of the variant that has fewest.
    """
    widths, left_out = _sort_out(rows)
    named = f"; left out, because there can be no verdict: {left_out}" if left_out else ""
    if stop.decided:
        return _all_decided(rows, stop, forks_done, named)
    return _all_narrow(widths, stop, forks_done, named)


def _all_narrow(widths: Sequence[_Width], stop: StopSpec, forks_done: int, named: str) -> Decision:
    if stop.precision is None:
        return Decision(enough=False, text="")
    if not widths:
        return Decision(enough=False, text=f"there is no interval to be precise about{named}")
    widest = max(widths, key=lambda width: width.half)
    fewest = min(forks_done, *(width.forks for width in widths))
    if fewest < stop.least_forks:
        return Decision(enough=False, text=f"{fewest} of at least {stop.least_forks} forks a side{named}")
    if not math.isfinite(widest.half):
        return Decision(enough=False, text=f"there is no interval yet ({widest.name}){named}")
    found = f"the widest interval is {half_width_text(widest.half)} ({widest.name})"
    if widest.half <= stop.precision:
        return Decision(enough=True, text=f"{found}{named}")
    return Decision(enough=False, text=f"{found}, {half_width_text(stop.precision)} is wanted{named}")


def _all_decided(rows: Sequence[Row], stop: StopSpec, forks_done: int, named: str) -> Decision:
    least = max(stop.least_forks, FIRST_LOOK)
    judged = [(row, one) for row, one in _comparisons(rows) if not _hopeless(one)]
    if not judged:
        return Decision(enough=False, text=f"there is nothing to decide{named}")
    if forks_done < least:
        return Decision(enough=False, text=f"{forks_done} of at least {least} forks a side{named}")
    undecided = [(row, one) for row, one in judged if one.verdict not in DECIDED]
    if not undecided:
        return Decision(enough=True, text=f"{len(judged)} of {len(judged)} are decided{named}")
    needs = sorted(((forks_to_verdict(one), _name(row, one)) for row, one in undecided), key=_nearest_first)
    lacking = [f"{name} ({_further_text(forks)})" for forks, name in needs[:_MOST_NAMED]]
    if len(needs) > _MOST_NAMED:
        lacking.append(f"{len(needs) - _MOST_NAMED} others, which lack more")
    return Decision(
        enough=False, text=f"{len(undecided)} of {len(judged)} are open: {', '.join(lacking)}{named}"
    )


def _nearest_first(need: tuple[int | None, str]) -> tuple[float, str]:
    return math.inf if need[0] is None else need[0], need[1]


def _further_text(forks: int | None) -> str:
    if forks is None:
        return f"not within {MOST_BLOCKS} forks, if it stays as it is"
    return f"about {forks} more, if it stays as it is"


def half_width(comparison: Comparison) -> float | None:
    """Half of the 95 % interval as a ratio - 1: 0.05 when it reaches from effect / 1.05 to effect x 1.05.

    On the log scale the interval is symmetric; in percent it is not.

    Returns:
        None when there is no interval.
    """
    low, high = comparison.low_percent, comparison.high_percent
    if low is None or high is None:
        return None
    if low <= _NOTHING_PERCENT:
        return math.inf
    return math.expm1((math.log1p(high / 100) - math.log1p(low / 100)) / 2)


def half_width_text(half: float) -> str:
    """In words: `+-4.8 %`."""
    return f"+-{100 * half:.1f} %"


def _sort_out(rows: Sequence[Row]) -> tuple[list[_Width], str]:
    """The intervals that count, and the names of those that cannot, metric by metric."""
    widths: list[_Width] = []
    left_out: dict[str, list[str]] = {}
    for row, comparison in _comparisons(rows):
        title = metric_of(row.metric).title
        task = _task(row, comparison)
        if _hopeless(comparison):
            left_out.setdefault(title, []).append(task)
            continue
        half = half_width(comparison)
        forks = min(comparison.n_baseline, comparison.n_contender)
        widths.append(_Width(math.inf if half is None else half, forks, _name(row, comparison)))
    return widths, "; ".join(f"{title} of {', '.join(tasks)}" for title, tasks in left_out.items())


def _task(row: Row, comparison: Comparison) -> str:
    return row.label if len(row.comparisons) == 1 else f"{row.label} ({comparison.contender})"


def _name(row: Row, comparison: Comparison) -> str:
    return f"{metric_of(row.metric).title} of {_task(row, comparison)}"


def _comparisons(rows: Sequence[Row]) -> Iterator[tuple[Row, Comparison]]:
    return ((row, comparison) for row in rows for comparison in row.comparisons)


def _hopeless(comparison: Comparison) -> bool:
    """More forks will not bring a verdict, or there is nothing that they could narrow."""
    doubts = {doubt.code for doubt in comparison.caveats}
    return (
        not comparison.judged
        or comparison.effect_percent is None
        or bool(doubts & {"missing-values", "no-spread"})
    )
