"""Decisions on what was found: has anything become slower, and has a run seen enough?"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from benchctl.results.plan import StopSpec
from benchctl.stats.analysis import Analysis, Row, reservations
from benchctl.stats.anytime import FIRST_LOOK
from benchctl.stats.caveat import WITHOUT_VERDICT
from benchctl.stats.compare import DECIDED, VERDICT_WORDS, Comparison
from benchctl.stats.forecast import Forecast
from benchctl.stats.metrics import metric_of
from benchctl.stats.outlook import family_weight, further_forks

Outcome = Literal["pass", "regression", "inconclusive"]
RowOutcome = Literal["regression", "open", "kept"]


class GateResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the gate says."""

    outcome: Outcome  # `pass` means that every comparison could have shown a regression, and none did
    # Sentences without a final full stop, regressions first; for a pass, what was found instead. At the
    # end, which rows were left out, and how results differ that were compared by force.
    reasons: tuple[str, ...]
    forced: bool = False  # unlike results were compared by force: then the outcome is not the engines' alone

    @property
    def text(self) -> str:
        """The outcome in words."""
        return f"{self.outcome}, of unlike results compared by force" if self.forced else self.outcome


def gate(analysis: Analysis) -> GateResult:
    """Decide from all contenders, tasks and metrics at once.

    A regression is a comparison whose verdict is `slower`, with Holm's p over everything that the gate looks
    at, so that it raises a false alarm in at most 5 % of all decisions. Anything that leaves a regression
    possible is inconclusive: no verdict, a provisional one, `different` where it is not faster, results that
    differ, forks or requests that failed, and a run that has not ended. A gate never passes for want of data,
    and decides nothing by a trial.

    The throughput of a throttled task is what was offered: its latency stands for it, and where that was not
    compared, a reason says what was left out.

    Raises:
        ValueError: If the analysis was not made with `method="holm"`.
    """
    if analysis.method != "holm":
        raise ValueError(f"a gate needs Holm's adjustment, not {analysis.method}")
    regressions: list[str] = []
    undecided = [doubt.text for doubt in analysis.caveats if doubt.code in {"test-mode", "few-runs"}]
    unlike = [doubt.text for doubt in analysis.caveats if doubt.code == "unlike"]
    if undecided:
        return GateResult("inconclusive", (*undecided, *unlike), bool(unlike))
    doubts = [doubt.text for doubt in analysis.caveats if doubt.code in {"failed-forks", "unfinished"}]
    counts: Counter[str] = Counter()
    for row, comparison, outcome, reason in outcomes(analysis):
        if outcome == "kept":
            counts[comparison.verdict] += 1
        else:
            told = regressions if outcome == "regression" else doubts
            told.append(f"{_name(analysis, row, comparison)}: {reason}")
    notes = (*_left_out(analysis), *unlike)
    if regressions:
        return GateResult("regression", (*regressions, *doubts, *notes), bool(unlike))
    if doubts or not counts:
        found = tuple(doubts) or ("there is nothing to judge",)
        return GateResult("inconclusive", (*found, *notes), bool(unlike))
    return GateResult("pass", (_summary(counts), *notes), bool(unlike))


def outcomes(analysis: Analysis) -> Iterator[tuple[Row, Comparison, RowOutcome, str]]:
    """Yield every comparison that a gate looks at, what it is to the gate, and why, unless speed is kept."""
    for row, comparison in _looked_at(analysis):
        unsound = [doubt.text for doubt in row.caveats if doubt.code in _UNSOUND]
        if comparison.provisional:
            yield row, comparison, "open", _provisional_text(row, comparison)
        elif comparison.verdict == "slower":
            yield row, comparison, "regression", f"{comparison.verdict}{_size(comparison)}"
        elif _unclear(comparison):
            yield row, comparison, "open", _unclear_text(row, comparison)
        elif unsound:
            yield row, comparison, "open", "; ".join(unsound)
        else:
            yield row, comparison, "kept", ""


def _left_out(analysis: Analysis) -> Iterator[str]:
    judged = {(row.schedule, row.task) for row in analysis.rows if row.metric.startswith("latency")}
    rows = [row for row in analysis.rows if _offered(row) and (row.schedule, row.task) not in judged]
    if rows:
        names = ", ".join(dict.fromkeys(analysis.where(row) for row in rows))
        yield (
            f"left out: the throughput of {names}, which is the offered rate; the latency that would stand "
            "for it was not compared"
        )


def _looked_at(analysis: Analysis) -> Iterator[tuple[Row, Comparison]]:
    for row in analysis.rows:
        if _offered(row):
            continue
        for comparison in row.comparisons:
            yield row, comparison


