"""Warnings about a comparison, from its forks and from the load driver."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import TypeVar

import msgspec
import numpy as np

from benchctl.results.answers import Answer, change
from benchctl.results.figures import DOCUMENTS, Quantiles, TaskSummary
from benchctl.results.model import AnswerCheck, ForkRecord, stray_boots
from benchctl.results.plan import Place, Plan
from benchctl.stats.analysis import Steadiness, Trend
from benchctl.stats.caveat import (
    Caveat,
    answers_differ,
    counted,
    failed_forks,
    one_index_build,
    plain,
)
from benchctl.stats.compare import LEVEL, forks_by_build, several_builds
from benchctl.stats.disturbed import large_stalls, stalls
from benchctl.stats.driver import LoadCheck, check_load, known_median
from benchctl.stats.inference import Contrast, Floats, contrast, holm
from benchctl.stats.metrics import REDLINE, ForkSummaries, Metric, task_at
from benchctl.track.model import Task
from benchctl.track.operations import remedy

# A node that counts fewer of its searches has not answered all of them.
_LEAST_SHARE_COUNTED = 0.99

# Of an index in the page cache: what counts as emptied, and what its node's own start put there.
_EMPTIED_SHARE = 0.5
_NOTABLE_SHARE = 0.1

# Numbers of requests, and what requests count, that are no farther apart are the same.
_ALIKE_SAMPLES = 1.1
_ALIKE_UNITS = 1.01
_NOTABLE_BIAS = 0.2
_SENT_OF_PLANNED = 0.99

# Engines give whole milliseconds of a search; not all of them count those of a bulk request exactly.
_SEARCHES = "queries"
_TOOK_ERROR_NS = 2e6

# Means over the requests that succeeded.
_MEANS = frozenset({"mean", "engine_time", "client_time"})
_MEDIAN = 0.5


def row_doubts(
    metric: Metric,
    task: Task,
    found: Mapping[str, ForkSummaries],
    answers: AnswerCheck | None,
) -> list[Caveat]:
    """Doubts about one task and metric, variant by variant, the baseline first."""
    doubts = [*unit_doubts(metric, found), *_load_doubts(metric, task, found)]
    baseline = next(iter(found))
    for label, forks in found.items():
        doubts += _variant_doubts(metric, label, forks)
        doubts += _cut_short(task, label, forks)
        asked = answers.answers.get(task.operation, {}) if answers else {}
        doubts += _answer_doubts(label, forks, asked.get(label))
        doubts += [
            answers_differ(label, finding.baseline or baseline, finding.detail)
            for finding in (answers.findings if answers else ())
            if (finding.operation, finding.variant, finding.kind) == (task.operation, label, "different")
        ]
    return [
        *doubts,
        *_coarse(metric, found),
        *dict.fromkeys(unfit_values(metric, found).values()),
    ]


def settling_doubts(
    task: Task, found: Mapping[str, ForkSummaries], settled: Mapping[str, Steadiness]
) -> Iterator[Caveat]:
    """Yield the variants that had not settled, with how to warm them up."""
    for label, steadiness in settled.items():
        if steadiness.trend is not None:
            todo = advice(steadiness.trend, [summary for _, summary in found[label]], task)
            yield Caveat("not-steady", f"{steadiness.trend}: {label} {steadiness.text}{todo and f'; {todo}'}")


def node_doubts(done: Mapping[str, Sequence[ForkRecord]]) -> Iterator[Caveat]:
    """Yield what nodes counted, and what of their index the page cache had."""
    for label, forks in done.items():
        yield from _count_doubts(label, forks)
        begun = [
            boot.resident_begun or 0.0
            for fork in forks
            for boot in fork.boots
            if boot.resident is not None and boot.resident < _EMPTIED_SHARE
        ]
        if max(begun, default=0.0) >= _NOTABLE_SHARE:
            yield Caveat(
                "not-cold",
                f"starting nodes of {label} read up to {100 * max(begun):.0f}% of the index into the page "
                "cache, which had been emptied, before tasks began",
            )


def _count_doubts(label: str, forks: Sequence[ForkRecord]) -> Iterator[Caveat]:
    """Compare the searches that nodes counted with those that they were sent."""
    counts = [
        (fork.block, boot.searches_counted, boot.searches_sent)
        for fork in forks
        for boot in stray_boots(fork)
        if boot.searches_counted is not None
    ]
    if less := [count for count in counts if count[1] < count[2] * _LEAST_SHARE_COUNTED]:
        block, count, sent = max(less, key=lambda one: one[2] - one[1])
        others = _and_more({number for number, *_ in less})
        yield Caveat(
            "counted-less",
            f"nodes of {label} counted {count:,} of {sent:,} searches in fork {block}{others}: "
            "something else, such as a caching proxy, answered the rest, so the values are not the nodes'",
        )
    if more := [count for count in counts if count[1] > count[2]]:
        block, count, sent = max(more, key=lambda one: one[1] - one[2])
        others = _and_more({number for number, *_ in more})
        yield Caveat(
            "counted-more",
            f"nodes of {label} counted {count:,} searches in fork {block}{others} where benchctl "
            f"sent {sent:,}: searches of others take time and change what the JIT learns (ES 9.2 counts each "
            "kNN search as two)",
        )


def cold_doubts(metric: Metric, plan: Plan, place: Place, variants: Iterable[str]) -> Iterator[Caveat]:
    """Yield whether anything warmed a page cache that was to be cold, before the task was measured."""
    task = task_at(plan, place)
    own = not metric.kind.of_start and (task.warmup_iterations or task.warmup_time_period)
    key = "warmup-iterations" if task.warmup_iterations else "warmup-time-period"
    way = f"set {key} to 0 in the challenge, or --param {key.replace('-', '_')}=0 if it has that parameter"
    if plan.page_cache == "cold" and (own or any(plan.warmups_of(name, place[0]) for name in variants)):
        yield Caveat(
            "not-cold",
            "the warm-up, which is not measured, read the index into the page cache: to "
            f"prevent this, {way if own else 'run without warm-up challenges'}",
        )


def unsupported_reason(forks: ForkSummaries) -> str | None:
    """Return the node's reason, from the first fork that has one."""
    return next((summary.unsupported for _, summary in forks if summary.unsupported), None)


