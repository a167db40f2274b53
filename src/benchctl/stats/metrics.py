"""Metrics as variants are compared by them: names, quantiles, and the number that each fork contributes."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final

import msgspec

from benchctl.errors import UsageError, guess
from benchctl.results.figures import DOCUMENTS, Quantiles, TaskSummary
from benchctl.results.metrics import METRIC_KINDS, MetricKind
from benchctl.results.model import ForkRecord, IndexFacts
from benchctl.results.plan import Place, Plan, Swept
from benchctl.spec import COMPARED_AS, ComparedAs
from benchctl.stats.caveat import Caveat
from benchctl.track.model import Challenge, Task, TrackOperation
from benchctl.track.operations import Operation
from benchctl.track.operations.search import VectorSearch

_KINDS: Final = {kind.name: kind for kind in METRIC_KINDS}
# What engines take as the name of an aggregation, in one line, without spaces around it.
_PART = r"[^\[\]>\s](?:[^\[\]>\r\n]*[^\[\]>\s])?"
_PLAIN = "|".join(
    rf"{name}(?:\.{_PART})?" if kind.parted else name for name, kind in _KINDS.items() if not kind.quantiles
)
_TIMES = "|".join(name for name, kind in _KINDS.items() if kind.quantiles)
_KEY = re.compile(rf"(?P<plain>{_PLAIN})|(?P<time>{_TIMES})_p(?P<percentile>[0-9]+(?:\.[0-9]+)?)")

_OF_QUANTILE = re.compile(rf"(?:(?P<time>{_TIMES})_)?p(?P<percentile>[0-9]+(?:\.[0-9]+)?)")

MetricKey = Annotated[str, msgspec.Meta(pattern=rf"^({_PLAIN}|({_TIMES})_p[0-9]+(\.[0-9]+)?)$")]
"""A metric's machine name: `throughput`, `redline`, or a time and its percentile such as `latency_p99.9`."""

_PROFILED = re.compile(rb'"profile(-query)?":true')
_NS_PER_MS = 1e6
_USUAL_QUANTILE = 0.9

SUMMARISED = (0.5, 0.9, 0.99)
"""The quantiles that every fork's summary holds."""

QUALITY: Final = frozenset(kind.name for kind in METRIC_KINDS if kind.quality)
"""Metrics of how good results are, not of speed."""

# Quantiles that differ by less are the same: 0.9 has no exact form in binary.
_DIGITS = 12


