"""What weakens a comparison, found in the forks themselves."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchctl.results.figures import Calibration, TaskSummary
from benchctl.results.model import AnswerCheck, ForkRecord
from benchctl.stats import caveat
from benchctl.stats.analysis import Row
from benchctl.stats.builds import forks_by_build, several_builds
from benchctl.stats.caveat import Caveat
from benchctl.stats.disturbed import Disturbance, stalls
from benchctl.stats.metrics import REDLINE, THROUGHPUT, Metric, percentile
from benchctl.stats.scale import rounded_ratio
from benchctl.stats.selfcheck import FLOOR_FACTOR, check_load, near_floor
from benchctl.stats.steady import advice, steadiness
from benchctl.stats.values import ForkSummaries, open_loop
from benchctl.track.model import Task

_NOTABLE_SCALE = 10.0
_MEDIAN = 0.5

# With these a verdict would judge the load, not the engine; what the driver limits is told by `check_load`.
WITHHOLDING = frozenset({"lower-bound", "offered-rate", "saturated"})


# Do forks fall apart into groups? A JIT that lands in two states is a finding, not an outlier.

_ERRORS = 3.0
_LEAST_GAP = math.log(1.05)
_LEAST_FORKS = 3
# Forks -> largest gap between neighbours, in SDs within the two groups that it makes, which one in twenty
# samples of a normal distribution exceeds (simulated): some gap is the largest in every sample.
_ORDINARY_GAPS = {3: 46, 4: 11.7, 5: 7.1, 6: 5.4, 7: 4.5, 8: 3.8, 10: 3.1, 12: 2.7, 15: 2.3, 20: 2.0, 30: 1.7}


def separate_groups(values: Sequence[float], relative_error: float) -> float | None:
    """The gap between two groups of forks, when neither noise inside forks nor one spread explains it.

    Args:
        values: one value a fork; what is not above 0 is no value.
        relative_error: standard error of one such value within its fork, as a fraction of it.

    Returns:
        The gap in percent of its lower end; None when it is under 5 % or 3 standard errors, when one in
        twenty samples of normal logarithms has such a gap, or there are fewer than three forks.
    """
    usable = np.asarray([value for value in values if value > 0], dtype=np.float64)
    if len(usable) < _LEAST_FORKS:
        return None
    logs = np.sort(np.log(usable))
    gaps = np.diff(logs)
    split = int(gaps.argmax()) + 1
    gap = float(gaps[split - 1])
    within = math.sqrt(sum(float(((side - side.mean()) ** 2).sum()) for side in np.split(logs, [split])))
    ordinary = float(np.interp(len(logs), [*_ORDINARY_GAPS], [*_ORDINARY_GAPS.values()]))
    if gap <= max(_LEAST_GAP, _ERRORS * relative_error, ordinary * within / math.sqrt(len(logs) - 2)):
        return None
    return 100 * math.expm1(gap)


def within_fork_error(summaries: Sequence[TaskSummary]) -> float:
    """Standard error of a fork's mean service time as a fraction of it, root mean square over forks.

    Returns:
        Infinite when no fork can tell, so that nothing is called a group on its strength.
    """
    squares = [
        (summary.sd_ns / summary.mean_ns) ** 2 / summary.effective_samples
        for summary in summaries
        if summary.sd_ns is not None and summary.mean_ns and summary.effective_samples
    ]
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else math.inf


# What weakens a comparison, found in the forks themselves.


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
        doubts += _variant_doubts(metric, task, label, forks)
        doubts += _answer_doubts(task.operation, label, baseline, answers)
    return [*doubts, *_sample_doubts(metric, found)]


def host_doubts(
    metric: Metric, found: Mapping[str, ForkSummaries], noisy: Sequence[Disturbance]
) -> Iterator[Caveat]:
    """Noise of the host where it matters: where a fork's value stands out as the host's probe does.

    That is by more than the practical margin beyond those of all quiet forks, and slower where the probe was.

    Args:
        metric: the metric of the row.
        found: label -> its forks' summaries.
        noisy: forks around which a host probe stands out.
    """
    for label, forks in found.items():
        off = {one.block: one.off_percent for one in noisy if one.variant == label}
        values = {block: value for block, summary in forks if (value := metric.value(summary)) is not None}
        quiet = [value for block, value in values.items() if block not in off]
        if not quiet:
            continue
        low, high = min(quiet) / (1 + metric.margin), max(quiet) * (1 + metric.margin)
        marked = [
            block
            for block, by in off.items()
            if block in values
            # A slow host makes times longer, and rates lower.
            and (values[block] < low if (by > 0) == metric.higher_is_better else values[block] > high)
        ]
        if marked:
            yield caveat.noisy_host(label, marked)


def unsupported_reason(forks: ForkSummaries) -> str | None:
    """The node's reason, from the first fork that has one."""
    return next((summary.unsupported for _, summary in forks if summary.unsupported), None)


def general_doubts(
    forks: Mapping[str, Sequence[ForkRecord]],
    done: Mapping[str, Sequence[ForkRecord]],
    rows: Sequence[Row],
    *,
    prepared: bool = True,
) -> tuple[Caveat, ...]:
    """Doubts about the whole analysis.

    Args:
        forks: label -> all its forks.
        done: label -> the finished ones.
        rows: what was compared.
        prepared: whether forks began on copies of the same build; where each builds its own, the spread of
            builds is in that of forks.
    """
    doubts = [
        caveat.failed_forks(label, len(group) - len(done[label]))
        for label, group in forks.items()
        if len(group) > len(done[label])
    ]
    running = [label for label, group in done.items() if _ran_already(group)]
    if running:
        doubts.append(caveat.not_restarted(running))
    furthest = max((row.scale.ratio for row in rows if row.scale), default=0.0)
    if furthest >= _NOTABLE_SCALE:
        doubts.append(caveat.small_scale(rounded_ratio(furthest)))
    if any(doubt.code == "bimodal" for row in rows for doubt in row.caveats):
        doubts.append(caveat.bimodal_interval())
    return (*doubts, _builds(done)) if prepared else tuple(doubts)


