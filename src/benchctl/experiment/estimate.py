"""The expected duration and precision of an experiment, from earlier runs on this machine.

How long a fork takes is known from forks of the same variant that did the same, else from those of the same
engine. Where there are none it is put together: so much for a fork and every node start, and for every
request what the same operation took on the engine in any challenge, scaled to the corpus. Where an operation
was never measured either, a rule has to do.
"""

import bisect
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, Literal

import msgspec

from benchctl.experiment.plan import Planned, Plans
from benchctl.experiment.record import (
    ComparisonSpec,
    Expectation,
    ExperimentSpec,
    Measurement,
    TaskRef,
    over_name,
    side_text,
)
from benchctl.quantities import COUNT
from benchctl.report.numbers import counted, duration, mebibytes, with_unit
from benchctl.report.table import Column, Table, text_lines
from benchctl.results.model import FORKS_FOR_VERDICT, RunRecord
from benchctl.results.plan import Plan, VariantSpec
from benchctl.run.forecast import (
    BOOT_S,
    FORK_S,
    REQUEST_S,
    REQUEST_S_PER_MILLION_DOCUMENTS,
    Indexing,
    rough_fork_s,
)
from benchctl.spec import Conditions, EvidenceEntry
from benchctl.stats.forecast import Rule, Spread, least_effect
from benchctl.stats.history import History, Noise, collect_history, kind_of
from benchctl.stats.inference import sd_of
from benchctl.stats.metrics import MetricKey, metric_of
from benchctl.stats.outlook import summed_noise

Basis = Literal["variant", "engine", "operations", "rule"]

_ASSUMED_CVS_PERCENT: Final = (5.0, 10.0, 15.0)
"""Fork CVs that stand in for unknown ones: most tasks' lie in between."""
MOST_RECORDS: Final = 200
"""Of earlier runs that are looked at: some milliseconds each."""


class ForkCost(msgspec.Struct, frozen=True):
    """The duration of a fork."""

    measurement: str
    variant: str
    seconds: float
    basis: Basis  # earlier forks of this variant, of its engine, its operations in other forks, or the rule
    forks: int
    extra: int = 0
    most: int = 0  # of those that count, if open expectations may get further ones; else as many as `forks`

    def forks_within(self, blocks: int) -> int:
        """Return how many are run if the experiment ends after so many blocks."""
        return min(blocks, self.forks) + self.extra


class Sight(msgspec.Struct, frozen=True):
    """The minimum difference that a comparison, or one comparison over another, will detect.

    It is that of Welch's test with as many independent forks a side, in every case: what tasks of the
    same forks have in common, and a test of pairs cancels, is unknown before they are run.
    """

    comparison: str  # its name; `ONE over OTHER` of an expectation about two of them
    metric: str
    least: float | None  # as a ratio - 1, found with 80% power; None if nothing is known about its forks
    similar: bool = False
    shared: bool = False


class Estimate(msgspec.Struct, frozen=True):
    """Expected duration and precision of an experiment."""

    planned: int  # blocks, as the experiment has them: forks of every variant, except where fewer are enough
    blocks: int  # expected to be run: fewer than planned if a budget ends it
    budget_s: float | None  # of the forks; None without one
    costs: tuple[ForkCost, ...]
    # Of every comparison, then of every one over another, with as many forks as blocks.
    sights: tuple[Sight, ...]
    assumed: tuple[tuple[float, float], ...]  # (CV in percent, least difference) for what is not known

    @property
    def block_s(self) -> float:
        """Of one fork of every variant of every measurement, seconds."""
        return sum(one.seconds for one in self.costs)

    @property
    def planned_forks(self) -> int:
        """Number of forks, including those for evidence."""
        return sum(one.forks_within(self.planned) for one in self.costs)

    @property
    def planned_s(self) -> float:
        """Of all of them, seconds."""
        return _seconds(self.costs, self.planned)

    @property
    def total_s(self) -> float:
        """Of all forks that are expected to be run, seconds, without preparation."""
        return _seconds(self.costs, self.blocks)

    @property
    def longest_s(self) -> float | None:
        """Of all forks that there may be until all is decided, seconds; None if it has no further ones."""
        if all(one.most <= one.forks for one in self.costs):
            return None
        return sum(one.seconds * (max(one.forks, one.most) + one.extra) for one in self.costs)

    @property
    def expected_s(self) -> float | None:
        """Duration; None if it rests on the rule alone."""
        return None if all(one.basis == "rule" for one in self.costs) else self.total_s

    @property
    def rough(self) -> tuple[ForkCost, ...]:
        """Rows without measured ones to compare with on this host."""
        return tuple(one for one in self.costs if one.basis in ("operations", "rule"))