class Metric(msgspec.Struct, frozen=True):
    """Metric of a comparison: a declared kind, or a quantile of one."""

    kind: MetricKind
    unit: str
    margin: float  # relative difference that does not matter in practice
    quantile: float | None = None  # of times, between 0 and 1; None for others
    compared_as: ComparedAs = "ratio"
    # Whether a value of a row is 0, as of times in whole milliseconds, which has no logarithm.
    zeros: bool = False

    def __post_init__(self) -> None:
        """Compare qualities by differences, whatever is asked for."""
        if self.kind.quality:
            msgspec.structs.force_setattr(self, "compared_as", "difference")

    @property
    def key(self) -> MetricKey:
        """Machine name."""
        name = self.kind.name
        return name if self.quantile is None else f"{name}_{percentile(self.quantile)}"

    @property
    def title(self) -> str:
        """Title in tables."""
        title = self.kind.title
        return title if self.quantile is None else f"{percentile(self.quantile)} {title}"

    @property
    def higher_is_better(self) -> bool:
        """Direction that is faster."""
        return self.kind.higher_is_better

    @property
    def additive(self) -> bool:
        """True if means over forks are arithmetic."""
        return self.kind.additive or self.compared_as != "ratio" or self.zeros

    @property
    def samples_least(self) -> int:
        """Requests of a fork below which the value is that of the slowest (or fastest) one; 0 for others."""
        if self.quantile is None:
            return 0
        return math.ceil(round(1 / min(self.quantile, 1 - self.quantile), _DIGITS - 4))

    def counting(self, unit: str) -> "Metric":
        """Return the metric for tasks whose throughput counts something else, such as documents."""
        if self.kind.counts:
            return msgspec.structs.replace(self, unit=f"{unit}/s")
        costs = self.kind.by_documents and unit == DOCUMENTS
        return msgspec.structs.replace(self, unit=f"{self.unit}/1k docs") if costs else self

    def meeting(self, found: Iterable["ForkSummaries"]) -> "Metric":
        """Return the metric for a row of these forks, whose values may be 0 where they usually are not."""
        zeros = any(self.value(summary) == 0 for forks in found for _, summary in forks)
        return msgspec.structs.replace(self, zeros=True) if zeros else self

    def value(self, summary: TaskSummary) -> float | None:
        """Return one fork's value in `unit`; None when the fork has none."""
        found = self.kind.of(summary)
        if self.quantile is None or not isinstance(found, Quantiles):
            return None if isinstance(found, Quantiles) else found
        value_ns = found.at(self.quantile)
        value = 0.0 if value_ns is None else float(value_ns / _NS_PER_MS)
        # Of whole steps, the estimator leaves next to nothing where almost all are 0.
        return None if value_ns is None else value if value > self.kind.resolution / 2 else 0.0

    def log_error(self, summary: TaskSummary) -> float | None:
        """Return the standard error of ln(value) of a quantile within a fork; None where it is not known."""
        found = self.kind.of(summary)
        if self.quantile is None or not isinstance(found, Quantiles):
            return None
        return found.error_at(self.quantile)

    def lacking(self, task: Task, operation: TrackOperation | None = None) -> str:
        """Return why a task of a run of challenges never has a meaningful value; empty when it does."""
        loop, name, known = self.kind.loop, self.kind.name, isinstance(operation, Operation)
        truth = isinstance(operation, VectorSearch) and operation.has_truth
        asks = known and _PROFILED.search(msgspec.json.encode(operation))
        reasons = {
            f"the {self.title} is that of index builds": not self.kind.of_tasks,
            f"the task is throttled, and its {self.title} is what was asked for": loop == "closed"
            and task.throttled,
            f"the task is part of a mix, and its {self.title} depends on the others": loop == "closed"
            and task.mixed,
            "the task is not throttled, so its requests are never due": loop == "open" and not task.throttled,
            f"no measurement searches for a {self.title}": loop == "search",
            "no exact neighbours of vectors are known": known and self.kind.quality and not truth,
            "no search is profiled": known and name.startswith("profile_") and not asks,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")


def percentile(quantile: float) -> str:
    """Return a quantile as readers call it: 0.9 is `p90`, 0.999 is `p99.9`."""
    text = f"{round(100 * quantile, _DIGITS):.{_DIGITS}f}".rstrip("0").rstrip(".")
    return f"p{text}"


def metric(name: str, quantile: float | None = None) -> Metric:
    """Return the metric of a kind, or of a part of one.

    `quantile`, for kinds that have some, is between 0 and 1, both excluded; None means p90.

    Raises:
        KeyError: If there is no such kind.
        ValueError: If there is no such quantile.
    """
    found = _kind(name)
    if not found.quantiles:
        return Metric(found, found.unit, found.margin)
    quantile = _USUAL_QUANTILE if quantile is None else quantile
    if not 0 < quantile < 1:
        raise ValueError(f"a quantile lies between 0 and 1, not at {quantile:g}")
    return Metric(found, found.unit, found.margin, quantile)


def _kind(name: str) -> MetricKind:
    whole, dot, part = name.partition(".")
    found = _KINDS[whole]
    if not dot:
        return found
    if not (found.parted and re.fullmatch(_PART, part)):
        raise KeyError(name)
    return msgspec.structs.replace(found, name=name, title=f"{found.title}, {part}")


def metric_of(key: MetricKey) -> Metric:
    """Return the metric that has this machine name.

    Raises:
        ValueError: If none has.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"unknown metric '{key}'")
    if match["plain"]:
        return metric(match["plain"])
    return metric(match["time"], round(float(match["percentile"]) / 100, _DIGITS))


def kept_metric_of(name: str) -> Metric:
    """The metric of this machine name, or the p90 of its kind, whose value a fork or index build keeps.

    Raises:
        ValueError: If there is none, it takes samples, or it has several values.
    """
    found = metric(name) if name in _KINDS else metric_of(name)
    if found.quantile not in (None, *SUMMARISED):
        kept = ", ".join(map(percentile, SUMMARISED))
        raise ValueError(f"forks do not store '{name}', only {kept}")
    return found


def used_by(kind: MetricKind) -> tuple[str, ...]:
    """Return what takes it as a metric; suites as `run`, but for what only index builds have."""
    return ("redline",) if kind.loop == "search" else ("run", "compare", "experiment")


METRIC_NAMES: Final = tuple(kind.name for kind in METRIC_KINDS if kind.loop != "search")
"""Metrics of challenges."""


HELD: Final = frozenset(kind.name for kind in METRIC_KINDS if kind.level == "index")
"""Metrics of size, not of speed."""


def metric_names(text: str) -> tuple[str, ...]:
    """Return comma-separated names of metrics, each once; none of an empty text.

    Raises:
        UsageError: If there is no such metric.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(","))) if text else ()
    for name in names:
        try:
            known = _kind(name)
        except KeyError:
            known = None
        if known is None or known.loop == "search":
            raise _no_metric(name)
    return names