def general_doubts(
    forks: Mapping[str, Sequence[ForkRecord]],
    done: Mapping[str, Sequence[ForkRecord]],
    *,
    prepared: bool = True,
) -> Iterator[Caveat]:
    """Yield doubts about the whole analysis.

    `prepared` says whether forks began on copies of the same build; if each builds its own, the spread of
    forks includes that of builds.
    """
    for label, group in forks.items():
        if len(group) > len(done[label]):
            yield failed_forks(label, len(group) - len(done[label]))
    # A start by benchctl takes time: in 0 s, a running cluster was used as it was.
    running = [
        label
        for label, group in done.items()
        if any(boot.start_s == 0 for fork in group for boot in fork.boots)
    ]
    if running:
        yield Caveat(
            "not-restarted",
            f"{' and '.join(running)} ran already, without a restart between forks: the JIT's state carries "
            "over from fork to fork, so forks are not independent node starts, and intervals are too narrow",
        )
    if prepared and several_builds(done):
        listed = ", ".join(
            f"{name} {' '.join(map(str, forks_by_build(group))) or 'none'}" for name, group in done.items()
        )
        text = f"the index build is the unit of intervals and p-values; forks on each build: {listed}"
        yield Caveat("builds", text)
    elif prepared and any(done.values()):
        yield one_index_build()


