"""Screens of a night's values: the screen, the canary, and recovery. Pure."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import msgspec
import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from benchctl.nightly.model import Direction, Series, SeriesKey
from benchctl.stats.arrays import Floats, Integers, Mask
from benchctl.stats.compare import as_percent

# Logarithms of equal values differ by rounding alone.
_NO_SPREAD = 1e-9

# A series night by night: the mean of ln over a night's forks (`log_points`), their spread and number.


@dataclass(frozen=True, eq=False)
class Nights:
    """An entry a night that has a value, by number; everything in natural logarithms."""

    numbers: Integers  # of the nights, ascending, shape (n,)
    means: Floats  # over the night's forks, shape (n,); minus infinity of a night in which all of them were 0
    squares: Floats  # sum of squared deviations of the forks from their night's mean, shape (n,)
    counts: Integers  # forks, at least 1, shape (n,)

    def places_of(self, numbers: Collection[int]) -> Integers:
        """Return where these nights are, ascending; those without a value are skipped."""
        wanted = np.unique(np.fromiter(numbers, np.int64, len(numbers)))
        places = np.searchsorted(self.numbers, wanted)
        inside = places < self.numbers.size
        places, wanted = places[inside], wanted[inside]
        matching: Integers = places[self.numbers[places] == wanted]
        return matching

    def fork_sd(self) -> float | None:
        """SD from fork to fork, pooled within nights; None if no night has two forks."""
        freedom = int((self.counts - 1).sum())
        return float(np.sqrt(self.squares.sum() / freedom)) if freedom else None


def nights_of(series: Series) -> Nights:
    """Summarise a series night by night, vectorised; a series without entries has no nights."""
    if series.nights.size == 0:
        empty = np.empty(0)
        return Nights(series.nights, empty, empty, series.nights)
    starts = np.flatnonzero(np.diff(series.nights, prepend=series.nights[0] - 1))
    counts = np.diff(starts, append=series.nights.size)
    points = series.values if series.additive else np.log(series.values)
    means = np.add.reduceat(points, starts) / counts
    away = points - np.repeat(means, counts)
    if series.additive:
        # The same as of `log_points`, night by night.
        repeated = np.repeat(means, counts)
        away = np.divide(away, repeated, out=np.zeros_like(away), where=repeated > 0)
        means = np.log(means, out=np.full_like(means, -np.inf), where=means > 0)
    return Nights(series.nights[starts], means, np.add.reduceat(away**2, starts), counts)


# Whether a series left its usual level by tonight: a self-starting CUSUM, and a limit for single nights.


DEFAULT_MARGIN: Final = 0.05
"""Relative change of a figure that somebody should be told of."""
SLACK: Final = 0.5
"""k, in SDs of a night: shifts of twice as much are found soonest."""
LIMIT: Final = 5.0
"""h: with k = 0.5 an unchanged normal series passes it, in one direction or the other, once in 465 nights."""
OUTLIER: Final = 4.0
"""SDs of a single night that are enough by themselves."""
SHARE_OF_MARGIN: Final = 0.5
"""Share of the margin that the estimated shift must reach: that of a shift of the whole margin is below the
margin every second time."""
PRIOR_SD: Final = 0.025
PRIOR_NIGHTS: Final = 8
"""Weight of the prior of a series, in nights: nights of one engine usually
differ by 2 or 3%, besides what their forks differ by. Without it, a change in the first nights becomes usual
before it can be told from noise."""

_CONFIDENCE = 0.95
_FARTHEST_SCORE = 8.0


class Screened(msgspec.Struct, frozen=True):
    """Departure of a series from its usual level."""

    direction: Direction
    effect_log: float  # mean over the nights since the change less that over the usual ones before it
    low_log: float  # 95% interval, night-to-night spread included
    high_log: float
    baseline_nights: int  # usual nights before the change
    since: int  # number of the night in which it probably began
    # Number of the newest usual night that the sum of the CUSUM does not count against: chance may move
    # `since` by a night, but hardly as far as there.
    last_good: int

    @property
    def effect_percent(self) -> float:
        """The change in percent of the usual level."""
        return as_percent(self.effect_log)


def screen(
    nights: Nights,
    night: int,
    *,
    usual: Collection[int],
    doubtful: Collection[int] = (),
    cleared: Collection[int] = (),
    margin: float,
    higher_is_better: bool,
) -> Screened | None:
    """Hold a night against those before it.

    Every night is compared with the mean and SD of the usual nights before it, and its t is turned into the
    normal score of the same probability: in an unchanged series these are independent standard normal from
    the second night on, so that there is no baseline to wait for and none to be frozen (Hawkins, The
    Statistician 36, 1987). A CUSUM of the scores finds what lasts, a single score beyond a limit what is
    plain at once.

    Args:
        nights: of one variant, task and metric.
        night: number of the night that is screened.
        usual: numbers of earlier nights that define the level.
        doubtful: of nights whose change could not be confirmed: they count as evidence, not as usual.
        cleared: of nights after which the sum begins anew.
        margin: relative difference that matters in practice.
        higher_is_better: of the metric.

    Returns:
        None when nothing stands out, the night has no value, there is nothing to hold it against, or it or
            one of those was 0 in all forks: what is so rare has no ratio.
    """
    tonight = nights.places_of((night,))
    places = nights.places_of({*usual, *doubtful})
    places = places[nights.numbers[places] < night]
    is_usual = np.isin(nights.numbers[places], list(usual))
    if tonight.size == 0 or not is_usual.any():
        return None
    places = np.append(places, tonight)[int(np.argmax(is_usual)) :]
    is_usual = np.append(is_usual, np.array([False]))[int(np.argmax(is_usual)) :]
    if not np.isfinite(nights.means[places]).all():
        return None
    scores, sd, df = _scores(nights, places, is_usual)
    anew = np.isin(nights.numbers[places], list(cleared))
    for sign in (1, -1):
        start = _start(sign * scores, anew)
        if start is None:
            continue
        shift = _shift(sign * nights.means[places], is_usual, start)
        if min(shift.effect, shift.tonight) < SHARE_OF_MARGIN * math.log1p(margin):
            continue
        reach = float(stdtrit(df, (1 + _CONFIDENCE) / 2)) * sd * shift.share
        effect = sign * shift.effect
        return Screened(
            direction="faster" if (sign > 0) == higher_is_better else "slower",
            effect_log=effect,
            low_log=effect - reach,
            high_log=effect + reach,
            baseline_nights=shift.before,
            since=int(nights.numbers[places[shift.first]]),
            last_good=int(nights.numbers[places[:start][is_usual[:start]][-1]]),
        )
    return None


def _scores(nights: Nights, places: Integers, is_usual: Mask) -> tuple[Floats, float, float]:
    """Return the normal score of every night, and the last one's SD and degrees of freedom."""
    values = nights.means[places] - nights.means[places[0]]
    counts = nights.counts[places]
    forks = (nights.fork_sd() or 0.0) ** 2
    n = _before(is_usual.astype(np.float64))
    earlier = np.maximum(n, 1)
    mean = _before(values * is_usual) / earlier
    squares = np.maximum(_before(values**2 * is_usual) - n * mean**2, 0.0)
    df = PRIOR_NIGHTS + earlier - 1
    prior = PRIOR_SD**2 + forks * (1 / counts).mean()
    variance = (PRIOR_NIGHTS * prior + squares) / df
    # A night that was cut short is less certain than the usual ones.
    extra = forks * np.maximum(0.0, 1 / counts - (1 / counts).mean())
    t = (values - mean) / np.sqrt(variance * (1 + 1 / earlier) + extra)
    scores = np.minimum(-ndtri(stdtr(df, -np.abs(t))), _FARTHEST_SCORE) * np.sign(t)
    scores[n == 0] = 0.0
    return scores, math.sqrt(variance[-1]), float(df[-1])