def estimate(
    spec: ExperimentSpec,
    plans: Plans,
    records: Iterable[RunRecord],
    fingerprint: str,
    *,
    indexing: Indexing,
    budget_s: float | None = None,
) -> Estimate:
    """Estimate duration and precision of an experiment from earlier runs, newest first.

    `fingerprint` is of this host: runs of others do not count. `indexing` says how fast its engines index;
    `budget_s` is for the forks; None for as long as they take.
    """
    past = _Past(records, fingerprint, indexing)
    growing = spec.expected_sides if spec.until_decided else frozenset()
    costs = tuple(
        past.cost(name, planned, variant, spec.most_forks or 0 if f"{name}/{variant.name}" in growing else 0)
        for name, planned in plans.items()
        if planned.plan.schedules
        for variant in planned.plan.variants
    )
    planned = max((one.forks for one in costs), default=0)
    blocks = planned if budget_s is None else _blocks_within(costs, planned, budget_s)
    return Estimate(
        planned=planned,
        blocks=blocks,
        budget_s=budget_s,
        costs=costs,
        sights=tuple(past.sight(name, rows, plans, blocks) for name, rows in _seen(spec)),
        assumed=tuple((cv, _least(blocks, Spread(sd_of(cv / 100), math.inf))) for cv in _ASSUMED_CVS_PERCENT),
    )


def _seen(spec: ExperimentSpec) -> Iterator[tuple[str, tuple[ComparisonSpec, ...]]]:
    """Yield (name, comparisons that it is made of) of all ratios of single tasks that are looked for."""
    told = (row for row in spec.comparisons if row.compared_as == "ratio" and row.refs[0].task)
    rows = {row.name: row for row in told}
    yield from ((name, (row,)) for name, row in rows.items())
    for one in spec.expectations:
        if one.than in rows and one.comparisons:
            first = one.comparisons[0]
            yield over_name(first, one.than), (rows[first], rows[one.than])


def _blocks_within(costs: Sequence[ForkCost], planned: int, budget_s: float) -> int:
    """Return as many blocks as fit; the first is run whatever it takes."""
    fitting = bisect.bisect_right(range(1, planned + 1), budget_s, key=lambda blocks: _seconds(costs, blocks))
    return max(1, fitting)


def _seconds(costs: Iterable[ForkCost], blocks: int) -> float:
    return sum(one.seconds * one.forks_within(blocks) for one in costs)


class _Past:
    """Earlier runs on this machine, by variants of plans."""

    def __init__(self, records: Iterable[RunRecord], fingerprint: str, indexing: Indexing) -> None:
        self._indexing = indexing
        self._records = [record for record in records if record.environment.fingerprint == fingerprint]
        self._fingerprint = fingerprint
        self._requests = _Requests(self._records)
        self._known: dict[str, History] = {}

    def cost(self, measurement: str, planned: Planned, variant: VariantSpec, most: int) -> ForkCost:
        plan = planned.plan
        history = self._history(measurement, plan)
        known = history.fork_time_s(variant)
        seconds: float
        basis: Basis
        if known is None:
            seconds, basis = self._requests.fork(planned, variant, self._indexing)
        else:
            seconds, basis = known, "variant" if kind_of(variant) in history.fork_s else "engine"
        extra = 0 if plan.evidence is None else plan.evidence.extra_forks
        return ForkCost(measurement, variant.name, seconds, basis, plan.forks, extra, most)

    def sight(self, name: str, rows: Sequence[ComparisonSpec], plans: Plans, forks: int) -> Sight:
        metric = rows[0].metric
        refs = [ref for row in rows for ref in row.refs]
        shared = len({(ref.measurement, ref.variant) for ref in refs}) < len(refs)
        noises = [self._noise(ref, metric, plans) for ref in refs]
        known = [one for one in noises if one is not None]
        if len(known) < len(noises):
            return Sight(name, metric, None, shared=shared)
        # The variances of all sides add up; a test of two sides has half of that on each.
        spread = Spread(*summed_noise(known, 0.5)).of_coming_run
        similar = any(noise.match == "similar" for noise in known)
        sides = (plans[ref.measurement].plan.forks for ref in refs)
        return Sight(name, metric, _least(min(forks, *sides), spread), similar, shared)

    def _noise(self, ref: TaskRef, metric: MetricKey, plans: Plans) -> Noise | None:
        plan = plans[ref.measurement].plan
        place = ref.place_in(plan)
        (variant,) = (spec for spec in plan.variants if spec.name == ref.variant)
        return self._history(ref.measurement, plan).noise(place, metric_of(metric), variant)

    def _history(self, measurement: str, plan: Plan) -> History:
        if measurement not in self._known:
            # Without a challenge in common, neither plan predicts the other.
            names = {challenge.name for challenge in plan.schedules}
            related = (
                record
                for record in self._records
                if record.plan.track == plan.track
                and any(challenge.name in names for challenge in record.plan.schedules)
            )
            self._known[measurement] = collect_history(related, plan, self._fingerprint)
        return self._known[measurement]