def _coarse(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Two values that are cut to whole steps are up to a step off, which has to be little of the margin."""
    step = metric.kind.resolution
    least = 2 * step / metric.margin
    medians = {label: known_median([metric.value(one) for _, one in forks]) for label, forks in found.items()}
    low = [label for label, value in medians.items() if value is not None and value < least]
    if low:
        yield Caveat(
            "coarse",
            f"{metric.title} is counted in steps of {step:g} {metric.unit}; the value of {' and '.join(low)} "
            f"is under {plain(least)} {metric.unit}, too small for a verdict",
        )


def unfit_values(metric: Metric, found: Mapping[str, ForkSummaries]) -> dict[str, Caveat]:
    """Return the variants whose values get no verdict, for what is in them, with a caveat each.

    Too many requests failed, there were too few for the quantile, or their number is another one than that of
    the first variant, and decides.
    """
    doubts = {
        label: Caveat(
            "missing-values",
            f"{metric.title} of {label} has no upper bound, since up to {100 * share:.2g}% of a fork's "
            "requests failed: no verdict",
        )
        for label, forks in found.items()
        if (share := max((_unbounded_share(metric, summary) for _, summary in forks), default=0.0))
    }
    if metric.quantile is None:
        return doubts
    first, few = next(iter(found)), dict[str, int]()
    for label, forks in found.items():
        fewest = min((summary.samples for _, summary in forks if summary.samples), default=None)
        if label in doubts or fewest is None:
            continue
        if fewest < metric.samples_least:
            few[label] = fewest
        elif _uneven(metric, found[first], forks):
            listed = " and ".join(
                f"{counted(_typical_samples(found[name]), 'request')} of {name}" for name in (first, label)
            )
            text = (
                f"{metric.title} comes from {listed} in each fork; it depends on how many there are, so no "
                "verdict is given"
            )
            doubts[label] = Caveat("too-few-samples", text)
    if few:
        text = (
            f"{metric.title} of {' and '.join(few)} comes from {counted(min(few.values()), 'request')} in a "
            f"fork; with fewer than {metric.samples_least:,}, it is just the "
            f"{'slowest' if metric.quantile > _MEDIAN else 'fastest'} request, so no verdict is given"
        )
        doubts |= dict.fromkeys(few, Caveat("too-few-samples", text))
    return doubts


def _unbounded_share(metric: Metric, summary: TaskSummary) -> float:
    """Share of a fork's requests that failed, where so many did that its value has no upper bound; else 0.

    A failed request is slower than all others, nobody knows by how much: so a mean has none if any failed.
    """
    failed = summary.unanswered
    bounded = not failed or metric.kind.name not in _MEANS
    if metric.quantile is not None:
        times = metric.kind.of(summary)
        bounded = not isinstance(times, Quantiles) or times.at(metric.quantile) is not None
    return 0.0 if bounded or not summary.samples else failed / (summary.samples + failed)


def _uneven(metric: Metric, first: ForkSummaries, other: ForkSummaries) -> bool:
    """True if the estimator's bias, which depends on the number of samples, can differ notably.

    The bias of a logarithm is of the order of its variance: up to three times as much in two-state samples,
    less in log-normal and exponential ones.
    """
    counts = sorted(map(_typical_samples, (first, other)))
    errors = [_own_error(metric, forks) for forks in (first, other)]
    if counts[1] <= _ALIKE_SAMPLES * counts[0] or errors[0] is None or errors[1] is None:
        return False
    return abs(errors[0] ** 2 - errors[1] ** 2) > _NOTABLE_BIAS * metric.margin


def _typical_samples(forks: ForkSummaries) -> int:
    return int(median([summary.samples for _, summary in forks if summary.samples] or [0]))


def _own_error(metric: Metric, forks: ForkSummaries) -> float | None:
    """Standard error of ln(value) within a fork, root mean square over forks; None where no fork has one."""
    errors = [error for _, summary in forks if (error := metric.log_error(summary)) is not None]
    return math.sqrt(fmean(error**2 for error in errors)) if errors else None


def _load_doubts(metric: Metric, task: Task, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Was the load of the task offered and served? If not, its figures say little about the engine."""
    if metric.key == REDLINE.key or metric.kind.loop in ("cost", "start"):
        # A search judges the load of each of its steps; how fast operations came is not what each cost, and
        # nothing was queued when the first ones came.
        return
    target = task.rate_per_s
    overloaded = False
    for label, forks in found.items():
        check = check_load(task, [summary for _, summary in forks])
        if target is not None and check.saturated_per_s is not None:
            overloaded = True
            yield Caveat(
                "saturated",
                f"saturated: {label} completed {plain(check.saturated_per_s)} of the offered {plain(target)} "
                "requests/s, so requests queued: no verdict",
            )
        if check.limits:
            limits = " and ".join(limit.text for limit in check.limits)
            withheld = " and ".join(_withheld(check, metric))
            text = f"on {label}, benchctl {limits}: no verdict on {withheld}; {check.advice}"
            yield Caveat("driver-limited", f"driver-limited: {text}")
    if metric.kind.loop != "closed":
        return
    if task.throttled and not overloaded:
        what = f"throttled to {target:g} requests/s" if target is not None else "sent at the times of a log"
        if task.scheduler is not None:
            what = f"spaced by the track's own scheduler '{task.scheduler}'"
        yield Caveat("offered-rate", f"{what}: this is the offered rate, compare its latency instead")
    elif task.mixed:
        text = "its requests take turns with those of other tasks: compare its service time instead"
        yield Caveat("offered-rate", text)


def _withheld(check: LoadCheck, metric: Metric) -> tuple[str, ...]:
    """Of the usual metrics a single sentence below all tables says so."""
    own = not metric.kind.usual and check.withholds(metric.kind.name)
    return (metric.title,) if own else check.withheld


def _variant_doubts(metric: Metric, label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    summaries = [summary for _, summary in forks]
    reason = unsupported_reason(forks)
    if reason is not None:
        yield Caveat("unsupported", f"{label} cannot do this operation: {reason}{remedy(reason)}")
        return
    failed = sum((Counter(summary.failures) for summary in summaries), Counter[str]())
    if failed:
        yield Caveat("failures", _failures(label, failed, summaries))
    measured = [summary for summary in summaries if summary.samples > 0]
    if not measured:
        if summaries and not failed:
            warm_up = sum(summary.warmup_samples for summary in summaries)
            why = f": all {warm_up:,} requests were warm-up" if warm_up else ""
            yield Caveat("missing-values", f"nothing of this task was measured on {label}{why}")
        return
    ignored = sum(summary.ignored_errors for summary in measured)
    if ignored:
        requests = counted(sum(summary.samples for summary in measured), "request")
        yield Caveat(
            "ignored-errors",
            f"{ignored:,} of {requests} of {label} were answered with an error status that the operation "
            "ignores: they are included",
        )
    yield from _hits_doubts(label, forks)
    yield from _replay_doubts(label, measured)
    if not metric.kind.of_start:
        yield from _stall_doubts(label, forks)
    has_values = any(metric.value(summary) is not None for summary in measured)
    if not has_values and not metric.kind.usual and metric.kind.level != "build":
        yield Caveat("missing-values", f"{metric.title} of {label} is unknown")


def _failures(label: str, failed: Counter[str], summaries: Sequence[TaskSummary]) -> str:
    """Describe the requests that failed, and those of them that were sent again."""
    listed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(failed.items()))
    reason = next((f" (such as: {reason})" for one in summaries for reason in one.failure_reasons), "")
    retries = sum(summary.retries for summary in summaries)
    again = f"; {retries:,} were sent again after a pause that is not in service time" if retries else ""
    return (
        f"failed requests of {label}: {listed}{reason}; percentiles count them as slower than all others, "
        f"other values exclude them{again}"
    )


def _cut_short(task: Task, label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    """Yield counted tasks that sent less than planned; indexing ends by itself, and groups together."""
    if task.iterations is None or task.group is not None:
        return
    planned = task.iterations * task.clients
    short = [
        (summary.driver.requests, block)
        for block, summary in forks
        if summary.driver is not None and summary.unit != DOCUMENTS
        if 0 < summary.driver.requests < _SENT_OF_PLANNED * planned
    ]
    if short:
        sent, block = min(short)
        more = f", and {counted(len(short) - 1, 'fork')} more did so" if len(short) > 1 else ""
        text = f"cut short: fork {block} of {label} sent {sent:,} of {planned:,} requests{more}"
        yield Caveat("cut-short", text)


def _replay_doubts(label: str, measured: Sequence[TaskSummary]) -> Iterator[Caveat]:
    """Yield answers that claim more time than they took, which those of an engine cannot."""
    for summary in measured:
        took_ns, service_ns = (
            None if times is None else times.p50 for times in (summary.took, summary.service_time)
        )
        if summary.driver is None or summary.unit != _SEARCHES or took_ns is None or service_ns is None:
            continue
        if took_ns > service_ns + _TOOK_ERROR_NS:
            text = (
                f"searches of {label} report {plain(took_ns / 1e6)} ms of server time but were answered "
                f"within {plain(service_ns / 1e6)} ms: something else, such as a caching proxy, answered them"
            )
            yield Caveat("counted-less", text)
            return


def _hits_doubts(label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    """Yield documents that were not the same for all requests, or none at all."""
    changed = [
        (block, summary.hits_least, summary.hits_most)
        for block, summary in forks
        if summary.hits_least is not None and summary.hits_most is not None
    ]
    agreed = {summary.hits for _, summary in forks if summary.hits is not None and summary.hits_exact}
    told = f"hits changed: the same request to {label} matched"
    why = "documents differ, so no verdict is given"
    if changed:
        block, least, most = max(changed, key=lambda fork: fork[2] - fork[1])
        matched = f"from {least:,} to {most:,}" if least < most else f"{most:,} or more"
        where = f"in fork {block}{_and_more(changed)}"
        yield Caveat("hits-changed", f"{told} {matched} documents {where}: {why}")
    elif len(agreed) > 1:
        yield Caveat(
            "hits-changed", f"{told} {min(agreed):,} or {max(agreed):,}, depending on the fork: {why}"
        )
    elif agreed == {0}:
        yield Caveat(
            "nothing-found",
            f"every search of {label} found 0 documents: the index may be empty, not refreshed or not the "
            "intended one, or the query matches nothing",
        )


def _answer_doubts(label: str, forks: ForkSummaries, before: Answer | None) -> Iterator[Caveat]:
    """Yield measured results that the same request did not return before, in the fork or in the check."""
    samples = [(block, summary.answers) for block, summary in forks if summary.answers is not None]
    if changed := [(block, sample) for block, sample in samples if sample.changed]:
        block, worst = max(changed, key=lambda fork: fork[1].changed)
        yield Caveat(
            "hits-changed",
            f"results changed: {worst.changed:,} of {worst.repeated:,} compared results of {label} in fork "
            f"{block}{_and_more(changed)} differ from the first one of the same request, such as: "
            f"{worst.example}: no verdict is given",
        )
    if before is None or before.unsupported is not None or before.failed is not None:
        return
    firsts = [(block, sample.first) for block, sample in samples if sample.first is not None]
    if different := [(block, text) for block, first in firsts if (text := change(before, first))]:
        block, text = different[0]
        yield Caveat(
            "hits-changed",
            f"results changed: those of {label} in fork {block}{_and_more(different)} differ from what the "
            f"same request returned before the measurement: {text}: no verdict is given",
        )


def _and_more(forks: Collection[object]) -> str:
    """Return ` and 2 more forks`, beside the one that is named; empty for that alone."""
    return f" and {counted(len(forks) - 1, 'more fork')}" if len(forks) > 1 else ""


def hits_apart(found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Yield variants that found other documents than the first one, where their results were not compared."""
    exact = {
        label: next(
            (summary.hits for _, summary in forks if summary.hits is not None and summary.hits_exact), None
        )
        for label, forks in found.items()
    }
    baseline, *others = exact
    for label in others:
        hits, first = exact[label], exact[baseline]
        if hits is not None and first is not None and hits != first:
            yield answers_differ(label, baseline, f"hits {hits:,} and {first:,}")


def unit_doubts(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Yield variants whose requests count other things, or more of them: their rates are of unlike work."""
    units = {
        label: (first.unit, float(median(weights)))
        for label, forks in found.items()
        for first in [summary for _, summary in forks if summary.samples][:1]
        if (weights := [summary.units_per_request for _, summary in forks if summary.units_per_request])
    }
    kinds = {unit for unit, _ in units.values()}
    counts = [count for _, count in units.values()]
    apart = len(kinds) > 1 or (bool(counts) and max(counts) > _ALIKE_UNITS * min(counts))
    if apart and metric.kind.counts:
        listed = ", of ".join(
            f"{label} counts {plain(count)} {unit}" for label, (unit, count) in units.items()
        )
        text = f"a request of {listed}: what they count is not the same, so no verdict"
        yield Caveat("unlike-units", text)


def _stall_doubts(label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    waits = [(block, own_stalls) for block, summary in forks if (own_stalls := list(stalls(summary)))]
    if waits:
        block, most = max(waits, key=lambda fork: max(stall.share for stall in fork[1]))
        texts = " and ".join(stall.text for stall in most)
        yield Caveat("stalled", f"stalled: {label}: in fork {block}{_and_more(waits)}, {texts}")


# Whether tasks had settled before they were measured, and how long to warm up.

_LEAST_DRIFT = math.log(1.05)

Key = TypeVar("Key")


def steadiness(tasks: Mapping[Key, Sequence[TaskSummary]]) -> dict[Key, Steadiness]:
    """Test which tasks of a run had not settled while they were measured.

    The contrast is ln(geometric mean of the last third / of the first), one value a fork, of the measured
    requests, or of the last third of all where a longer warm-up was before them; a t-test over forks,
    adjusted by Holm's method over all tasks and variants, so that at most one of twenty runs of settled tasks
    has a mark. A task has not settled where that is significant and the mean drift is more than 5%. Nor has
    one that does not show it, if a fork sent fewer requests before than the operation is known to need: what
    short tasks cannot show is not there to be seen.

    Args:
        tasks: of every task and variant one summary a fork; one in which a few waits took much of the time,
            or documents changed, says nothing.
    """
    drifts = {
        key: np.asarray(
            [summary.drift for summary in summaries if summary.drift is not None and _is_of_engine(summary)]
        )
        for key, summaries in tasks.items()
    }
    tests = {key: test for key, values in drifts.items() if (test := contrast(values)) is not None}
    p = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    return {
        key: _tested(
            drifts[key],
            tests.get(key),
            p.get(key),
            max((summary.lacking_warmup for summary in own), default=0),
        )
        for key, own in tasks.items()
    }


def _tested(drifts: Floats, test: Contrast | None, p: float | None, lacking: int) -> Steadiness:
    """Judge one task by the test of its drift, and by the warm-up requests that it lacks."""
    mean = float(drifts.mean()) if drifts.size else None
    result = Steadiness("unknown", mean)
    if test is not None and p is not None:
        result = Steadiness("steady", mean, *test.interval(0.95), p)
        if p <= LEVEL and abs(test.estimate) > _LEAST_DRIFT:
            by = 100 * abs(math.expm1(test.estimate))
            faster = test.estimate < 0
            way, trend = ("was still getting", "not warmed up") if faster else ("was getting", "drifting")
            pace = "faster" if faster else "slower"
            text = f"{way} {pace}: last third {by:.0f}% {pace} than the first"
            return msgspec.structs.replace(result, state="not steady", text=text, trend=trend)
    if not lacking:
        return result
    text = f"had {lacking:,} requests fewer before measurement than its operation needs (settles-after)"
    return msgspec.structs.replace(result, state="not steady", text=text, trend="little warm-up")


def _is_of_engine(summary: TaskSummary) -> bool:
    """True if a drift reflects the engine: no few waits dominate the time, and no documents changed."""
    return summary.hits_least is None and not large_stalls(summary)


def advice(trend: Trend, summaries: Sequence[TaskSummary], task: Task) -> str:
    """Return what to change so that forks are measured after settling; empty when nothing is known.

    That is the warm-up that the operation lacks, or one as long as all that was not enough.

    Args:
        trend: what is wrong, by `steadiness`.
        summaries: one a fork.
        task: that they are of.
    """
    warmed_up = task.warmup_iterations or 0
    if task.time_period is not None:
        seconds = (task.warmup_time_period or 0) + task.time_period
        about = "" if trend == "little warm-up" else f" to about {_rounded_up(seconds):,} s"
        return f"raise warmup-time-period{about}"
    if task.iterations is None:
        return ""
    if trend == "little warm-up":
        count = warmed_up + max(summary.lacking_warmup for summary in summaries) / task.clients
        return f"raise warmup-iterations to {_rounded_up(count):,}"
    count = max(summary.warmup_samples + summary.samples for summary in summaries) / task.clients
    return f"raise warmup-iterations to about {_rounded_up(count):,}"


def _rounded_up(value: float) -> int:
    """To tens from ten on, to two digits from 100 on: more would claim to know them."""
    digits = len(str(math.ceil(value)))
    step = int(10 ** max(digits - 2, min(digits, 2) - 1))
    return math.ceil(value / step) * step
