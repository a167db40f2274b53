"""The expected duration and precision of an experiment, from earlier runs on this machine; its contents."""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec

from benchctl.experiment.plan import Plans
from benchctl.experiment.record import Expectation, ExperimentSpec, Measurement, side_text
from benchctl.quantities import COUNT
from benchctl.report.numbers import counted, duration, mebibytes, with_unit
from benchctl.report.planning import forecast_lines
from benchctl.report.table import Column, Table
from benchctl.results.likeness import beyond
from benchctl.run.forecast import Basis, Past
from benchctl.spec import Conditions, EvidenceEntry


class ForkCost(msgspec.Struct, frozen=True):
    """The duration of a fork."""

    measurement: str
    variant: str
    seconds: float
    basis: Basis
    forks: int
    extra: int = 0
    most: int = 0  # of those that count, if open expectations may get further ones; else as many as `forks`

    def forks_within(self, blocks: int) -> int:
        """Return how many are run if the experiment ends after so many blocks."""
        return min(blocks, self.forks) + self.extra


class Estimate(msgspec.Struct, frozen=True):
    """Expected duration and precision of an experiment."""

    planned: int  # blocks, as the experiment has them: forks of every variant, except where fewer are enough
    blocks: int  # expected to be run: fewer than planned if a budget ends it
    budget_s: float | None  # of the forks; None without one
    costs: tuple[ForkCost, ...]
    precision: tuple[str, ...]  # for readers: what each measurement will detect, as for a run of its own

    @property
    def block_s(self) -> float:
        """Of one fork of every variant of every measurement, seconds."""
        return sum(cost.seconds for cost in self.costs)

    @property
    def planned_forks(self) -> int:
        """Number of forks, including those for evidence."""
        return sum(cost.forks_within(self.planned) for cost in self.costs)

    @property
    def longest_s(self) -> float | None:
        """Of all forks that there may be until all is decided, seconds; None if it has no further ones."""
        if all(cost.most <= cost.forks for cost in self.costs):
            return None
        return sum(cost.seconds * (max(cost.forks, cost.most) + cost.extra) for cost in self.costs)

    @property
    def expected_s(self) -> float | None:
        """Of all forks that are expected to be run, without preparation; None if only a rule says so."""
        if all(cost.basis == "rule" for cost in self.costs):
            return None
        return _seconds(self.costs, self.blocks)

    @property
    def rough(self) -> tuple[ForkCost, ...]:
        """Rows without measured ones to compare with on this host."""
        return tuple(cost for cost in self.costs if cost.basis in ("operations", "rule"))


def estimate(spec: ExperimentSpec, plans: Plans, past: Past, budget_s: float | None = None) -> Estimate:
    """Estimate duration and precision of an experiment from earlier runs.

    `budget_s` is for the forks; None for as long as they take.
    """
    growing = spec.expected_sides if spec.until_decided else frozenset()
    costs: list[ForkCost] = []
    precision: list[str] = []
    for name, planned in plans.items():
        plan = planned.plan
        extra = 0 if plan.evidence is None else plan.evidence.extra_forks
        for variant in plan.variants if plan.schedules else ():
            seconds, basis = past.fork_s(plan, planned.track, variant)
            most = spec.most_forks or 0 if f"{name}/{variant.name}" in growing else 0
            costs.append(ForkCost(name, variant.name, seconds, basis, plan.forks, extra, most))
        if plan.schedules:
            lines = forecast_lines(past.history(plan), plan, past.block_s(plan, planned.track))
            precision += [f"{name}: {line.strip()}" for line in lines]
    planned_blocks = max((cost.forks for cost in costs), default=0)
    blocks = planned_blocks if budget_s is None else _blocks_within(costs, planned_blocks, budget_s)
    return Estimate(planned_blocks, blocks, budget_s, tuple(costs), tuple(precision))


def _blocks_within(costs: Sequence[ForkCost], planned: int, budget_s: float) -> int:
    """Return as many blocks as fit; the first is run whatever it takes."""
    fitting = bisect.bisect_right(range(1, planned + 1), budget_s, key=lambda blocks: _seconds(costs, blocks))
    return max(1, fitting)