def _before(values: Floats) -> Floats:
    """Return the sum of the values before each."""
    sums: Floats = np.cumsum(values) - values
    return sums


def _start(scores: Floats, anew: Mask) -> int | None:
    """Return the place after which the sum was last 0, if it or the last score is beyond its limit."""
    height, start, out = 0.0, 1, False
    for place, score in enumerate(scores.tolist()):
        height = max(0.0, height + score - SLACK)
        out = height > LIMIT or score > OUTLIER
        # What was found and could not be confirmed is found again as soon as a night points the same way.
        height = min(height, LIMIT)
        if anew[place]:
            height = 0.0
        if height == 0:
            start = place + 1
    return max(1, min(start, scores.size - 1)) if out else None


class _Shift(NamedTuple):
    """A change upwards, in natural logarithms."""

    first: int  # place of the night in which it most probably began
    effect: float
    tonight: float  # the last night's distance from the level before
    before: int  # usual nights before
    share: float  # standard error of the effect in SDs of a night


def _shift(values: Floats, is_usual: Mask, start: int) -> _Shift:
    """Return the likeliest change that lasts until the last night and began at `start` or later."""
    firsts = np.arange(start, values.size)
    n, m = _before(is_usual.astype(np.float64))[firsts], values.size - firsts
    older = _before(values * is_usual)[firsts] / n
    newer = np.cumsum(values[::-1])[::-1][firsts] / m
    share = np.sqrt(1 / m + 1 / n)
    best = int(np.argmax((newer - older) / share))
    return _Shift(
        int(firsts[best]),
        float(newer[best] - older[best]),
        float(values[-1] - older[best]),
        int(n[best]),
        float(share[best]),
    )


