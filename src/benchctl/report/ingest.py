"""How variants compare in filling and keeping an index, where it was built several times."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchctl.report.numbers import counted, figure, interval, p_value, signed_percent
from benchctl.results.model import IndexFacts, RunRecord
from benchctl.stats.compare import VERDICT_WORDS, compare

_MARGIN = 0.05
_BYTES_PER_MB = 1e6
_LEAST_BUILDS = 2


class _Measure(NamedTuple):
    title: str
    of: Callable[[IndexFacts], float]
    higher_is_better: bool = False


_MEASURES = (
    _Measure("docs/s", lambda facts: facts.ingest.documents / facts.ingest.ingest_s, higher_is_better=True),
    _Measure("engine's indexing, s", lambda facts: facts.ingest.engine_indexing_s),
    _Measure("engine's refreshes, s", lambda facts: facts.ingest.engine_refresh_s),
    _Measure("engine's merges, s", lambda facts: facts.ingest.engine_merge_s),
    _Measure("engine's flushes, s", lambda facts: facts.ingest.engine_flush_s),
    _Measure("force-merge, s", lambda facts: facts.ingest.force_merge_s),
    _Measure("size, MB", lambda facts: facts.store_bytes / _BYTES_PER_MB),
)


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
    for measure in _MEASURES:
        for other in others:
            yield _compared(measure, first, filled[first], other, filled[other], paired=paired)
    if others:
        counts = ", ".join(f"{name} {counted(len(builds), 'build')}" for name, builds in filled.items())
        test = (
            "paired t over builds, which were made in turns"
            if paired
            else "Welch's t over builds, some from the cache: a drift of the host is in the difference"
        )
        yield f"{counts}; {test}; p not adjusted"


def _compared(
    measure: _Measure,
    first: str,
    left: Sequence[IndexFacts],
    other: str,
    right: Sequence[IndexFacts],
    *,
    paired: bool,
) -> str:
    """`docs/s: es 15,601, os 14,949: -4.2 % (-8.1 to +0.2), p 0.051, inconclusive`."""
    found = compare(
        [measure.of(facts) for facts in left],
        [measure.of(facts) for facts in right],
        higher_is_better=measure.higher_is_better,
        margin=_MARGIN,
        paired=paired,
        additive=True,  # an engine need not flush at all
    )
    text = f"{measure.title}: {first} {figure(found.baseline_value)}, {other} {figure(found.contender_value)}"
    if found.effect_percent is None:
        return text
    text += f": {signed_percent(found.effect_percent)} %"
    if found.p is None:
        return text
    reach = interval(found.low_percent, found.high_percent)
    return f"{text} ({reach}), p {p_value(found.p)}, {VERDICT_WORDS.get(found.verdict, found.verdict)}"