class _Requests:
    """Duration of requests by engine and operation in runs on this machine, whatever else the forks did."""

    def __init__(self, records: Iterable[RunRecord]) -> None:
        found: dict[tuple[str, str], list[float]] = {}
        for record in records:
            millions = record.plan.corpus.documents / 1e6
            engines = {spec.name: spec.engine for spec in record.plan.variants}
            for fork in record.forks if millions else ():
                for one in fork.summaries:
                    if one.mean_ns and fork.variant in engines:
                        key = (engines[fork.variant], one.operation)
                        found.setdefault(key, []).append(one.mean_ns / 1e9 / millions)
        self._per_million = {key: statistics.median(values) for key, values in found.items()}

    def fork(self, planned: Planned, variant: VariantSpec, indexing: Indexing) -> tuple[float, Basis]:
        """Return the seconds of a fork, and the basis of the estimate."""
        millions = planned.plan.of(variant).corpus.documents / 1e6
        unknown = False

        def request_s(operation: str) -> float:
            nonlocal unknown
            known = self._per_million.get((variant.engine, operation))
            unknown |= known is None
            return max(REQUEST_S, millions * (known or REQUEST_S_PER_MILLION_DOCUMENTS))

        seconds = rough_fork_s(planned.plan, planned.track, variant, indexing, request_s)
        return seconds, "rule" if unknown else "operations"


def _least(forks: int, spread: Spread) -> float:
    """Return the minimum difference that two sides of so many forks show, as a ratio - 1."""
    return math.expm1(least_effect(spread, Rule(0.0, paired=False), forks))


# An experiment and its estimate as tables and sentences.


_MOST_NAMED = 6
_MARK_SIMILAR = "*"
_MARK_SHARED = "+"
_BASES = {
    "variant": "earlier forks",
    "engine": "earlier forks of the engine",
    "operations": "rough: its operations",
    "rule": "rough: a rule",
}


def overview_lines(spec: ExperimentSpec) -> Iterator[str]:
    """Return subject and size, in paragraphs."""
    yield f"{spec.name}: {spec.title}"
    for text in (spec.about, spec.source and f"Source: {spec.source}"):
        yield from filter(None, text.splitlines())
    params = "".join(f", {name}={value}" for name, value in spec.params.items())
    docs = "all" if spec.docs is None else COUNT.text(spec.docs)
    yield (
        f"Size: {counted(spec.forks, 'fork')} of every variant, {docs} documents of track "
        f"{spec.track}, heap {mebibytes(spec.heap_mb * 2**20)}, seed {spec.seed}{params}"
    )


def content_listings(spec: ExperimentSpec) -> Iterator[Table]:
    """Return its variants, measurements, comparisons, call sites and expectations; no empty ones."""
    variants = [(one.name, variant_text(one)) for one in spec.variants]
    yield Table.listed("Variants", ("variant", "what it is"), variants)
    yield Table.listed(
        "Measurements: runs, interleaved",
        ("measurement", "variants", "does", "about"),
        [(one.name, list(one.variants), _does(spec, one), one.about or None) for one in spec.measurements],
    )
    if spec.tables:
        compared = [
            (
                one.name,
                one.metric if one.compared_as == "ratio" else f"{one.metric}, {one.compared_as}",
                side_text(one.sides[0]),
                side_text(one.sides[1]),
            )
            for one in spec.comparisons
        ]
        yield Table.listed("Comparisons", ("comparison", "metric", "baseline", "contender"), compared)
    if spec.call_sites:
        yield Table.listed(
            "Call sites: looked up in inlining logs",
            ("call site", "measurement", "variants", "call"),
            [
                (one.name, one.measurement, list(one.variants), f"{one.callee} in {one.method}")
                for one in spec.call_sites
            ],
        )
    if spec.expectations:
        rows = [(one.statement, _holds(one)) for one in spec.expectations]
        yield Table.listed("Expectations", ("expectation", "holds when"), rows)


