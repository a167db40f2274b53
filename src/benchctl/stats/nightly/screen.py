"""Whether a series left its usual range tonight, by as much as matters: what is worth a confirmation."""

import math
from collections.abc import Collection
from typing import Final

import msgspec
import numpy as np
from scipy.special import stdtr, stdtrit

from benchctl.results.nightly.model import Direction, Rule, Series
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.compare import as_percent
from benchctl.stats.nightly.nights import Nights, nights_of

DEFAULT_MARGIN: Final = 0.05
"""Relative change of a figure that somebody should be told of."""
NIGHTS_FOR_BASELINE: Final = 40
"""From so many nights on the first of them are the baseline, for good."""
NIGHTS_AS_UNITS: Final = 5
LEVEL_OF_NIGHTS: Final = 0.01
"""At 5 %, eighty figures would give four confirmations by chance every night."""
LEVEL_OF_FORKS: Final = 0.05
"""Two or three nodes a night leave few degrees of freedom, and there are but four such nights."""
OUTLIER_LEVEL: Final = 1e-4
MARGIN_OF_DRIFT: Final = 0.5
"""Share of the margin that a drift must reach: the estimate of one of the whole margin is often below it."""

_CONFIDENCE = 0.95
# Until 40 nights stand, a night whose finding was refuted waits so many nights to become baseline: it may be
# right, and then it would hide the nights that follow.
_REFUTED_FOR = 7
# How near to tonight, between the old level 0 and tonight 1, nights are on average that count as changed when
# it is asked since when, and how near they may be at most for the night before them to be surely good.
_CHANGED = 0.5
_SURELY_GOOD = 0.25
_MOST_DOUBLED = 20
_PAIR = 2
_LEAST_TO_TEST = 2
# Logarithms of equal values differ by rounding alone.
_NO_SPREAD = 1e-9


# CUSUM of standardised values: small shifts that last, and since when.

SLACK: Final = 1.0
"""k, in SDs: shifts of twice as much are found soonest."""
LIMIT: Final = 5.0
"""h: with k = 1, an unchanged normal series of known mean and SD passes it once in some 56,000 nights."""


def rise(steps: Floats) -> tuple[float, int | None]:
    """Sum steps up, from 0 anew whenever the sum would fall below it (Page 1954).

    Args:
        steps: what values deviate by in one direction, less the slack, in order, shape (n,).

    Returns:
        The sum after the last step, and the place of the first step after it was last 0; None when it is 0.
    """
    # The sum that is kept at 0 is the plain one less the least that it has been, 0 at the start included.
    plain = np.concatenate(([0.0], np.cumsum(steps)))
    lowest = plain.size - 1 - int(np.argmin(plain[::-1]))
    height = float(plain[-1] - plain[lowest])
    return (height, lowest) if height > 0 else (0.0, None)


# Whether a series left its usual range tonight, by as much as matters.


class Screened(msgspec.Struct, frozen=True):
    """How a series left its usual range. Percentages are of the baseline.

    Attributes:
        rules: the screens that it did not pass.
        direction: which way, whatever the metric's better way is.
        effect_percent: tonight over the baseline; of what only the CUSUM or two nights together show, the
            mean of those nights.
        low_percent, high_percent: 95 % interval of a night like those, night-to-night spread included; None
            where there is no spread to tell it from.
        baseline_nights: on how many nights it rests.
        baseline_log: mean over those of the mean ln of each; under five nights, over all forks.
        effect_log: the effect in natural logarithms.
        since: number of the night in which it probably began: where it only drifted, the first after the sum
            of the CUSUM was last 0; else tonight's, or the first of those just before that are as far off.
        last_good: number of the newest candidate that is surely at the old level, whatever chance did to the
            nights around `since`; further back after every finding that was refuted since then.
    """

    rules: tuple[Rule, ...]
    direction: Direction
    effect_percent: float
    low_percent: float | None
    high_percent: float | None
    baseline_nights: int
    baseline_log: float
    effect_log: float
    since: int
    last_good: int


class _Test(msgspec.Struct, frozen=True):
    """A difference of means in logarithms, with what it can be judged by; no error: no spread is known."""

    centre: float
    effect: float
    error: float | None
    df: float

    @property
    def p(self) -> float:
        if self.error is None:
            return 1.0
        if self.error < _NO_SPREAD:
            return 0.0 if abs(self.effect) > _NO_SPREAD else 1.0
        return float(2 * stdtr(self.df, -abs(self.effect) / self.error))

    @property
    def interval(self) -> tuple[float, float] | None:
        if self.error is None:
            return None
        reach = float(stdtrit(self.df, (1 + _CONFIDENCE) / 2)) * self.error
        return self.effect - reach, self.effect + reach


