"""Decisions on what was found: has anything become slower, and has a run seen enough?"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from benchctl.results.plan import FIRST_LOOK, StopSpec
from benchctl.spec import MOST_FORKS
from benchctl.stats.analysis import Analysis, Row, reservations
from benchctl.stats.caveat import WITHOUT_VERDICT, counted
from benchctl.stats.compare import DECIDED, VERDICT_WORDS, Comparison
from benchctl.stats.metrics import metric_of

Outcome = Literal["pass", "regression", "inconclusive"]
RowOutcome = Literal["regression", "open", "kept"]


class GateResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Outcome of the gate."""

    outcome: Outcome  # `pass` means that every comparison could have shown a regression, and none did
    # Sentences without a final full stop, regressions first; for a pass, what was found instead. At the
    # end, how results differ that were compared by force.
    reasons: tuple[str, ...]
    forced: bool = False  # unlike results were compared by force: then the outcome is not the engines' alone

    @property
    def text(self) -> str:
        """The outcome in words."""
        return f"{self.outcome}, of incomparable results (--force)" if self.forced else self.outcome


def gate(analysis: Analysis) -> GateResult:
    """Decide from all contenders, tasks and metrics at once.

    A regression is a comparison whose verdict is `slower`, with Holm's p over everything that the gate looks
    at, so that it raises a false alarm in at most 5% of all decisions. Anything that leaves a regression
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
    undecided = [doubt.text for doubt in analysis.caveats if doubt.code == "test-mode"]
    unlike = [doubt.text for doubt in analysis.caveats if doubt.code == "unlike"]
    if undecided:
        return GateResult("inconclusive", (*undecided, *unlike), bool(unlike))
    doubts = [doubt.text for doubt in analysis.caveats if doubt.code in {"failed-forks", "unfinished"}]
    counts: Counter[str] = Counter()
    for row, comparison, outcome, reason in outcomes(analysis):
        if outcome == "kept":
            counts[comparison.verdict] += 1
        else:
            reasons = regressions if outcome == "regression" else doubts
            reasons.append(f"{_name(analysis, row, comparison)}: {reason}")
    notes = (*filter(None, [_left_out(analysis)]), *unlike)
    if regressions:
        return GateResult("regression", (*regressions, *doubts, *notes), bool(unlike))
    if doubts or not counts:
        texts = tuple(doubts) or ("nothing was compared",)
        return GateResult("inconclusive", (*texts, *notes), bool(unlike))
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


def _offered(row: Row) -> bool:
    return any(doubt.code == "offered-rate" for doubt in row.caveats)


def _left_out(analysis: Analysis) -> str:
    judged = {(row.schedule, row.task) for row in analysis.rows if row.metric.startswith("latency")}
    rows = [row for row in analysis.rows if _offered(row) and (row.schedule, row.task) not in judged]
    names = ", ".join(dict.fromkeys(analysis.where(row) for row in rows))
    return (
        names and f"excluded: the throughput of {names}, which is the offered rate; latency was not compared"
    )


def _looked_at(analysis: Analysis) -> Iterator[tuple[Row, Comparison]]:
    for row in analysis.rows:
        if not _offered(row):
            yield from ((row, comparison) for comparison in row.comparisons)


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
        effect = comparison.mde_percent
        sees = "" if effect is None else f"; minimum detectable effect {effect:.1f}%"
        return f"inconclusive{_size(comparison)}{sees}"
    own = [doubt.text for doubt in comparison.caveats if doubt.code in WITHOUT_VERDICT | {"too-few-samples"}]
    withheld = [*own, *(doubt.text for doubt in row.caveats if doubt.code in WITHOUT_VERDICT)]
    return f"{comparison.verdict}: {withheld[0]}" if withheld else comparison.verdict


# What is faster at failing, or at something else, has not kept its speed.
_UNSOUND = frozenset({"answers-differ", "failures"})


def _size(comparison: Comparison) -> str:
    """Return how far, with the interval and p that decided."""
    effect, low, high = comparison.effect_percent, comparison.low_percent, comparison.high_percent
    p = f"p {comparison.p_adjusted or 0.0:.2g}{' (Holm)' if comparison.adjustment else ''}"
    if comparison.has_zero and comparison.p_adjusted is not None:
        sides = (comparison.baseline_value, comparison.contender_value)
        values = [f"{value:.3g} {metric_of(comparison.metric).unit}" for value in sides]
        return f", {' against '.join(values)}, {p}"
    if effect is None or low is None or comparison.p_adjusted is None:
        return ""
    reach = f"{low:+.1f} or more" if high is None else f"{low:+.1f} to {high:+.1f}"
    if low <= _NOTHING_PERCENT:
        reach = "unbounded" if high is None else f"up to {high:+.1f}"
    return f", {effect:+.1f}% ({reach}), {p}"


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
    """True if the run should continue."""

    enough: bool
    # Why, or what is missing; one sentence without a final full stop, empty when none was asked for.
    text: str


_Compared = Sequence[tuple[Row, Comparison]]


def decide(rows: Sequence[Row], stop: StopSpec, forks_done: int, most: int | None = None) -> Decision:
    """Decide after a whole block, from the comparisons of the forks so far.

    Every effect that may be judged counts, or those that the rule names. What can never get there does not:
    figures without a verdict, operations that a node cannot do, and forks that have no figure for a task; the
    text names them.
    `forks_done` are finished forks of the variant that has fewest, `most` those that the run may have.
    """
    if not stop.decided:
        return Decision(enough=False, text="")
    chosen = [row for row in rows if not stop.only or (row.schedule, row.task, row.metric) in stop.only]
    # Of tasks: there are as many index builds as there are, however many forks are added.
    compared = [(row, comparison) for row in chosen if row.level == "task" for comparison in row.comparisons]
    counting = [(row, one) for row, one in compared if not _hopeless(one)]
    excluded = [(row, one) for row, one in compared if _hopeless(one)]
    names = ", ".join(_row_name(row, one) for row, one in excluded)
    named = f"; excluded, because no verdict is possible: {names}" if excluded else ""
    least, left = max(stop.least_forks, FIRST_LOOK), (most or 0) - forks_done
    enough, text = _all_decided(counting, forks_done, least, left if left > 0 else MOST_FORKS)
    return Decision(enough, f"{text}{named}")


def _all_decided(counting: _Compared, forks_done: int, least: int, left: int) -> tuple[bool, str]:
    if not counting:
        return False, "there is nothing to decide"
    if forks_done < least:
        return False, f"{forks_done} of at least {least} forks per variant"
    undecided = [(row, one) for row, one in counting if one.verdict not in DECIDED or one.few]
    if not undecided:
        return True, f"{len(counting)} of {len(counting)} are decided"
    needs = sorted(
        ((_lacking(comparison, left), _row_name(row, comparison)) for row, comparison in undecided),
        key=lambda need: math.inf if need[0] is None else need[0],
    )
    lacking = [f"{name} ({_further_text(forks)})" for forks, name in needs[:_MOST_NAMED]]
    if (others := len(needs) - _MOST_NAMED) > 0:
        lacking.append(f"{others} more, which need more")
    return False, f"{len(undecided)} of {len(counting)} are inconclusive: {', '.join(lacking)}"


def _lacking(comparison: Comparison, left: int) -> int | None:
    """Return the forks that one lacks until a verdict that is not provisional; None for too many."""
    lacking = comparison.further
    if comparison.verdict in DECIDED:
        lacking = comparison.forks_for_quoting - min(comparison.replicates)
    return lacking if lacking is not None and lacking <= left else None


def _further_text(further: int | None) -> str:
    """Return `about 12 more`: the forks a side that a verdict is forecast to take."""
    return "more forks than a run may have" if further is None else f"about {counted(further, 'more fork')}"


def _row_name(row: Row, comparison: Comparison) -> str:
    task = row.label if len(row.comparisons) == 1 else f"{row.label} ({comparison.contender})"
    return f"{metric_of(row.metric).title} of {task}"


def _hopeless(comparison: Comparison) -> bool:
    """More forks will not bring a verdict, or there is no effect."""
    doubts = {doubt.code for doubt in comparison.caveats}
    return (
        not comparison.judged
        or (comparison.effect_percent is None and not comparison.has_zero)
        or bool(doubts & {"missing-values", "no-spread"})
    )