def _no_metric(name: str) -> UsageError:
    if name in _KINDS and _KINDS[name].loop == "search":
        return UsageError(
            f"'{name}' is the result of a red-line search, not a metric of challenges",
            hint="remove it: redline runs are always compared by it",
        )
    if (match := _OF_QUANTILE.fullmatch(name)) is None:
        hint = guess(name, METRIC_NAMES) or "list metrics with: benchctl list metrics"
        return UsageError(f"unknown metric '{name}'", hint=hint)
    time, share = match["time"], f"--quantile {float(match['percentile']) / 100:g}"
    of = f"a percentile of the metric {time}" if time else "a percentile, not a metric"
    asked = f"--metric {time} {share}" if time else share
    return UsageError(f"'{name}' is {of}", hint=f"of stored runs: benchctl compare ... {asked}")


def check_told_by_clusters(names: Iterable[str]) -> None:
    """Refuse metrics that no running cluster can tell.

    Raises:
        UsageError: If one is among them.
    """
    for kind in map(_kind, names):
        if not kind.told_by_targets:
            raise UsageError(
                f"--metric {kind.name}: not available for running clusters (source: {kind.own_nodes})",
                hint="measure a --variant instead of a --target",
            )


def kept_keys(kind: MetricKind) -> list[MetricKey]:
    """Return the machine names of what is kept of a metric with every fork."""
    if not kind.of_tasks:
        return []
    if not kind.quantiles:
        return [kind.name]
    return [metric(kind.name, quantile).key for quantile in SUMMARISED]


# What a run of challenges is compared by unless something else is asked for.
DEFAULT_METRICS = tuple(metric(kind.name) for kind in METRIC_KINDS if kind.usual and not kind.built)
# What builds of an index are.
BUILD_METRICS = tuple(metric(kind.name) for kind in METRIC_KINDS if kind.usual and kind.built)


def metrics_in(plan: Plan, *, builds: bool = False) -> tuple[Metric, ...]:
    """Return what variants of a plan are compared by, in the order of tables.

    With `builds`, what index builds are, too, where there are several or nothing else.
    """
    built = BUILD_METRICS if builds and (plan.index_builds > 1 or not plan.schedules) else ()
    if plan.redline is not None:
        return (REDLINE, *built)
    usual = tuple(map(metric, metric_names(plan.metrics))) or (*DEFAULT_METRICS, *built)
    return tuple(msgspec.structs.replace(one, compared_as=COMPARED_AS[plan.diff]) for one in usual)


def metrics_of(plan: Plan, task: Task) -> tuple[Metric, ...]:
    """Return what judges a task: latency if its throughput is prescribed.

    Few tasks have a recall, which a plan does not tell: it counts only where it is asked for.
    """
    return tuple(
        metric
        for metric in metrics_in(plan)
        if plan.redline is not None
        or (not metric.lacking(task) and (plan.metrics or not metric.kind.quality))
    )


THROUGHPUT = metric("throughput")
RECALL = metric("recall")
REDLINE = metric("redline")


ForkSummaries = list[tuple[int, TaskSummary]]
"""(block, summary) of one task in every finished fork of a variant."""