def _builds(done: Mapping[str, Sequence[ForkRecord]]) -> Caveat:
    """Whether builds of the index are in the intervals."""
    if several_builds(done):
        return caveat.builds({label: forks_by_build(group) for label, group in done.items()})
    return caveat.one_index_build()


def _ran_already(forks: Sequence[ForkRecord]) -> bool:
    """Whether any of the forks used a cluster as it was: a start that benchctl made takes time."""
    return any(boot.start_s == 0 for fork in forks for boot in fork.boots)


def _sample_doubts(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """One sentence for all variants whose forks have equally few requests."""
    if metric.quantile is None:
        return
    for fewest, labels in _few(metric.samples_needed, found).items():
        if fewest >= metric.samples_least:
            yield caveat.few_samples(labels, fewest, percentile(metric.quantile), metric.samples_needed)
    yield from dict.fromkeys(extreme_doubts(metric, found).values())


def extreme_doubts(metric: Metric, found: Mapping[str, ForkSummaries]) -> dict[str, Caveat]:
    """Variants whose quantile is the slowest (or fastest) request of a fork, each with what to say of that.

    Args:
        metric: the metric of the row.
        found: label -> its forks' summaries.
    """
    if metric.quantile is None:
        return {}
    doubts: dict[str, Caveat] = {}
    extreme = "slowest" if metric.quantile > _MEDIAN else "fastest"
    name, needed, least = percentile(metric.quantile), metric.samples_needed, metric.samples_least
    for fewest, labels in _few(least, found).items():
        doubt = caveat.extreme_samples(labels, fewest, name, needed, least, extreme)
        doubts |= dict.fromkeys(labels, doubt)
    return doubts


def _few(needed: int, found: Mapping[str, ForkSummaries]) -> dict[int, list[str]]:
    """Fewest requests of a fork -> the variants that have so many, where that is less than needed."""
    few: dict[int, list[str]] = {}
    for label, forks in found.items():
        fewest = min((summary.samples for _, summary in forks if summary.samples > 0), default=None)
        if fewest is not None and fewest < needed:
            few.setdefault(fewest, []).append(label)
    return few


def _load_doubts(metric: Metric, task: Task, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Was the load of the task served and offered? If not, its figures say little about the engine."""
    if metric.key == REDLINE.key:
        return  # a search judges the load of each of its steps
    target = task.rate_per_s
    overloaded = False
    for label, forks in found.items():
        check = check_load(task, [summary for _, summary in forks])
        if target is not None and check.saturated_per_s is not None:
            overloaded = True
            yield caveat.saturated(label, check.saturated_per_s, target)
        if check.limits:
            yield caveat.driver_limited(
                label, [limit.text for limit in check.limits], check.withheld, check.advice
            )
    if open_loop(task, found) and metric.key == THROUGHPUT.key and not overloaded:
        yield caveat.offered_rate(target, task.scheduler)


def floor_doubts(found: Mapping[str, ForkSummaries], calibration: Calibration | None) -> Iterator[Caveat]:
    """Answers that come so fast that what the driver adds to them is a notable part.

    Args:
        found: label -> its forks' summaries.
        calibration: of the run; None where there was none.
    """
    for label, forks in found.items():
        typical_ns = near_floor([summary for _, summary in forks], calibration)
        if calibration is not None and typical_ns is not None:
            yield caveat.driver_floor(label, typical_ns, calibration.error_p50_ns, FLOOR_FACTOR)


def _variant_doubts(metric: Metric, task: Task, label: str, forks: ForkSummaries) -> Iterator[Caveat]:
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
    mixed = max((summary.failed_share for summary in summaries), default=0.0)
    if mixed > 0:
        yield caveat.failures_within(label, mixed)
    measured = [summary for summary in summaries if summary.samples > 0]
    if not measured:
        if summaries and not failed:
            yield caveat.nothing_measured(label, sum(summary.warmup_samples for summary in summaries))
        return
    yield from _stall_doubts(label, forks)
    settled = steadiness(measured)
    if settled.state == "not steady":
        yield caveat.not_steady(label, settled.trend or "drifting", settled.text, advice(measured, task))
    elif settled.remark:
        yield caveat.course(label, settled.remark)
    values = [value for summary in measured if (value := metric.value(summary)) is not None]
    gap = separate_groups(values, metric.error_factor * within_fork_error(measured))
    if gap is not None:
        yield caveat.bimodal(label, values, metric.unit, gap)


def _stall_doubts(label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    waits = {block: [stall.text for stall in stalls(summary)] for block, summary in forks}
    found = {block: texts for block, texts in waits.items() if texts}
    if found:
        yield caveat.stalled(label, found)


def _answer_doubts(
    operation: str, label: str, baseline: str, answers: AnswerCheck | None
) -> Iterator[Caveat]:
    for finding in answers.findings if answers else ():
        if finding.operation != operation or finding.variant != label:
            continue
        if finding.kind == "different":
            yield caveat.answers_differ(label, finding.baseline or baseline, finding.detail)
        elif finding.kind == "wrong":
            yield caveat.answers_wrong(label, finding.detail)
