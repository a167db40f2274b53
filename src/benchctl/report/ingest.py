"""How variants compare in filling and keeping an index, where it was built several times."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchctl.report.numbers import counted, figure, interval, p_value, signed_percent
from benchctl.results.model import IndexFacts, IngestCosts, RunRecord
from benchctl.stats.compare import DECIDED, VERDICT_WORDS, compare

_MARGIN = 0.05
_BYTES_PER_MB = 1e6
_LEAST_BUILDS = 2


class _Measure(NamedTuple):
    title: str
    of: Callable[[IndexFacts], float | None]
    higher_is_better: bool = False


def _costs(of: Callable[[IngestCosts], float]) -> Callable[[IndexFacts], float | None]:
    return lambda facts: None if facts.ingest.costs is None else of(facts.ingest.costs)


def _cpu(*kinds: str) -> Callable[[IndexFacts], float | None]:
    """Milliseconds of 1,000 documents, by these kinds of threads; of the whole node without any."""

    def of(facts: IndexFacts) -> float | None:
        used = {} if facts.ingest.costs is None else facts.ingest.costs.cpu_s
        seconds = sum(used.get(kind, 0.0) for kind in kinds or used)
        return seconds * 1e6 / facts.ingest.documents if used and facts.ingest.documents else None

    return of


_MEASURES = (
    _Measure("docs/s", lambda facts: facts.ingest.documents / facts.ingest.ingest_s, higher_is_better=True),
    _Measure(
        "MB/s",
        lambda facts: facts.ingest.body_bytes / _BYTES_PER_MB / facts.ingest.ingest_s,
        higher_is_better=True,
    ),
    _Measure("sum of took, s", _costs(lambda costs: costs.took_s)),
    _Measure("client's time beyond took, s", _costs(lambda costs: max(costs.answered_s - costs.took_s, 0.0))),
    _Measure("CPU, ms/1k docs", _cpu()),
    _Measure("CPU of write threads, ms/1k docs", _cpu("write")),
    _Measure("CPU of the collector, ms/1k docs", _cpu("collector")),
    _Measure("CPU of compilers, ms/1k docs", _cpu("compilers")),
    _Measure("CPU of other threads, ms/1k docs", _cpu("search", "other")),
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
            sides = [[measure.of(facts) for facts in filled[name]] for name in (first, other)]
            if all(any(value is not None for value in side) for side in sides):
                yield _compared(measure, first, other, *sides, paired=paired)
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
    other: str,
    left: Sequence[float | None],
    right: Sequence[float | None],
    *,
    paired: bool,
) -> str:
    """`docs/s: es 15,601, os 14,949: -4.2 % (-8.1 to +0.2), p 0.051, inconclusive`."""
    found = compare(
        *([math.nan if value is None else value for value in side] for side in (left, right)),
        higher_is_better=measure.higher_is_better,
        margin=_MARGIN,
        paired=paired,
        additive=True,  # an engine need not flush at all
    )
    text = f"{measure.title}: {first} {figure(found.baseline_value)}, {other} {figure(found.contender_value)}"
    if found.effect_percent is not None:
        text += f": {signed_percent(found.effect_percent)} %"
    if found.low_percent is not None:
        text += f" ({interval(found.low_percent, found.high_percent)})"
    if found.p is not None:
        text += f", p {p_value(found.p)}"
    judged = found.p is not None or found.verdict in DECIDED
    return f"{text}, {VERDICT_WORDS.get(found.verdict, found.verdict)}" if judged else text
