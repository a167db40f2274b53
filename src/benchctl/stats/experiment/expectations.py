"""Every expectation of an experiment against its rows: outcomes, p-values, doubts."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from benchctl.results.experiment.model import Expectation
from benchctl.stats.caveat import CaveatCode
from benchctl.stats.compare import as_percent
from benchctl.stats.contrast import Contrast
from benchctl.stats.experiment.judge import judge_relation, support, together
from benchctl.stats.experiment.model import ExpectationResult, ExperimentRow, Judged
from benchctl.stats.experiment.speed import speed_of, speed_over
from benchctl.stats.multiplicity import holm
from benchctl.stats.scale import rounded_ratio

NOTABLE_SCALE = 10.0
"""So many times fewer document visits than in the blog are a doubt."""
OPEN = "the interval leaves it open"
"""Why a comparison is inconclusive that could have been judged."""

# Why a row has no verdict: what is said of an expectation that rests on it, in this order.
_WITHHOLDING: tuple[CaveatCode, ...] = (
    "unsupported", "missing-values", "saturated", "offered-rate", "driver-limited", "few-samples",
    "single-fork", "few-forks", "no-spread",
)  # fmt: skip
_WEAKENING: Mapping[CaveatCode, str] = MappingProxyType(
    {
        "answers-wrong": "an engine answers wrongly",
        "answers-differ": "the variants do not answer alike",
        "failures": "requests failed",
        "stalled": "a single wait took much of the time of a task",
        "bimodal": "forks lie in separate groups, so that an interval may be too narrow",
    }
)


def judge_expectations(
    expectations: Sequence[Expectation], rows: Mapping[str, ExperimentRow]
) -> tuple[ExpectationResult, ...]:
    """Judge all of them; p-values are adjusted by Holm over those that have one.

    Args:
        expectations: in order.
        rows: name -> comparison, with its verdict.
    """
    results = [_judge(one, rows) for one in expectations]
    places = [place for place, one in enumerate(results) if one.p is not None]
    adjusted = dict(zip(places, holm([one.p for one in results if one.p is not None]), strict=True))
    return tuple(
        msgspec.structs.replace(one, p_adjusted=adjusted.get(place)) for place, one in enumerate(results)
    )


def _judge(expectation: Expectation, rows: Mapping[str, ExperimentRow]) -> ExpectationResult:
    than = rows[expectation.than] if expectation.than else None
    own = [rows[name] for name in expectation.comparisons]
    judged = tuple(_judged(expectation, row, than) for row in own)
    known = [one.p for one in judged if one.p is not None]
    return ExpectationResult(
        statement=expectation.statement,
        relation=expectation.is_,
        than=expectation.than,
        margin_percent=100 * expectation.margin,
        outcome=together([one.outcome for one in judged]),
        p=max(known) if len(known) == len(judged) else None,
        p_adjusted=None,
        judged=judged,
        needs=expectation.needs,
        doubts=tuple(_doubts([*own, *([] if than is None else [than])])),
        place=expectation.place,
    )


def _judged(expectation: Expectation, row: ExperimentRow, than: ExperimentRow | None) -> Judged:
    """One comparison; it is open where its row, or the one that it is held against, has no verdict."""
    speed = speed_of(row) if than is None else speed_over(row, than)
    reasons = (_unjudged(one) for one in (row, *([] if than is None else [than])))
    reason = next((text for text in reasons if text), "")
    if speed is None or reason:
        return Judged(
            row.name,
            "inconclusive",
            speed_percent=_point(row) if speed is None and than is None else _percent(speed),
            reason=reason or "nothing varies from fork to fork",
        )
    outcome = judge_relation(expectation.is_, speed, expectation.margin, len(expectation.comparisons))
    wide, narrow = speed.interval(0.95), speed.interval(0.90)
    return Judged(
        row.name,
        outcome,
        speed_percent=as_percent(speed.estimate),
        low_percent=as_percent(wide[0]),
        high_percent=as_percent(wide[1]),
        low90_percent=as_percent(narrow[0]),
        high90_percent=as_percent(narrow[1]),
        p=support(expectation.is_, speed, expectation.margin),
        reason=OPEN if outcome == "inconclusive" else "",
    )


def _point(row: ExperimentRow) -> float | None:
    """The change in speed of a row that has no spread."""
    effect = row.comparison.effect_percent
    if effect is None or row.higher_is_better:
        return effect
    return 100 * (1 / (1 + effect / 100) - 1)


def _percent(speed: Contrast | None) -> float | None:
    return None if speed is None else as_percent(speed.estimate)


def _unjudged(row: ExperimentRow) -> str:
    """Why a row has no verdict; empty when it has one."""
    if row.missing or row.comparison.verdict not in ("n/a", "insufficient"):
        return row.missing
    doubts = {doubt.code: doubt.text for doubt in reversed(row.caveats)}
    return next((doubts[code] for code in _WITHHOLDING if code in doubts), "there are no figures to compare")


def _doubts(rows: Sequence[ExperimentRow]) -> Iterator[str]:
    """What weakens an outcome that rests on these rows."""
    measured = [row for row in rows if not row.missing]
    if not measured:
        return
    unsteady = sum(row.unsteady for row in measured)
    if unsteady:
        which = "no comparison of it" if unsteady == len(measured) else "not every comparison of it"
        yield f"{which} is between settled speeds"
    furthest = max((row.scale.ratio for row in measured if row.scale is not None), default=0.0)
    if furthest >= NOTABLE_SCALE:
        yield (
            f"up to {rounded_ratio(furthest)} times fewer document visits than in the blog, which forbids a "
            "conclusion about its scale"
        )
    codes = {doubt.code for row in measured for doubt in row.caveats}
    yield from (text for code, text in _WEAKENING.items() if code in codes)
