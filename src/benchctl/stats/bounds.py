"""Red-lines that are no measured rates: lower bounds, objectives that are missed at any rate."""

from collections.abc import Iterator, Mapping, Sequence

from benchctl.results.figures import TaskSummary
from benchctl.results.plan import RedlineSpec
from benchctl.stats import caveat
from benchctl.stats.caveat import Caveat
from benchctl.stats.objective import needed_samples, percentile_name
from benchctl.stats.values import ForkSummaries


def redline_doubts(search: RedlineSpec, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Doubts about the red-lines of variants.

    Args:
        search: what was searched for.
        found: label -> its forks' summaries.
    """
    for label, forks in found.items():
        summaries = [summary for _, summary in forks]
        bounded = [one for one in summaries if is_bound(one)]
        if bounded:
            yield caveat.lower_bound(label, bounded[0].redline_text, len(bounded), len(summaries))
        missed = [one for one in summaries if one.redline_end is not None and one.redline_per_s is None]
        if missed:
            yield caveat.no_redline(label, missed[0].redline_text, len(missed), len(summaries))
    yield from _few_samples(search, found)


def is_bound(summary: TaskSummary) -> bool:
    """Whether a fork's red-line is at least its rate, and nobody knows by how much."""
    return summary.redline_per_s is not None and summary.redline_end != "found"


def any_bound(summaries: Sequence[TaskSummary]) -> bool:
    """Whether that is true of any fork: then it is true of their mean."""
    return any(is_bound(summary) for summary in summaries)


def _few_samples(search: RedlineSpec, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    needed = needed_samples(search.percentile)
    for label, forks in found.items():
        counts = [summary.samples for _, summary in forks if summary.redline_per_s is not None]
        if counts and min(counts) < needed:
            yield caveat.short_steps(label, percentile_name(search.percentile), min(counts), needed)
