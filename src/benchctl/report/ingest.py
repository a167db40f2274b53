"""How variants compare in filling and keeping an index, where it was built several times."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from benchctl.report.numbers import counted, figure, interval, p_value, signed_percent
from benchctl.results.figures import BUILD_FIGURES, Figure
from benchctl.results.model import IndexFacts, RunRecord
from benchctl.stats.compare import DECIDED, HELD_WORDS, VERDICT_WORDS, compare

_LEAST_BUILDS = 2
LEAST_SHARE = 0.01

_Values = Mapping[str, Sequence[float]]


def ingest_lines(record: RunRecord) -> Iterator[str]:
    """A line for every figure and contender, over index builds; none under two builds of two variants."""
    timed = {
        name: [facts for facts in builds if facts.ingest.ingest_s > 0]
        for name, builds in record.builds.items()
    }
    filled = {name: builds for name, builds in timed.items() if len(builds) >= _LEAST_BUILDS}
    first, *others = filled or [""]
    # Those of one run were made in turns; what the host did when cached ones were made is another matter.
    new = not any(facts.cached for builds in filled.values() for facts in builds)
    paired = new and len({len(builds) for builds in filled.values()}) == 1
    for measured in BUILD_FIGURES:
        for other in others:
            left, right = (_values(measured, filled[name]) for name in (first, other))
            for name in left:
                if name in right:
                    yield _compared(measured, name, first, left, other, right, paired=paired)
    if others:
        counts = ", ".join(f"{name} {counted(len(builds), 'build')}" for name, builds in filled.items())
        test = (
            "paired t over builds, which were made in turns"
            if paired
            else "Welch's t over builds, some from the cache: a drift of the host is in the difference"
        )
        yield f"{counts}; {test}; p not adjusted"


def _values(measured: Figure, builds: Sequence[IndexFacts]) -> _Values:
    """A value a build, by what it is of where the figure has several: those that all builds tell."""
    found = [attrgetter(measured.field)(facts) for facts in builds]
    named = [one if isinstance(one, dict) else {} if one is None else {"": one} for one in found]
    # Of the index: smaller files and fields are many, and decide nothing.
    least = LEAST_SHARE * max(facts.store_bytes for facts in builds) if measured.level == "index" else 0.0
    return {
        name: [one[name] / measured.per_unit for one in named]
        for name in named[0]
        if all(name in one for one in named) and not (name and max(one[name] for one in named) < least)
    }


def _compared(
    measured: Figure, name: str, first: str, left: _Values, other: str, right: _Values, *, paired: bool
) -> str:
    """`docs/s: es 15,601, os 14,949: -4.2 % (-8.1 to +0.2), p 0.051, inconclusive`."""
    found = compare(
        left[name],
        right[name],
        higher_is_better=measured.higher_is_better,
        margin=measured.margin,
        paired=paired,
        additive=measured.additive,
    )
    title = " ".join(filter(None, (measured.title, name)))
    unit = "" if measured.unit in {title, measured.title} else f", {measured.unit}"
    text = f"{title}{unit}: {first} {figure(found.baseline_value)}, {other} {figure(found.contender_value)}"
    if found.effect_percent is not None:
        text += f": {signed_percent(found.effect_percent)} %"
    if found.low_percent is not None:
        text += f" ({interval(found.low_percent, found.high_percent)})"
    if found.p is not None:
        text += f", p {p_value(found.p)}"
    words = HELD_WORDS if measured.level == "index" else VERDICT_WORDS
    if found.p is not None or found.verdict in DECIDED:
        return f"{text}, {words.get(found.verdict, found.verdict)}"
    return text if found.effect_percent is None else f"{text}, without a spread to test with"