def variant_text(spec: VariantSpec) -> str:
    """Return a variant in a line: `opensearch 2.11.0, JDK 17, JVM -XX:-Inline`."""
    parts = [
        f"{spec.engine} {spec.version}".rstrip(),
        spec.distribution and f"distribution {spec.distribution}",
        spec.jdk and f"JDK {spec.jdk}",
        spec.heap_mb and f"heap {mebibytes(spec.heap_mb * 2**20)}",
        *(f"JVM {flag}" for flag in spec.jvm_flags),
        *(f"setting {name}={value}" for name, value in spec.settings.items()),
        *(f"index setting {name}={value}" for name, value in spec.index_settings.items()),
        *(f"environment {name}={value}" for name, value in spec.environment.items()),
        *(f"jar {one}" for one in spec.jars),
        *(f"plug-in {one}" for one in spec.plugins),
        *(f"warm-up {one}" for one in spec.warmups),
        spec.start == "script" and "started by script",
        spec.index_from and f"index by {spec.index_from}",
    ]
    return ", ".join(part for part in parts if part)


def cost_lines(found: Estimate) -> Iterator[str]:
    """Return the duration and its basis."""
    if not found.costs:
        yield "no forks: what counts is how indices are built"
        return
    measurements = len({one.measurement for one in found.costs})
    yield (
        f"{counted(measurements, 'measurement')}, {counted(found.planned_forks, 'fork')}: {_each(found)} of "
        f"their {counted(len(found.costs), 'side')}, block after block"
    )
    rough = ", roughly" if found.rough else ""
    yield (
        f"expected{rough}: {duration(found.block_s)} a block, {duration(found.planned_s)} for "
        "all forks; engines, corpus and indices that are missing are prepared before that"
    )
    if found.longest_s is not None:
        most = max(one.most for one in found.costs)
        yield (
            f"until decided: what is open then gets further forks, up to {most} of a side, which may take "
            f"{duration(found.longest_s)} in all; --budget and --forks bound it"
        )
    if found.budget_s is not None:
        yield _budget_text(found)
    if found.rough:
        names = _named([f"{one.measurement}/{one.variant}" for one in found.rough])
        yield (
            f"rough, because no earlier run on this machine did the same: {names}; put together from "
            f"{FORK_S:g} s a fork, {BOOT_S:g} s a node start, and what the same operations took elsewhere"
        )
    if any(one.basis == "rule" for one in found.costs):
        yield (
            f"where an operation was never measured here, {1000 * REQUEST_S_PER_MILLION_DOCUMENTS:g} ms a "
            "request and million documents are assumed"
        )


def estimate_lines(found: Estimate) -> Iterator[str]:
    """Yield an estimate for whoever watches the run begin; of unknowns, only the number."""
    yield from cost_lines(found)
    known = [one for one in found.sights if _is_known(one)]
    if known:
        listing = sight_listing(msgspec.structs.replace(found, sights=tuple(known)))
        yield from (line.plain for line in text_lines(listing))
        if len(known) < len(found.sights):
            yield f"{counted(len(found.sights) - len(known), 'other')}: unknown"
    yield from sight_lines(found)


def cost_listing(found: Estimate) -> Table:
    """Return what forks of each variant cost, as a table."""

    def row(one: ForkCost) -> tuple[str, str, str, str]:
        return one.measurement, one.variant, f"{one.seconds:.1f} s", _BASES[one.basis]

    columns = ("measurement", "variant", Column("a fork"), "known from")
    return Table.listed("Time", columns, tuple(map(row, found.costs)))


def sight_listing(found: Estimate) -> Table:
    """Return the minimum difference that every comparison will detect."""
    rows = [
        (one.comparison, metric_of(one.metric).title, _least_text(one.least), _marks(one))
        for one in found.sights
    ]
    return Table.listed("Precision", ("comparison", "metric", Column("sees from"), ""), rows)