def _seconds(costs: Iterable[ForkCost], blocks: int) -> float:
    return sum(cost.seconds * cost.forks_within(blocks) for cost in costs)


# An experiment and its estimate as tables and sentences.


_MOST_NAMED = 6
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
    variants = [
        (variant.name, ", ".join((f"{variant.engine} {variant.version}".strip(), *beyond(variant))))
        for variant in spec.variants
    ]
    yield Table.listed("Variants", ("variant", "what it is"), variants)
    yield Table.listed(
        "Measurements: runs, interleaved",
        ("measurement", "variants", "does", "about"),
        [
            (
                measurement.name,
                list(measurement.variants),
                _does(spec, measurement),
                measurement.about or None,
            )
            for measurement in spec.measurements
        ],
    )
    if spec.tables:
        compared = [
            (
                comparison.name,
                comparison.metric
                if comparison.compared_as == "ratio"
                else f"{comparison.metric}, {comparison.compared_as}",
                side_text(comparison.sides[0]),
                side_text(comparison.sides[1]),
            )
            for comparison in spec.comparisons
        ]
        yield Table.listed("Comparisons", ("comparison", "metric", "baseline", "contender"), compared)
    if spec.call_sites:
        yield Table.listed(
            "Call sites: looked up in inlining logs",
            ("call site", "measurement", "variants", "call"),
            [
                (
                    call_site.name,
                    call_site.measurement,
                    list(call_site.variants),
                    f"{call_site.callee} in {call_site.method}",
                )
                for call_site in spec.call_sites
            ],
        )
    if spec.expectations:
        rows = [(expectation.statement, _holds(expectation)) for expectation in spec.expectations]
        yield Table.listed("Expectations", ("expectation", "holds when"), rows)


def estimate_lines(found: Estimate) -> Iterator[str]:
    """Yield the duration, its basis, and what the measurements will detect."""
    if not found.costs:
        yield "no forks: what counts is how indices are built"
        return
    measurements = len({cost.measurement for cost in found.costs})
    fewer = "up to " if any(cost.forks < found.planned for cost in found.costs) else ""
    extra = sum(cost.extra for cost in found.costs)
    each = f"{fewer}{found.planned} of each{f' and {extra} for evidence alone' if extra else ''}"
    yield (
        f"{counted(measurements, 'measurement')}, {counted(found.planned_forks, 'fork')}: {each} of "
        f"their {counted(len(found.costs), 'side')}, block after block"
    )
    yield (
        f"expected{', roughly' if found.rough else ''}: {duration(found.block_s)} a block, "
        f"{duration(_seconds(found.costs, found.planned))} for all forks; engines, corpus and indices that "
        "are missing are prepared before that"
    )
    if found.longest_s is not None:
        most = max(cost.most for cost in found.costs)
        yield (
            f"until decided: inconclusive comparisons then get further forks, up to {most} per variant, "
            f"which may take {duration(found.longest_s)} in all; --budget and --forks bound it"
        )
    if found.budget_s is not None:
        within = f"--budget {duration(found.budget_s)}"
        ends = f"will end it after about {found.blocks} of {found.planned} blocks"
        which = "the first" if found.longest_s is not None else "all"
        enough = f"is expected to be enough for {which} {found.planned} blocks"
        yield f"{within} {ends if found.blocks < found.planned else enough}"
    if found.rough:
        names = _named([f"{cost.measurement}/{cost.variant}" for cost in found.rough])
        yield f"rough, because no earlier run on this machine did the same: {names}"
    yield from found.precision


def cost_listing(found: Estimate) -> Table:
    """Return what forks of each variant cost, as a table."""

    def row(one: ForkCost) -> tuple[str, str, str, str]:
        return one.measurement, one.variant, f"{one.seconds:.1f} s", _BASES[one.basis]

    columns = ("measurement", "variant", Column("a fork"), "known from")
    return Table.listed("Time", columns, tuple(map(row, found.costs)))


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


def _named(names: list[str]) -> str:
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMED - 1])} and {len(names) - _MOST_NAMED + 1} others"
