"""What weakens a comparison, found in the forks themselves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from benchctl.results.model import AnswerCheck, ForkRecord, TaskSummary
from benchctl.stats import caveat
from benchctl.stats.analysis import Row
from benchctl.stats.bimodal import separate_groups, within_fork_error
from benchctl.stats.caveat import SAMPLES_FOR_P90, Caveat
from benchctl.stats.disturbed import TOLERANCE_PERCENT, disturbances
from benchctl.stats.metrics import THROUGHPUT, Metric
from benchctl.stats.scale import rounded_ratio
from benchctl.stats.steady import steadiness
from benchctl.stats.values import ForkSummaries
from benchctl.track.model import Task

_LEAST_SHARE_OF_TARGET = 0.99
_MOST_WAIT_SHARE = 0.01
_MOST_WAIT_NS = 1e6
_NOTABLE_SCALE = 10.0

# With these a verdict would judge the load, not the engine.
WITHHOLDING = frozenset({"offered-rate", "saturated"})


def row_doubts(
    metric: Metric, task: Task, found: Mapping[str, ForkSummaries], answers: AnswerCheck | None
) -> list[Caveat]:
    """Doubts about one task and metric, variant by variant.

    Args:
        metric: the metric of the row.
        task: the task.
        found: label -> its forks' summaries, the baseline first.
        answers: what the engines answered, where it was checked.
    """
    doubts = list(_load_doubts(metric, task, found))
    baseline = next(iter(found))
    for label, forks in found.items():
        doubts += _variant_doubts(metric, label, forks)
        doubts += _answer_doubts(task.operation, label, baseline, answers)
    return [*doubts, *_sample_doubts(metric, found)]


def unsupported_reason(forks: ForkSummaries) -> str | None:
    """The node's reason, from the first fork that has one."""
    return next((summary.unsupported for _, summary in forks if summary.unsupported), None)


def general_doubts(
    forks: Mapping[str, Sequence[ForkRecord]], done: Mapping[str, Sequence[ForkRecord]], rows: Sequence[Row]
) -> tuple[Caveat, ...]:
    """Doubts about the whole analysis.

    Args:
        forks: label -> all its forks.
        done: label -> the finished ones.
        rows: what was compared.
    """
    doubts = [
        caveat.failed_forks(label, len(group) - len(done[label]))
        for label, group in forks.items()
        if len(group) > len(done[label])
    ]
    doubts += _disturbed(done)
    furthest = max((row.scale.ratio for row in rows if row.scale), default=0.0)
    if furthest >= _NOTABLE_SCALE:
        doubts.append(caveat.small_scale(rounded_ratio(furthest)))
    return (*doubts, caveat.one_index_build())


def _disturbed(done: Mapping[str, Sequence[ForkRecord]]) -> Iterator[Caveat]:
    found: dict[str, list[int]] = {}
    for one in disturbances(done):
        found.setdefault(one.variant, []).append(one.block)
    if found:
        yield caveat.disturbed(found, sum(len(group) for group in done.values()), TOLERANCE_PERCENT)


def _sample_doubts(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """One sentence for all variants whose forks have equally few requests."""
    if metric.key == THROUGHPUT.key:
        return
    few: dict[int, list[str]] = {}
    for label, forks in found.items():
        fewest = min((summary.samples for _, summary in forks if summary.samples > 0), default=None)
        if fewest is not None and fewest < SAMPLES_FOR_P90:
            few.setdefault(fewest, []).append(label)
    for fewest, labels in few.items():
        yield caveat.few_samples(labels, fewest)


def _load_doubts(metric: Metric, task: Task, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Was the load of a throttled task served? If so, its throughput says nothing about the engine."""
    target = task.rate_per_s
    if target is None:
        return
    overloaded = False
    for label, forks in found.items():
        achieved = _saturated_rate([summary for _, summary in forks], target)
        if achieved is not None:
            overloaded = True
            yield caveat.saturated(label, achieved, target)
    if metric.key == THROUGHPUT.key and not overloaded:
        yield caveat.offered_rate(target)


def _saturated_rate(summaries: Sequence[TaskSummary], target_per_s: float) -> float | None:
    """The achieved rate where it missed the target because requests queued; None otherwise.

    A short task misses its rate just because its last request takes time, so requests must have waited, too.
    """
    rates = [summary.throughput_per_s for summary in summaries if summary.throughput_per_s is not None]
    if not rates or median(rates) >= _LEAST_SHARE_OF_TARGET * target_per_s:
        return None
    waits = [
        summary.latency.p90 - summary.service_time.p90
        > max(_MOST_WAIT_NS, _MOST_WAIT_SHARE * summary.service_time.p90)
        for summary in summaries
        if summary.latency and summary.service_time
    ]
    return median(rates) if any(waits) else None


def _variant_doubts(metric: Metric, label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    summaries = [summary for _, summary in forks]
    reason = unsupported_reason(forks)
    if reason is not None:
        yield caveat.unsupported(label, reason)
        return
    failed: Counter[str] = Counter()
    for summary in summaries:
        failed.update(summary.failures)
    if failed:
        reasons = [reason for summary in summaries for reason in summary.failure_reasons]
        yield caveat.failures(label, dict(failed), next(iter(reasons), ""))
    measured = [summary for summary in summaries if summary.samples > 0]
    if not measured:
        return
    settled = steadiness([summary.drift for summary in measured])
    if settled.state == "not steady":
        yield caveat.not_steady(label, settled.text)
    values = [value for summary in measured if (value := metric.value(summary)) is not None]
    gap = separate_groups(values, metric.error_factor * within_fork_error(measured))
    if gap is not None:
        yield caveat.bimodal(label, values, metric.unit, gap)


def _answer_doubts(
    operation: str, label: str, baseline: str, answers: AnswerCheck | None
) -> Iterator[Caveat]:
    for finding in answers.findings if answers else ():
        if finding.operation == operation and finding.variant == label and finding.kind == "different":
            yield caveat.answers_differ(label, finding.baseline or baseline, finding.detail)
