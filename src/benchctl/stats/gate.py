"""One decision for continuous integration: has anything become slower, and could it have been seen?"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from benchctl.stats.analysis import Analysis, Row
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import metric_of

Outcome = Literal["pass", "regression", "inconclusive"]


class GateResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the gate says.

    Attributes:
        outcome: `pass` means that every comparison could have shown a regression, and none did.
        reasons: sentences without a final full stop, regressions first; for a pass, what was found instead.
            At the end, which rows were left out, and how results differ that were compared by force.
        forced: unlike results were compared by force: then the outcome is not the engines' alone.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    forced: bool = False

    @property
    def text(self) -> str:
        """The outcome in words."""
        return f"{self.outcome}, of unlike results compared by force" if self.forced else self.outcome


def gate(analysis: Analysis) -> GateResult:
    """Decide from all contenders, tasks and metrics at once.

    A regression is a comparison that is `slower`: beyond the practical margin, with Holm's p over everything
    that the gate looks at, so that it raises a false alarm in at most 5 % of all decisions. Anything that
    leaves a regression possible is inconclusive: no verdict, too few forks, an interval that reaches beyond
    the margin, slower by an unclear amount, answers that are not the same, and forks or requests that failed.
    A gate never passes for want of data.

    The throughput of a throttled task is what was offered: its latency stands for it, and where that was not
    compared, a reason says what was left out.

    Args:
        analysis: made with `method="holm"`.

    Raises:
        ValueError: it was made with another method.
    """
    if analysis.method != "holm":
        raise ValueError(f"a gate needs Holm's adjustment, not {analysis.method}")
    regressions: list[str] = []
    doubts = [doubt.text for doubt in analysis.caveats if doubt.code == "failed-forks"]
    counts: Counter[str] = Counter()
    for row, comparison in _looked_at(analysis):
        name = _name(analysis, row, comparison)
        unsound = [doubt.text for doubt in row.caveats if doubt.code in _UNSOUND]
        if comparison.verdict == "slower":
            regressions.append(f"{name}: {comparison.verdict}{_size(comparison)}")
        elif _unclear(comparison):
            doubts.append(f"{name}: {_unclear_text(row, comparison)}")
        elif unsound:
            doubts.append(f"{name}: {'; '.join(unsound)}")
        else:
            counts[comparison.verdict] += 1
    unlike = [doubt.text for doubt in analysis.caveats if doubt.code == "unlike"]
    notes = (*_left_out(analysis), *unlike)
    if regressions:
        return GateResult("regression", (*regressions, *doubts, *notes), bool(unlike))
    if doubts or not counts:
        found = tuple(doubts) or ("there is nothing to judge",)
        return GateResult("inconclusive", (*found, *notes), bool(unlike))
    return GateResult("pass", (_summary(counts), *notes), bool(unlike))


def _left_out(analysis: Analysis) -> Iterator[str]:
    """Throttled tasks whose latency was not compared, so that nothing stands for their throughput."""
    judged = {(row.schedule, row.task) for row in analysis.rows if row.metric.startswith("latency")}
    rows = [row for row in analysis.rows if _offered(row) and (row.schedule, row.task) not in judged]
    if rows:
        names = ", ".join(dict.fromkeys(_where(analysis, row) for row in rows))
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


def _unclear_text(row: Row, comparison: Comparison) -> str:
    if comparison.verdict == "different":
        return f"slower by an unclear amount{_size(comparison)}"
    if comparison.verdict == "inconclusive":
        found = comparison.mde_percent
        sees = "" if found is None else f"; minimum detectable effect {found:.1f} %"
        return f"inconclusive{_size(comparison)}{sees}"
    own = [doubt.text for doubt in comparison.caveats if doubt.code in _WITHOUT_VERDICT | {"few-samples"}]
    withheld = [*own, *(doubt.text for doubt in row.caveats if doubt.code in _WITHOUT_VERDICT)]
    return f"{comparison.verdict}: {withheld[0]}" if withheld else comparison.verdict


# What is faster at failing, or at something else, has not kept its speed.
_UNSOUND = frozenset({"answers-differ", "failures"})

_WITHOUT_VERDICT = frozenset(
    {
        "driver-limited",
        "few-builds",
        "few-forks",
        "lower-bound",
        "missing-values",
        "no-redline",
        "no-spread",
        "saturated",
        "single-fork",
        "unsupported",
    }
)


def _size(comparison: Comparison) -> str:
    """How far, with the interval and p that decided."""
    effect, low, high = comparison.effect_percent, comparison.low_percent, comparison.high_percent
    if effect is None or low is None or high is None or comparison.p_adjusted is None:
        return ""
    return f", {effect:+.1f} % ({low:+.1f} to {high:+.1f}), p {comparison.p_adjusted:.2g}"


def _summary(counts: Counter[str]) -> str:
    listed = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return f"no regression in {counts.total()} comparison{'' if counts.total() == 1 else 's'}: {listed}"


def _name(analysis: Analysis, row: Row, comparison: Comparison) -> str:
    """Who in what: the challenge and the contender where there are several."""
    return f"{comparison.contender} in {_where(analysis, row)}, {metric_of(row.metric).title}"


def _where(analysis: Analysis, row: Row) -> str:
    return f"{row.challenge}: {row.label}" if len(analysis.sections) > 1 else row.label
