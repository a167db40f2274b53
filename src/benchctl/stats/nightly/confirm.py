"""Whether fresh nodes, last-good against tonight and interleaved, show what a screen saw."""

import math
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from benchctl.results.nightly.model import Direction, Series
from benchctl.stats.compare import Comparison
from benchctl.stats.inference import forks_needed
from benchctl.stats.multiplicity import adjusted_p
from benchctl.stats.nightly.nights import nights_of

LEVEL: Final = 0.01
"""A suite screens some thousand figures before its baseline stands, and dozens stand out by chance: at 5 %
and the right direction one in forty of those would be confirmed by chance as well."""
MARGIN_OF_EFFECT: Final = 0.5
"""Share of the margin that the confirmed effect must reach, as for a drift that is screened."""
LEAST_FORKS: Final = 5

_NIGHTS_TO_DIFFER = 2
# Forks that do not differ ask for no more than the least.
_NO_SPREAD = 1e-9


class Judged(msgspec.Struct, frozen=True):
    """What a confirmation says of one finding.

    Attributes:
        confirmed: an alarm is due.
        p_adjusted: by Benjamini and Hochberg over what was to be confirmed; None without a test.
        reason: in a sentence without a full stop.
    """

    confirmed: bool
    p_adjusted: float | None
    reason: str


def forks_to_confirm(series: Series, effect_log: float, *, least: int = LEAST_FORKS) -> int:
    """Forks a side that confirm an effect with 80 % power, at the level that confirmations are judged by.

    The spread is that of forks within nights, as in an interleaved run. Where no night has two forks, that
    from one night to the next stands in, which is larger; with a single night nothing is known.

    Args:
        series: its history, tonight included.
        effect_log: as screened, in natural logarithms, not 0.
        least: forks a side.

    Returns:
        At least `least`; at most 100,000.

    Raises:
        ValueError: an effect of 0.
    """
    if effect_log == 0:
        raise ValueError("nothing differs: there is no effect to confirm")
    nights = nights_of(series)
    sd = nights.fork_sd()
    if sd is None and nights.means.size >= _NIGHTS_TO_DIFFER:
        # Differences of neighbours: a step in the history does not count as spread.
        sd = float(np.sqrt((np.diff(nights.means) ** 2).mean() / 2))
    if sd is None or sd < _NO_SPREAD:
        return least
    return max(least, forks_needed(abs(effect_log), sd, alpha=LEVEL))


def judge(found: Sequence[tuple[Comparison, Direction]]) -> list[Judged]:
    """Judge what one night's confirming run found.

    Confirmed is what goes in the direction that was screened, with a p of at most 1 % after adjustment by
    Benjamini and Hochberg over all that was to be confirmed, and by at least half the practical margin. Half,
    because an estimate of an effect of the whole margin is below it every second time. Not Holm: a change
    that slows eighty tasks at once would be missed on most, with forks that find it on each by itself. When
    nothing is true both keep the chance of any alarm.

    Args:
        found: last-good (baseline) against tonight (contender) with its raw p, and the direction that the
            screen gave; one a finding.

    Returns:
        In the same order.
    """
    tested = [(place, one.p) for place, (one, _) in enumerate(found) if one.p is not None]
    adjusted = dict(
        zip(
            (place for place, _ in tested),
            adjusted_p([p for _, p in tested], "benjamini-hochberg"),
            strict=True,
        )
    )
    return [_judged(one, direction, adjusted.get(place)) for place, (one, direction) in enumerate(found)]


def _judged(one: Comparison, direction: Direction, p: float | None) -> Judged:
    effect = one.effect_percent
    if effect is None:
        return Judged(confirmed=False, p_adjusted=None, reason="one side has no value")
    if p is None:
        fewest = min(one.replicates)
        return Judged(
            confirmed=False,
            p_adjusted=None,
            reason=f"a side has {fewest} forks or none differ: there is no test",
        )
    shown = f"last-good against tonight: {effect:+.1f} % over {one.n_baseline} + {one.n_contender} forks"
    if p > LEVEL:
        return Judged(
            confirmed=False,
            p_adjusted=p,
            reason=f"{shown}, p {p:.2g} adjusted, where {LEVEL:g} is asked for",
        )
    if one.direction != direction:
        return Judged(confirmed=False, p_adjusted=p, reason=f"{shown}: the other way than was screened")
    least = MARGIN_OF_EFFECT * math.log1p(one.margin_percent / 100)
    if abs(math.log1p(effect / 100)) < least:
        return Judged(
            confirmed=False,
            p_adjusted=p,
            reason=f"{shown}: real, but under half the margin of {one.margin_percent:g} %",
        )
    return Judged(confirmed=True, p_adjusted=p, reason=f"{shown}, p {p:.2g} adjusted")