def sight_lines(found: Estimate) -> Iterator[str]:
    """Return how to read the minimum differences, and what to make of unknown ones."""
    if not found.sights:
        return
    if found.blocks < FORKS_FOR_VERDICT:
        yield (
            f"{counted(found.blocks, 'fork')} a side: verdicts take {FORKS_FOR_VERDICT}, so that nothing "
            "will be confirmed or refuted"
        )
    if any(_is_known(one) for one in found.sights):
        yield f"sees from: what four of five such experiments would find with {found.blocks} forks a side"
    if any(_MARK_SIMILAR in _marks(one) for one in found.sights):
        yield f"{_MARK_SIMILAR}: from forks of other sizes, settings or variants of the engine"
    if any(_MARK_SHARED in _marks(one) for one in found.sights):
        yield (
            f"{_MARK_SHARED}: tasks of the same forks are compared as pairs, which shows smaller differences "
            "where slow forks are slow at both; how much smaller is not known before"
        )
    if any(one.least is None for one in found.sights):
        assumed = ", ".join(f"{_least_text(least)} at a CV of {cv:g}%" for cv, least in found.assumed)
        every = all(one.least is None for one in found.sights)
        which = f"what {counted(len(found.sights), 'comparison')} will see is " if every else ""
        yield (
            f"{which}unknown: no earlier run has both sides; with {counted(found.blocks, 'fork')} a side it "
            f"depends on how much forks differ: {assumed}"
        )


def _marks(one: Sight) -> str:
    if one.least is None:
        return ""
    return f"{_MARK_SIMILAR if one.similar else ''}{_MARK_SHARED if one.shared else ''}"


def _each(found: Estimate) -> str:
    """Return `8 of each`, `up to 8 of each` or `8 of each and 2 for evidence alone`."""
    fewer = "up to " if any(one.forks < found.planned for one in found.costs) else ""
    extra = sum(one.extra for one in found.costs)
    return f"{fewer}{found.planned} of each{f' and {extra} for evidence alone' if extra else ''}"


def _budget_text(found: Estimate) -> str:
    within = f"--budget {duration(found.budget_s or 0)}"
    if found.blocks < found.planned:
        return f"{within} will end it after about {found.blocks} of {found.planned} blocks"
    which = "the first" if found.longest_s is not None else "all"
    return f"{within} is expected to be enough for {which} {found.planned} blocks"


def _does(spec: ExperimentSpec, one: Measurement) -> str:
    warmups = one.warmup_challenges and f"after {', '.join(map(_short, one.warmup_challenges))}"
    parts = [
        ", ".join(map(_short, one.challenges)),
        warmups,
        *(f"{name}={value}" for name, value in one.params.items()),
        *(
            f"{each.encode_name} {_written(getattr(one, each.name))}"
            for each in sorted(msgspec.structs.fields(Conditions), key=attrgetter("name"))
            if getattr(one, each.name) != getattr(spec, each.name)
        ),
        one.redline and f"red-line of {one.redline.operation}",
        one.ingest and "index builds",
        one.micro is not None and f"microbenchmarks of {_short(one.micro.source)}",
        one.forks and counted(one.forks, "fork"),
        one.evidence and _evidence(one.evidence),
    ]
    return "; ".join(part for part in parts if part)


def _written(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _evidence(evidence: EvidenceEntry) -> str:
    forks = "all forks" if evidence.forks == "all" else counted(evidence.forks, "further fork")
    return f"evidence {', '.join(dict.fromkeys(evidence.kinds))} in {forks}"


def _short(challenge: str) -> str:
    return challenge.rpartition("/")[2].removesuffix(".json")


def _holds(one: Expectation) -> str:
    if one.fate is not None:
        return f"{one.fate.call_site}: {one.fate.is_} in {one.fate.variant}"
    than = f" by more than {one.than}" if one.than and one.is_ != "alike" else ""
    than = f" as {one.than}" if one.than and one.is_ == "alike" else than
    margin, unit = one.tolerance
    return f"{', '.join(one.comparisons or ())}: {one.is_}{than} (margin {with_unit(f'{margin:g}', unit)})"


def _is_known(one: Sight) -> bool:
    return one.least is not None and math.isfinite(one.least)


def _least_text(ratio: float | None) -> str:
    if ratio is None or not math.isfinite(ratio):
        return "unknown"
    return f"{100 * ratio:.1f}%" if ratio < 0.1 else f"{100 * ratio:,.0f}%"  # noqa: PLR2004 - two digits


def _named(names: list[str]) -> str:
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMED - 1])} and {len(names) - _MOST_NAMED + 1} others"