def _offered(row: Row) -> bool:
    return any(doubt.code == "offered-rate" for doubt in row.caveats)


def _unclear(comparison: Comparison) -> bool:
    if comparison.verdict == "different":
        return comparison.direction != "faster"
    return comparison.verdict not in ("equivalent", "faster")


def _provisional_text(row: Row, comparison: Comparison) -> str:
    word = VERDICT_WORDS.get(comparison.verdict, comparison.verdict)
    reasons = ", ".join(reservations(comparison, row.figures))
    return f"{word}{_size(comparison)}; provisional: {reasons}"


def _unclear_text(row: Row, comparison: Comparison) -> str:
    if comparison.verdict == "different":
        return f"slower by an unclear amount{_size(comparison)}"
    if comparison.verdict == "inconclusive":
        found = comparison.mde_percent
        sees = "" if found is None else f"; minimum detectable effect {found:.1f} %"
        return f"inconclusive{_size(comparison)}{sees}"
    own = [doubt.text for doubt in comparison.caveats if doubt.code in WITHOUT_VERDICT | {"few-samples"}]
    withheld = [*own, *(doubt.text for doubt in row.caveats if doubt.code in WITHOUT_VERDICT)]
    return f"{comparison.verdict}: {withheld[0]}" if withheld else comparison.verdict


# What is faster at failing, or at something else, has not kept its speed.
_UNSOUND = frozenset({"answers-differ", "failures"})


def _size(comparison: Comparison) -> str:
    """Return how far, with the interval and p that decided."""
    effect, low, high = comparison.effect_percent, comparison.low_percent, comparison.high_percent
    if comparison.has_zero and comparison.p_adjusted is not None:
        sides = (comparison.baseline_value, comparison.contender_value)
        values = [f"{value:.3g} {metric_of(comparison.metric).unit}" for value in sides]
        return f", {' against '.join(values)}, p {comparison.p_adjusted:.2g}"
    if effect is None or low is None or comparison.p_adjusted is None:
        return ""
    reach = f"{low:+.1f} or more" if high is None else f"{low:+.1f} to {high:+.1f}"
    if low <= _NOTHING_PERCENT:
        reach = "unbounded" if high is None else f"up to {high:+.1f}"
    return f", {effect:+.1f} % ({reach}), p {comparison.p_adjusted:.2g}"


def _summary(counts: Counter[str]) -> str:
    named = sorted((VERDICT_WORDS.get(verdict, verdict), count) for verdict, count in counts.items())
    listed = ", ".join(f"{count} {word}" for word, count in named)
    return f"no regression in {counts.total()} comparison{'' if counts.total() == 1 else 's'}: {listed}"


def _name(analysis: Analysis, row: Row, comparison: Comparison) -> str:
    """Return who in what: the challenge and the contender where there are several."""
    return f"{comparison.contender} in {analysis.where(row)}, {metric_of(row.metric).title}"


_MOST_NAMED = 3
_NOTHING_PERCENT = -100.0  # a ratio of 0


class Decision(msgspec.Struct, frozen=True):
    """Whether to go on."""

    enough: bool
    # Why, or what is missing; one sentence without a final full stop, empty when none was asked for.
    text: str


class _Width(msgspec.Struct, frozen=True):
    """An interval that counts; infinite where there is none yet."""

    half: float
    forks: int
    name: str


def decide(rows: Sequence[Row], stop: StopSpec, forks_done: int, most: int | None = None) -> Decision:
    """Decide after a whole block, from the comparisons of the forks so far.

    Every effect that may be judged counts, or those that the rule names. What can never get there does not:
    figures without a verdict, operations that a node cannot do, and forks that have no figure for a task; the
    text names them.
    `forks_done` are finished forks of the variant that has fewest, `most` those that the run may have.
    """
    if stop.only:
        rows = [row for row in rows if (row.schedule, row.task, row.metric) in stop.only]
    widths, left_out = _sort_out(rows)
    named = f"; left out, because there can be no verdict: {left_out}" if left_out else ""
    if stop.decided:
        return _all_decided(rows, stop, forks_done, named, most if most and most > forks_done else None)
    return _all_narrow(widths, stop, forks_done, named)


def _all_narrow(widths: Sequence[_Width], stop: StopSpec, forks_done: int, named: str) -> Decision:
    if stop.precision is None:
        return Decision(enough=False, text="")
    if not widths:
        return Decision(enough=False, text=f"there is no interval to be precise about{named}")
    widest = max(widths, key=lambda width: width.half)
    fewest = min(forks_done, *(width.forks for width in widths))
    if fewest < stop.least_forks:
        return Decision(enough=False, text=f"{fewest} of at least {stop.least_forks} forks a side{named}")
    if not math.isfinite(widest.half):
        return Decision(enough=False, text=f"there is no interval yet ({widest.name}){named}")
    found = f"the widest interval is {half_width_text(widest.half)} ({widest.name})"
    if widest.half <= stop.precision:
        return Decision(enough=True, text=f"{found}{named}")
    return Decision(enough=False, text=f"{found}, {half_width_text(stop.precision)} is wanted{named}")