def screen(
    series: Series, night: int, *, candidates: Collection[int], margin: float, resets: Collection[int] = ()
) -> Screened | None:
    """Hold a night against earlier ones.

    Tonight is one new draw from whatever makes nights differ, so it is held against the spread of the nights,
    however many forks it has: Welch's t over all forks takes a host's mood for the engine's speed. With five
    nights and more the test is that of one new value against n earlier ones, t = (y - mean) / (SD sqrt(1 +
    1/n)) with n - 1 degrees of freedom, at 1 %; the spread is widened where tonight has fewer forks than
    usual. With fewer nights there is no spread of nights to speak of, forks are all there is (Welch at 5 %),
    and findings by chance are the more frequent; the confirmation sees to those. From 40 nights on a
    two-sided CUSUM (k = 1, h = 5) on the first 40 finds what lasts, and the prediction interval at 0.0001
    what is plain at once.

    A finding is at least the margin, as a ratio alike in both directions; a drift at least half of it.

    Args:
        series: of one variant, task and metric.
        night: number of the night that is screened.
        candidates: numbers of the nights that may serve as baseline; those from `night` on and those without
            a value are passed over.
        margin: relative difference that matters in practice.
        resets: nights whose findings were refuted: the sums of the CUSUM begin anew after them.

    Returns:
        None when nothing stands out, the night has no value, or there is nothing to hold it against.
    """
    return screen_nights(
        nights_of(series),
        night,
        candidates=candidates,
        margin=margin,
        resets=resets,
        higher_is_better=series.higher_is_better,
    )


def screen_nights(
    nights: Nights,
    night: int,
    *,
    candidates: Collection[int],
    margin: float,
    resets: Collection[int] = (),
    higher_is_better: bool,
) -> Screened | None:
    """The same for a series that was summed up; `higher_is_better` says which way is faster."""
    tonight = nights.places_of((night,))
    before = nights.places_of(candidates)
    before = before[nights.numbers[before] < night]
    if tonight.size == 0 or before.size == 0:
        return None
    place, least = int(tonight[0]), math.log1p(margin)
    found: tuple[tuple[Rule, ...], _Test, int] | None
    refuted = nights.places_of([number for number in resets if number >= night - _REFUTED_FOR])
    if before.size >= NIGHTS_FOR_BASELINE:
        later = np.append(before[NIGHTS_FOR_BASELINE:], place)
        baseline = before[:NIGHTS_FOR_BASELINE]
        found = _drift_or_outlier(nights, baseline, later, least, resets)
    else:
        later = np.append(before[1:], place)
        baseline = np.setdiff1d(before, refuted) if refuted.size else before
        if baseline.size == 0:
            return None
        by_night = baseline.size >= NIGHTS_AS_UNITS
        test = _newest(nights, baseline, later[-1:]) if by_night else _forks(nights, baseline, place)
        level = LEVEL_OF_NIGHTS if by_night else LEVEL_OF_FORKS
        stands_out = test.p <= level and abs(test.effect) >= least
        found = (("step",), test, _began(nights, later, test, _CHANGED)) if stands_out else None
    if found is None:
        return None
    rules, test, since = found
    interval = test.interval
    changed = min(since, _began(nights, later, test, _SURELY_GOOD))
    return Screened(
        rules=rules,
        direction="faster" if (test.effect > 0) == higher_is_better else "slower",
        effect_percent=as_percent(test.effect),
        low_percent=None if interval is None else as_percent(interval[0]),
        high_percent=None if interval is None else as_percent(interval[1]),
        baseline_nights=baseline.size,
        baseline_log=test.centre,
        effect_log=test.effect,
        since=int(nights.numbers[since]),
        last_good=_last_good(nights, before, int(nights.numbers[changed]), night, resets),
    )


def _drift_or_outlier(
    nights: Nights, baseline: Integers, later: Integers, least: float, resets: Collection[int]
) -> tuple[tuple[Rule, ...], _Test, int] | None:
    """The rules that found something, what was found, and the place of the night in which it began."""
    new = _outlier(nights, baseline, later, least, resets)
    drift = _drift(nights, baseline, later, least, resets)
    if new is None:
        return None if drift is None else (("drift",), *drift)
    # What is plain tonight says how much; the nights since the sum began may be from before it.
    both = drift is not None and drift[0].effect * new.effect > 0
    return (("drift", "outlier") if both else ("outlier",)), new, _began(nights, later, new, _CHANGED)


