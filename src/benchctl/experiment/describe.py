"""An experiment and its estimate as tables and sentences, before anything is measured."""

import math
from collections.abc import Iterator
from operator import attrgetter

import msgspec

from benchctl.experiment.estimate import (
    BOOT_S,
    FORK_S,
    REQUEST_S_PER_MILLION_DOCUMENTS,
    Estimate,
    ForkCost,
    Sight,
)
from benchctl.report.listing import Listing, pieces
from benchctl.report.numbers import counted, documents, duration, mebibytes
from benchctl.results.experiment import Expectation, ExperimentSpec, FateExpectation, Measurement
from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.results.plan import EvidenceSpec, VariantSpec
from benchctl.stats.metrics import metric_of

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
    """What it is about and how large it is, in paragraphs."""
    yield f"{spec.name}: {spec.title}"
    for text in (spec.about, spec.source and f"Source: {spec.source}"):
        yield from filter(None, text.splitlines())
    params = "".join(f", {name}={value}" for name, value in spec.params.items())
    yield (
        f"Size: {counted(spec.forks, 'fork')} of every variant, {documents(spec.docs)} documents of track "
        f"{spec.track}, heap {mebibytes(spec.heap_mb * 2**20)}, seed {spec.seed}{params}"
    )


def content_listings(spec: ExperimentSpec) -> Iterator[Listing]:
    """Its variants, measurements, comparisons, call sites and expectations; no empty ones."""
    yield Listing(
        ("variant", "what it is"), [(one.name, variant_text(one)) for one in spec.variants], title="Variants"
    )
    yield Listing(
        ("measurement", "variants", "does", "about"),
        [(one.name, list(one.variants), _does(one), one.about or None) for one in spec.measurements],
        title="Measurements: runs, interleaved",
    )
    if spec.tables:
        yield Listing(
            ("comparison", "metric", "baseline", "contender"),
            [(one.name, one.metric, str(one.baseline), str(one.contender)) for one in spec.comparisons],
            title="Comparisons",
        )
    if spec.call_sites:
        yield Listing(
            ("call site", "measurement", "variants", "call"),
            [
                (one.name, one.measurement, list(one.variants), f"{one.callee} in {one.method}")
                for one in spec.call_sites
            ],
            title="Call sites: looked up in inlining logs",
        )
    if spec.expectations or spec.fates:
        both: list[Expectation | FateExpectation] = [*spec.expectations, *spec.fates]
        rows = [(one.statement, _holds(one)) for one in sorted(both, key=attrgetter("place"))]
        yield Listing(("expectation", "holds when"), rows, title="Expectations")


def variant_text(spec: VariantSpec) -> str:
    """A variant in a line: `opensearch 2.11.0, JDK 17, JVM -XX:-Inline`."""
    parts = [
        f"{spec.engine} {spec.version}",
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
    ]
    return ", ".join(part for part in parts if part)


def cost_lines(found: Estimate) -> Iterator[str]:
    """How long it will take, and what that rests on."""
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
    """An estimate in lines, for whoever watches the run begin: of what is unknown, the number is enough."""
    yield from cost_lines(found)
    known = [one for one in found.sights if _is_known(one)]
    if known:
        listing = sight_listing(msgspec.structs.replace(found, sights=tuple(known)))
        yield from (line.rstrip() for line in "".join(pieces(listing, "text")).splitlines())
        if len(known) < len(found.sights):
            yield f"{counted(len(found.sights) - len(known), 'other')}: unknown"
    yield from sight_lines(found)


def cost_listing(found: Estimate) -> Listing:
    """A fork of every variant."""

    def row(one: ForkCost) -> tuple[str, str, str, str]:
        return one.measurement, one.variant, f"{one.seconds:.1f} s", _BASES[one.basis]

    columns = ("measurement", "variant", "a fork", "known from")
    return Listing(columns, [row(one) for one in found.costs], frozenset({2}), title="Time")


def sight_listing(found: Estimate) -> Listing:
    """The least difference that every comparison is going to see."""
    rows = [
        (one.comparison, metric_of(one.metric).title, _least(one.least), _marks(one)) for one in found.sights
    ]
    return Listing(("comparison", "metric", "sees from", ""), rows, frozenset({2}), title="Precision")


def sight_lines(found: Estimate) -> Iterator[str]:
    """How to read the least differences, and what to make of those that are not known."""
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
        assumed = ", ".join(f"{_least(least)} at a CV of {cv:g} %" for cv, least in found.assumed)
        every = all(one.least is None for one in found.sights)
        which = f"what {counted(len(found.sights), 'comparison')} will see is " if every else ""
        yield (
            f"{which}unknown: no earlier run has both sides; with {counted(found.blocks, 'fork')} a side it "
            f"depends on how much forks differ: {assumed}"
        )


def _marks(one: Sight) -> str:
    """What is to be known of a least difference, where it is known."""
    if one.least is None:
        return ""
    return f"{_MARK_SIMILAR if one.similar else ''}{_MARK_SHARED if one.shared else ''}"


def _each(found: Estimate) -> str:
    """`8 of each`, `up to 8 of each`, `8 of each and 2 for evidence alone`."""
    fewer = "up to " if any(one.forks < found.planned for one in found.costs) else ""
    extra = sum(one.extra for one in found.costs)
    return f"{fewer}{found.planned} of each{f' and {extra} for evidence alone' if extra else ''}"


def _budget_text(found: Estimate) -> str:
    within = f"--budget {duration(found.budget_s or 0)}"
    if found.blocks < found.planned:
        return f"{within} will end it after about {found.blocks} of {found.planned} blocks"
    which = "the first" if found.longest_s is not None else "all"
    return f"{within} is expected to be enough for {which} {found.planned} blocks"


def _does(one: Measurement) -> str:
    """Challenges, and whatever is not as usual."""
    warmups = one.warmup_challenges and f"after {', '.join(map(_short, one.warmup_challenges))}"
    parts = [
        ", ".join(map(_short, one.challenges)),
        warmups,
        one.restart != "challenge" and f"restart {one.restart}",
        *(f"{name}={value}" for name, value in one.params.items()),
        one.include_tasks and f"only {one.include_tasks}",
        one.exclude_tasks and f"without {one.exclude_tasks}",
        one.forks and counted(one.forks, "fork"),
        one.evidence and _evidence(one.evidence),
    ]
    return "; ".join(part for part in parts if part)


def _evidence(evidence: EvidenceSpec) -> str:
    forks = counted(evidence.extra_forks, "further fork") if evidence.extra_forks else "all forks"
    return f"evidence {', '.join(evidence.kinds)} in {forks}"


def _short(challenge: str) -> str:
    return challenge.rpartition("/")[2].removesuffix(".json")


def _holds(one: Expectation | FateExpectation) -> str:
    if isinstance(one, FateExpectation):
        return f"{one.call_site}: {one.is_} in {one.variant}"
    than = f" by more than {one.than}" if one.than and one.is_ != "alike" else ""
    than = f" as {one.than}" if one.than and one.is_ == "alike" else than
    return f"{', '.join(one.comparisons)}: {one.is_}{than} (margin {100 * one.margin:g} %)"


def _is_known(one: Sight) -> bool:
    return one.least is not None and math.isfinite(one.least)


def _least(ratio: float | None) -> str:
    if ratio is None or not math.isfinite(ratio):
        return "unknown"
    return f"{100 * ratio:.1f} %" if ratio < 0.1 else f"{100 * ratio:,.0f} %"  # noqa: PLR2004 - two digits


def _named(names: list[str]) -> str:
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMED - 1])} and {len(names) - _MOST_NAMED + 1} others"