def places(plan: Plan) -> list[Place]:
    """Return every task of the plan, in the order in which they ran."""
    return [
        (schedule, task)
        for schedule, challenge in enumerate(plan.schedules)
        for task in range(len(challenge.schedule))
    ]


def challenge_title(plan: Plan, schedule: int) -> str:
    """Return a challenge's name; of one that runs more than once, with its number."""
    names = [challenge.name for challenge in plan.schedules]
    name = names[schedule]
    if names.count(name) == 1:
        return name
    return f"{name} ({names[: schedule + 1].count(name)} of {names.count(name)})"


def task_at(plan: Plan, place: Place) -> Task:
    """Return the task at a place."""
    return plan.schedules[place[0]].schedule[place[1]]


def collect(done: Mapping[str, Sequence[ForkRecord]], place: Place, task: Task) -> dict[str, ForkSummaries]:
    """Return one task's summaries of finished forks, by label.

    Raises:
        UsageError: If another task was there.
    """
    return {
        label: [(fork.block, _summary(fork, label, place, task)) for fork in group]
        for label, group in done.items()
    }


INDEX_BUILDS: Final = "index builds"
"""Selected challenge."""
_BUILD: Final = "index build"
Builds = Mapping[str, Sequence[IndexFacts]]
"""Index builds by label."""


def builds_as_forks(
    plan: Plan, builds: Builds, runs: Mapping[str, Sequence[int]] = MappingProxyType({})
) -> tuple[Plan, dict[str, list[ForkRecord]]]:
    """Return the plan with index builds as its last challenge, and these by label, a fork and a block each.

    Where runs are the unit, `runs` has the number of each build's run.
    """
    place = len(plan.schedules)
    challenge = Challenge(INDEX_BUILDS, (Task(_BUILD),))
    # A sweep does not go on over them.
    swept = plan.swept and msgspec.structs.replace(
        plan.swept, schedules=(*plan.swept.schedules, Swept(INDEX_BUILDS))
    )
    made = msgspec.structs.replace(plan, schedules=(*plan.schedules, challenge), redline=None, swept=swept)
    return made, {
        label: [
            ForkRecord(
                label,
                number,
                (_build_summary(facts, place),),
                index_build=runs[label][number] if runs else number,
            )
            for number, facts in enumerate(group)
        ]
        for label, group in builds.items()
    }


def separate_builds(builds: Builds) -> dict[str, Sequence[IndexFacts]]:
    """Return those with builds of their own: variants that share one index do not differ in it."""
    found: dict[str, Sequence[IndexFacts]] = {}
    known: list[object] = []
    for label, group in builds.items():
        # As they were filled, whoever used them since.
        own = [(index.key, index.ingest, index.store_bytes, index.segments) for index in group]
        if group and not any(one in known for one in own):
            found[label] = group
        known += own
    return found


def shared_builds(builds: Builds) -> Iterator[Caveat]:
    """Yield why builds that were to be compared are not."""
    first, *others = [label for label, group in builds.items() if group] or [""]
    if left_out := [label for label in others if label not in separate_builds(builds)]:
        names = " and ".join((first, *left_out))
        yield Caveat("missing-values", f"{names} have the same index builds, which are not compared")


def pairs_of_builds(builds: Builds, *, in_turns: bool) -> tuple[bool, tuple[Caveat, ...]]:
    """Return if builds are pairs, and the warnings: a run makes its builds in turns, cached ones are not.

    `in_turns` says whether they are of one run.
    """
    cached = any(facts.cached for group in builds.values() for facts in group)
    alike = len({len(group) for group in builds.values()}) == 1
    text = "some index builds are from the cache, so the difference includes a drift of the host"
    doubts = (Caveat("builds", text),) if cached and len(builds) > 1 else ()
    return in_turns and alike and not cached, doubts


def _build_summary(facts: IndexFacts, place: int) -> TaskSummary:
    known = {
        kind.name: value
        for kind in METRIC_KINDS
        if kind.built and (value := facts.value_of(kind)) is not None
    }
    return TaskSummary(place, 0, _BUILD, _BUILD, samples=1, unit="builds", meters=known)