def _outlier(
    nights: Nights, baseline: Integers, later: Integers, least: float, resets: Collection[int]
) -> _Test | None:
    """Tonight, or the mean of tonight and the night before where both point the same way.

    Two nights see twice as well, and a first night that was just inside is not lost.
    """
    tonight = _newest(nights, baseline, later[-1:])
    if tonight.p <= OUTLIER_LEVEL and abs(tonight.effect) >= least:
        return tonight
    if later.size < _PAIR or int(nights.numbers[later[-_PAIR]]) in resets:
        return None
    pair = _newest(nights, baseline, later[-_PAIR:])
    alike = math.copysign(1.0, pair.effect) * tonight.effect >= MARGIN_OF_DRIFT * least
    return pair if alike and pair.p <= OUTLIER_LEVEL and abs(pair.effect) >= least else None


def _drift(
    nights: Nights, baseline: Integers, later: Integers, least: float, resets: Collection[int]
) -> tuple[_Test, int] | None:
    """What the CUSUM found, and the place of the night in which it began."""
    centre = _centre(nights, baseline)
    # Without any spread every deviation is beyond all limits, and the margin alone decides.
    sd = max(float(nights.means[baseline].std(ddof=1)), _NO_SPREAD)
    scores = (nights.means[later] - centre) / sd
    ends = [number for number in resets if number < nights.numbers[later[-1]]]
    anew = int(np.searchsorted(nights.numbers[later], max(ends), side="right")) if ends else 0
    for sign in (1, -1):
        if rise(sign * scores[anew:] - SLACK)[0] <= LIMIT:
            continue
        # Without resets: a finding that was refuted wrongly began before that.
        first = rise(sign * scores - SLACK)[1] or 0
        level = float(nights.means[later[first:]].mean()) - centre
        if sign * level >= MARGIN_OF_DRIFT * least:
            error = sd * math.sqrt(1 / (later.size - first) + 1 / baseline.size)
            return _Test(centre, level, error, baseline.size - 1), int(later[first])
    return None


def _began(nights: Nights, places: Integers, test: _Test, share: float) -> int:
    """The place of the first of the newest nights that lie, on average, beyond a share of the effect."""
    away = (nights.means[places] - test.centre) * math.copysign(1.0, test.effect)
    _, first = rise(away - abs(test.effect) * share)
    return int(places[-1 if first is None else first])


def _last_good(nights: Nights, before: Integers, changed: int, night: int, resets: Collection[int]) -> int:
    """The number of the newest night before a change, or of one 1, 3, 7 ... earlier after refuted findings.

    One that lies where the change begins may show it already: it would refute every finding from then on.
    """
    numbers = nights.numbers[before]
    numbers = numbers[numbers < changed]
    refuted = np.fromiter(resets, np.int64, len(resets))
    calm = np.setdiff1d(numbers, refuted)
    since_then = int(((refuted >= changed) & (refuted < night)).sum())
    chosen = calm if calm.size else numbers
    return int(chosen[max(0, chosen.size - 2 ** min(since_then, _MOST_DOUBLED))])


def _newest(nights: Nights, before: Integers, newest: Integers) -> _Test:
    """The newest nights, mostly tonight alone, as more nights of the same kind."""
    means, n = nights.means[before], before.size
    centre = float(means.mean())
    deviations = means - centre
    variance = float(deviations @ deviations) / (n - 1)
    counts = nights.counts[before]
    extra = float((1 / nights.counts[newest]).mean() - (1 / counts).mean())
    if extra > 0:
        extra *= (nights.fork_sd(np.append(before, newest)) or 0.0) ** 2
    effect = float(nights.means[newest].mean()) - centre
    error = math.sqrt((variance + max(0.0, extra)) / newest.size + variance / n)
    return _Test(centre, effect, error, n - 1)


def _forks(nights: Nights, before: Integers, tonight: int) -> _Test:
    """Tonight's forks against all forks before (Welch); a single one as one more of the same kind."""
    counts = nights.counts[before]
    forks, own = int(counts.sum()), int(nights.counts[tonight])
    mean = float((nights.means[before] * counts).sum() / forks)
    effect = float(nights.means[tonight]) - mean
    if forks < _LEAST_TO_TEST:
        return _Test(mean, effect, None, 0)
    between = float((counts * (nights.means[before] - mean) ** 2).sum())
    variance = (float(nights.squares[before].sum()) + between) / (forks - 1)
    if own < _LEAST_TO_TEST:
        return _Test(mean, effect, math.sqrt(variance * (1 + 1 / forks)), forks - 1)
    mine, theirs = float(nights.squares[tonight]) / (own - 1) / own, variance / forks
    error = math.sqrt(mine + theirs)
    if error < _NO_SPREAD:
        return _Test(mean, effect, error, 1)
    return _Test(mean, effect, error, (mine + theirs) ** 2 / (mine**2 / (own - 1) + theirs**2 / (forks - 1)))


def _centre(nights: Nights, places: Integers) -> float:
    return float(nights.means[places].mean())