# Whether the canary moved tonight: a variant that never changes, so that what moves it is the host.


class CanaryMove(msgspec.Struct, frozen=True):
    """A canary that left its usual level: the mean of a metric over all of its tasks."""

    variant: str  # label of the canary
    metric: str
    tasks: int  # with a value tonight and before
    screened: Screened

    @property
    def text(self) -> str:
        """Description of the move, without a full stop."""
        screened = self.screened
        tasks = "its only task" if self.tasks == 1 else f"its {self.tasks} tasks"
        effect = f"{self.metric} of {tasks} {screened.effect_percent:+.1f}%"
        return f"{_named(self.variant)} is {screened.direction}: {effect}"


class CanaryReport(msgspec.Struct, frozen=True):
    """Verdict of the canaries on a night."""

    moves: tuple[CanaryMove, ...] = ()

    @property
    def text(self) -> str:
        """Reason why the host moved, without a full stop; empty if no canary moved."""
        return "; ".join(move.text for move in self.moves)

    def holds(self, key: SeriesKey, direction: Direction) -> str:
        """Return why a finding of a watched variant is held: a canary moved the same way in this metric."""
        for move in self.moves:
            if (move.metric, move.screened.direction) == (key.metric, direction):
                return move.text
        return ""


def canary_moved(
    canaries: Iterable[Series], night: int, *, usual: Callable[[Series], Collection[int]], margin: float
) -> CanaryReport:
    """Screen each canary and metric: the mean over tasks of how far a night is from the task's level.

    What happens to single tasks by chance averages out; what happens to the host stays. Of a task only the
    `usual` nights count, and tasks without a value tonight or before do not.
    """
    groups: dict[tuple[str, str, bool], list[tuple[Nights, Collection[int]]]] = {}
    for series in canaries:
        nights, before = nights_of(series), usual(series)
        finite = np.isfinite(nights.means)
        level = nights.means[finite & np.isin(nights.numbers, list(before)) & (nights.numbers < night)]
        if not level.size or night not in nights.numbers[finite]:
            continue
        away = replace(nights, numbers=nights.numbers[finite], means=nights.means[finite] - level.mean())
        group = (series.key.variant, series.key.metric, series.higher_is_better)
        groups.setdefault(group, []).append((away, before))
    moves = []
    for (variant, metric, higher_is_better), members in groups.items():
        screened = screen(
            _mean_of([nights for nights, _ in members]),
            night,
            usual=set[int]().union(*(before for _, before in members)),
            margin=margin,
            higher_is_better=higher_is_better,
        )
        if screened is not None:
            moves.append(CanaryMove(variant, metric, len(members), screened))
    return CanaryReport(tuple(moves))


def _mean_of(members: Sequence[Nights]) -> Nights:
    """Return the mean of several series, night by night; nights as units, without their forks."""
    numbers, place = np.unique(np.concatenate([member.numbers for member in members]), return_inverse=True)
    sums = np.bincount(place, np.concatenate([member.means for member in members]), minlength=numbers.size)
    means = sums / np.bincount(place, minlength=numbers.size)
    return Nights(numbers, means, np.zeros(numbers.size), np.ones(numbers.size, np.int64))


def _named(variant: str) -> str:
    if variant == "canary":
        return "the canary"
    return variant if "canary" in variant else f"canary {variant}"


# Whether the figure of an alarm is back at its old level.


NIGHTS_TO_RECOVER: Final = 3
_LEVEL_OF_EQUIVALENCE: Final = 0.05


def recovered(newer: Floats, older: Floats, margin: float) -> bool:
    """Return whether the newest nights are equivalent to older ones (two one-sided tests at 5%).

    The newest three are tried first, then more, as far as they go: the noisier nights are, the more it takes.

    Args:
        newer: mean ln of the nights since the change, in order, shape (m,).
        older: of the nights before it, shape (n,).
        margin: relative difference that does not matter in practice.
    """
    n = older.size
    for m in range(NIGHTS_TO_RECOVER, newer.size + 1 if n else 0):
        newest = newer[-m:]
        room = math.log1p(margin) - abs(float(newest.mean() - older.mean()))
        squares = m * float(newest.var()) + n * float(older.var())
        df = n + m - 2
        error = max(math.sqrt(squares / df * (1 / m + 1 / n)), _NO_SPREAD)
        if stdtr(df, -room / error) <= _LEVEL_OF_EQUIVALENCE:
            return True
    return False


def is_nearer(tonight: float, level: float, effect: float, margin: float) -> bool:
    """Return whether a night is within the margin of a level, and nearer to it than `effect` away from it."""
    away = tonight - level
    return abs(away) < min(math.log1p(margin), abs(away - effect))