def _all_decided(
    rows: Sequence[Row], stop: StopSpec, forks_done: int, named: str, most: int | None
) -> Decision:
    least = max(stop.least_forks, FIRST_LOOK)
    judged = [(row, one) for row, one in _comparisons(rows) if not _hopeless(one)]
    if not judged:
        return Decision(enough=False, text=f"there is nothing to decide{named}")
    if forks_done < least:
        return Decision(enough=False, text=f"{forks_done} of at least {least} forks a side{named}")
    undecided = [(row, one) for row, one in judged if one.verdict not in DECIDED]
    if not undecided:
        return Decision(enough=True, text=f"{len(judged)} of {len(judged)} are decided{named}")
    weights = {
        metric: family_weight(one for row, one in _comparisons(rows) if row.metric == metric)
        for metric in {row.metric for row, _ in undecided}
    }
    needs = sorted(
        ((further_forks(one, weights[row.metric], most), _row_name(row, one)) for row, one in undecided),
        key=_nearest_first,
    )
    lacking = [f"{name} ({further_text(forks)})" for forks, name in needs[:_MOST_NAMED]]
    if len(needs) > _MOST_NAMED:
        others = len(needs) - _MOST_NAMED
        lacking.append(f"{others} others, which lack more" if others > 1 else "another, which lacks more")
    return Decision(
        enough=False, text=f"{len(undecided)} of {len(judged)} are open: {', '.join(lacking)}{named}"
    )


def _nearest_first(need: tuple[Forecast | None, str]) -> tuple[float, float]:
    return (math.inf, 0.0) if need[0] is None else need[0].sort_key


def further_text(further: Forecast | None) -> str:
    """Return `12 (5 to 30) more`: the forks a side that a verdict is forecast to take."""
    if further is None:
        return "nothing foretells when"
    if not further.within_reach:
        return f"hardly within {further.within} more"
    return f"{further.text} more"


def half_width(comparison: Comparison) -> float | None:
    """Half of the 95 % interval as a ratio - 1: 0.05 when it reaches from effect / 1.05 to effect x 1.05.

    On the log scale the interval is symmetric; in percent it is not. None when there is no interval.
    """
    low, high = comparison.low_percent, comparison.high_percent
    if low is None or high is None:
        return None
    if low <= _NOTHING_PERCENT:
        return math.inf
    return math.expm1((math.log1p(high / 100) - math.log1p(low / 100)) / 2)


def half_width_text(half: float) -> str:
    """In words: `+-4.8 %`."""
    return f"+-{100 * half:.1f} %"


def _sort_out(rows: Sequence[Row]) -> tuple[list[_Width], str]:
    """The intervals that count, and the names of those that cannot, metric by metric."""
    widths: list[_Width] = []
    left_out: dict[str, list[str]] = {}
    for row, comparison in _comparisons(rows):
        title = metric_of(row.metric).title
        task = _task(row, comparison)
        if _hopeless(comparison) or comparison.has_zero:
            left_out.setdefault(title, []).append(task)
            continue
        half = half_width(comparison)
        forks = min(comparison.n_baseline, comparison.n_contender)
        widths.append(_Width(math.inf if half is None else half, forks, _row_name(row, comparison)))
    return widths, "; ".join(f"{title} of {', '.join(tasks)}" for title, tasks in left_out.items())


def _task(row: Row, comparison: Comparison) -> str:
    return row.label if len(row.comparisons) == 1 else f"{row.label} ({comparison.contender})"


def _row_name(row: Row, comparison: Comparison) -> str:
    return f"{metric_of(row.metric).title} of {_task(row, comparison)}"


def _comparisons(rows: Sequence[Row]) -> Iterator[tuple[Row, Comparison]]:
    """Of tasks: there are as many index builds as there are, however many forks are added."""
    return ((row, comparison) for row in rows if row.level == "task" for comparison in row.comparisons)


def _hopeless(comparison: Comparison) -> bool:
    """More forks will not bring a verdict, or there is nothing to narrow."""
    doubts = {doubt.code for doubt in comparison.caveats}
    return (
        not comparison.judged
        or (comparison.effect_percent is None and not comparison.has_zero)
        or bool(doubts & {"missing-values", "no-spread"})
    )