def unit_of(found: Iterable[ForkSummaries]) -> str:
    """Return what the throughput of a task counts, from the first fork of any side that measured it."""
    summaries = [summary for forks in found for _, summary in forks]
    measured = (
        summary.unit
        for summary in summaries
        if summary.samples or summary.failures or summary.throughput_per_s
    )
    return next(measured, summaries[0].unit if summaries else "queries")


def fork_values(metric: Metric, found: ForkSummaries) -> list[float]:
    """Return one value a fork, in the metric's unit; NaN where the fork has none."""
    values = [metric.value(summary) for _, summary in found]
    return [math.nan if value is None else value for value in values]


def _summary(fork: ForkRecord, label: str, place: Place, task: Task) -> TaskSummary:
    for summary in fork.summaries:
        if (summary.schedule, summary.task) == place:
            if summary.label != task.label:
                raise UsageError(
                    f"fork {fork.block} of '{label}' ran '{summary.label}' where the plan has '{task.label}'",
                    hint="compare runs of the same challenges",
                )
            return summary
    return TaskSummary(place[0], place[1], task.label, task.operation)


# Tasks that a node had run before a task, which are part of what is measured.

FRESH = "on a fresh node"
_MOST_NAMES = 4


def places_by_history(plan: Plan, places: Iterable[Place]) -> list[dict[str, Place]]:
    """Return the places of every operation that runs after different tasks, by what ran before them.

    Only places that offer the same load with nothing beside them are put together; the one after fewest
    tasks comes first. Of places after the same tasks, only the first is there.
    """
    groups: dict[object, list[Place]] = {}
    for place in places:
        task = task_at(plan, place)
        # In random order, what ran before differs from block to block.
        if task.group is None and not task.swept and plan.schedules[place[0]].order == "written":
            groups.setdefault((task.operation, task.clients, task.rate_per_s), []).append(place)
    return [histories for group in groups.values() if len(histories := _by_history(plan, group)) > 1]


def _by_history(plan: Plan, places: Iterable[Place]) -> dict[str, Place]:
    first: dict[tuple[str, ...], Place] = {}
    for place in sorted(places, key=lambda place: (len(ran_before(plan, place)), place)):
        first.setdefault(ran_before(plan, place), place)
    found: dict[str, Place] = {}
    for before, place in first.items():
        text = describe_before(before)
        # What is counted, and not named, may differ.
        found[f"{text} ({len(found) + 1})" if text in found else text] = place
    return found


def ran_before(plan: Plan, place: Place) -> tuple[str, ...]:
    """Names of the tasks that the node had run before a place; what runs beside it is not before it."""
    schedule, task = place
    history = plan.history(schedule)
    if history == "polluted":
        return (history,)
    before = [task.label for challenge in plan.warmup_challenges for task in challenge.schedule]
    if plan.restart == "task" or history == "fresh":
        return tuple(before)
    if plan.restart == "never":
        before += [task.label for challenge in plan.schedules[:schedule] for task in challenge.schedule]
    steps = plan.schedules[schedule].steps
    own = next(step for step in steps if task in step)
    earlier = [number for step in steps[: steps.index(own)] for number in step]
    return tuple(before + [plan.schedules[schedule].schedule[number].label for number in earlier])


def before_text(plan: Plan, place: Place) -> str:
    """Return what ran before a place, for readers; in random order, it differs from block to block."""
    alone = plan.restart == "task" or plan.history(place[0]) in {"fresh", "polluted"}
    mixed = plan.schedules[place[0]].order != "written" or task_at(plan, place).swept
    if not alone and (mixed or (plan.restart == "never" and plan.swept is not None)):
        return "in random order"
    return describe_before(ran_before(plan, place))


def describe_before(after: Sequence[str]) -> str:
    """Return what ran before, for readers: repetitions are counted, and of many only some are named."""
    if not after:
        return FRESH
    counts = {name: after.count(name) for name in after}
    words = [name if count == 1 else f"{name} x {count}" for name, count in counts.items()]
    listed = (
        words
        if len(words) <= _MOST_NAMES
        else [*words[: _MOST_NAMES - 1], f"{len(words) - _MOST_NAMES + 1} others"]
    )
    return "after " + ", ".join(listed)
