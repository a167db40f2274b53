"""What figures say of a night: screens, the canary, the verdict on fresh forks, and recovery. Pure."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from scipy.special import stdtr, stdtrit

from benchctl.nightly.model import Direction, Rule, Series, SeriesKey
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.compare import Comparison, as_percent
from benchctl.stats.inference import forks_needed
from benchctl.stats.multiplicity import adjusted_p

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
        found: Integers = places[self.numbers[places] == wanted]
        return found

    @property
    def sds(self) -> Floats:
        """SD of the forks of every night, shape (n,); not a number where there is one fork."""
        freedom = self.counts - 1
        sds: Floats = np.sqrt(
            np.divide(self.squares, freedom, out=np.full(freedom.shape, np.nan), where=freedom > 0)
        )
        return sds

    def fork_sd(self, places: Integers | None = None) -> float | None:
        """SD from fork to fork, pooled within nights (those at `places`); None if no night has two forks."""
        squares = self.squares if places is None else self.squares[places]
        counts = self.counts if places is None else self.counts[places]
        freedom = int((counts - 1).sum())
        return float(np.sqrt(squares.sum() / freedom)) if freedom else None


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


def too_rare(series: Series, numbers: Collection[int]) -> bool:
    """Return whether all forks of one of these nights were 0: then no ratio can be screened."""
    nights = nights_of(series)
    return not np.isfinite(nights.means[nights.places_of(numbers)]).all()


# Whether a series left its usual range tonight, by as much as matters: what is worth a confirmation.


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
    """Return the cumulative sum that restarts from 0 whenever it would fall below (Page 1954).

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


class Screened(msgspec.Struct, frozen=True):
    """How a series left its usual range. Percentages are of the baseline."""

    rules: tuple[Rule, ...]
    direction: Direction
    # Tonight over the baseline; of what only the CUSUM or two nights together show, the mean of those nights.
    effect_percent: float
    # 95 % interval of a night like those, night-to-night spread included; None where there is no spread to
    # tell it from.
    low_percent: float | None
    high_percent: float | None
    baseline_nights: int  # on how many nights it rests
    baseline_log: float  # mean over those of the mean ln of each; under five nights, over all forks
    effect_log: float
    # Number of the night in which it probably began: where it only drifted, the first after the sum of the
    # CUSUM was last 0; else tonight's, or the first of those just before that are as far off.
    since: int
    # Number of the newest candidate that is surely at the old level, whatever chance did to the nights around
    # `since`; further back after every finding that was refuted since then.
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
        None when nothing stands out, the night has no value, there is nothing to hold it against, or it or
            one of those was 0 in all forks: what is so rare has no ratio.
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
    """Screen a series summarised by night; see `screen`."""
    tonight = nights.places_of((night,))
    before = nights.places_of(candidates)
    before = before[nights.numbers[before] < night]
    if tonight.size == 0 or before.size == 0 or not np.isfinite(nights.means[[*before, *tonight]]).all():
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
    """Return the rules that found something, what, and the place of the night in which it began."""
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
    """Screen tonight, or the mean of tonight and the night before if both point the same way."""
    # Two nights double the evidence, and a first night that was just inside is not lost.
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
    """Return what the CUSUM found, and the place of the night in which it began."""
    centre = float(nights.means[baseline].mean())
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
    """Return the place of the first of the newest nights that average beyond a share of the effect."""
    away = (nights.means[places] - test.centre) * math.copysign(1.0, test.effect)
    _, first = rise(away - abs(test.effect) * share)
    return int(places[-1 if first is None else first])


def _last_good(nights: Nights, before: Integers, changed: int, night: int, resets: Collection[int]) -> int:
    """Return the newest night before a change, or of one 1, 3, 7 ... earlier after refuted findings."""
    # A night where the change begins may show it already: it would refute every finding from then on.
    numbers = nights.numbers[before]
    numbers = numbers[numbers < changed]
    refuted = np.fromiter(resets, np.int64, len(resets))
    calm = np.setdiff1d(numbers, refuted)
    since_then = int(((refuted >= changed) & (refuted < night)).sum())
    chosen = calm if calm.size else numbers
    return int(chosen[max(0, chosen.size - 2 ** min(since_then, _MOST_DOUBLED))])


def _newest(nights: Nights, before: Integers, newest: Integers) -> _Test:
    """Screen the newest nights, mostly tonight alone, as more nights of the same kind."""
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
    """Test tonight's forks against all forks before (Welch); a single one as one more of the same kind."""
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


# Whether the canary moved tonight: a variant that never changes, so that what moves it is the host.


Choice = Callable[[Series], Collection[int]]
"""Numbers of the nights of a series that are candidates."""

_FORKS_OF_A_NIGHT = 1_000_000


class Move(msgspec.Struct, frozen=True):
    """A figure of a canary that left its usual range."""

    key: SeriesKey
    screened: Screened


class WholeMove(msgspec.Struct, frozen=True):
    """A canary that left its usual range as a whole: the mean of a metric over all of its tasks."""

    variant: str  # label of the canary
    metric: str
    tasks: int  # with a value tonight and before
    screened: Screened

    @property
    def text(self) -> str:
        """What moved, without a full stop."""
        found = self.screened
        tasks = "its only task" if self.tasks == 1 else f"its {self.tasks} tasks"
        effect = f"{self.metric} of {tasks} {found.effect_percent:+.1f} %"
        return f"{_named(self.variant)} is {found.direction}: {effect}"


class CanaryReport(msgspec.Struct, frozen=True):
    """What the canaries say of a night."""

    moves: tuple[Move, ...] = ()  # single figures that were screened, some of them by chance
    whole: tuple[WholeMove, ...] = ()  # canaries that moved as a whole

    @property
    def text(self) -> str:
        """Why the host moved, without a full stop; empty when no canary moved as a whole."""
        return "; ".join(move.text for move in self.whole)

    def holds(self, key: SeriesKey, direction: Direction) -> str:
        """Return why a finding of a watched variant is held; empty when nothing holds it.

        It is when a canary as a whole moved the same way in this metric, or on the very same challenge and
        task. Other figures of a canary hold nothing: of eighty, one or two are screened by chance.
        """
        for whole in self.whole:
            if (whole.metric, whole.screened.direction) == (key.metric, direction):
                return whole.text
        for move in self.moves:
            same = (move.key.challenge, move.key.task, move.key.metric) == (
                key.challenge,
                key.task,
                key.metric,
            )
            if same and move.screened.direction == direction:
                effect = f"{move.screened.effect_percent:+.1f} %"
                return f"{_named(move.key.variant)} is {direction} on the same task: {effect}"
        return ""


def canary_moved(
    canaries: Sequence[Series], night: int, *, candidates: Choice, margin: float
) -> CanaryReport:
    """Screen every figure of the canaries, and each canary as a whole.

    As a whole means fork by fork the mean, over all tasks with a value tonight and before, of how far ln
    of the figure is from its mean over the candidate nights. What happens to single tasks by chance
    averages out; what happens to the host stays. `candidates` are nights of a series that may serve as
    baseline; as a whole, those of any of its tasks.
    """
    moves = []
    groups: dict[tuple[str, str, bool], list[Series]] = {}
    for series in canaries:
        found = screen(series, night, candidates=candidates(series), margin=margin)
        if found is not None:
            moves.append(Move(series.key, found))
        group = (series.key.variant, series.key.metric, series.higher_is_better)
        groups.setdefault(group, []).append(series)
    whole = []
    for (variant, metric, _), members in groups.items():
        usable = [one for one in members if _usable(one, night, candidates(one))]
        if not usable:
            continue
        chosen = set[int]().union(*(candidates(one) for one in usable))
        found = screen(_mean_of(usable, night, candidates), night, candidates=chosen, margin=margin)
        if found is not None:
            whole.append(WholeMove(variant, metric, len(usable), found))
    return CanaryReport(tuple(moves), tuple(whole))


def _named(variant: str) -> str:
    if variant == "canary":
        return "the canary"
    return variant if "canary" in variant else f"canary {variant}"


def _usable(series: Series, night: int, candidates: Iterable[int]) -> bool:
    nights = nights_of(series)
    here = set(nights.numbers[np.isfinite(nights.means)].tolist())
    return night in here and any(one < night and one in here for one in candidates)


def _mean_of(members: Sequence[Series], night: int, candidates: Choice) -> Series:
    """Return one entry a fork of a night: the mean deviation over the tasks that have it, as a ratio."""
    places, away = [], []
    for one in members:
        nights = nights_of(one)
        before = nights.places_of([number for number in candidates(one) if number < night])
        places.append(one.nights * _FORKS_OF_A_NIGHT + one.forks)
        level = nights.means[before[np.isfinite(nights.means[before])]].mean()
        away.append(one.values / math.exp(level) if one.additive else np.log(one.values) - level)
    entries, place = np.unique(np.concatenate(places), return_inverse=True)
    sums = np.bincount(place, np.concatenate(away), minlength=entries.size)
    first, ratios = members[0], sums / np.bincount(place, minlength=entries.size)
    return Series(
        key=SeriesKey(variant=first.key.variant, challenge="", task="", metric=first.key.metric),
        unit="",
        higher_is_better=first.higher_is_better,
        nights=entries // _FORKS_OF_A_NIGHT,
        forks=entries % _FORKS_OF_A_NIGHT,
        values=ratios if first.additive else np.exp(ratios),
        additive=first.additive,
    )


# Whether fresh nodes, last-good against tonight and interleaved, show what a screen saw.


LEVEL: Final = 0.01
"""A suite screens some thousand figures before its baseline stands, and dozens stand out by chance: at 5 %
and the right direction one in forty of those would be confirmed by chance as well."""
MARGIN_OF_EFFECT: Final = 0.5
"""Share of the margin that the confirmed effect must reach, as for a drift that is screened."""
LEAST_FORKS: Final = 5

_NIGHTS_TO_DIFFER = 2
# Forks that do not differ ask for no more than the least.


class Judged(msgspec.Struct, frozen=True):
    """What a confirmation says of one finding."""

    confirmed: bool  # an alarm is due
    p_adjusted: float | None  # by Benjamini and Hochberg over what was to be confirmed; None without a test
    reason: str


def forks_to_confirm(series: Series, effect_log: float, *, least: int = LEAST_FORKS) -> int:
    """Return forks a side that confirm an effect with 80 % power, at the level of confirmations.

    The spread is that of forks within nights, as in an interleaved run. If no night has two forks, the
    larger one from night to night stands in; with a single night nothing is known.

    Args:
        series: its history, tonight included.
        effect_log: as screened, in natural logarithms, not 0.
        least: forks a side.

    Returns:
        At least `least`; at most 100,000.

    Raises:
        ValueError: If an effect is 0.
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
        why = "a side was 0 in every fork: there is no ratio" if one.has_zero else "one side has no value"
        return Judged(confirmed=False, p_adjusted=None, reason=why)
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


# Whether the figure of an open alarm is back at its old level.


NIGHTS_TO_RECOVER: Final = 3


def recovered(
    series: Series,
    night: int,
    *,
    baseline_log: float,
    raised_effect_percent: float,
    margin: float,
    nights: int = NIGHTS_TO_RECOVER,
) -> bool:
    """Return whether a series is back, by default in three nights running, tonight included.

    A night counts as back when it is inside the margin of the old level and nearer to it than to the
    level of the alarm. One such night may be chance: of an effect of 5 % with a night SD of 2 %, one in
    ten is, two running are one in a hundred. False when the night has no value, or there are fewer
    nights.

    Args:
        series: that the alarm is about.
        night: number of the night that is looked at.
        baseline_log: mean ln of the old level.
        raised_effect_percent: of the alarm.
        margin: relative difference that matters in practice.
        nights: how many of the newest nights must be back.
    """
    found = nights_of(series)
    here = found.places_of((night,))
    if here.size == 0 or here[0] + 1 < nights:
        return False
    newest = found.means[int(here[0]) + 1 - nights : int(here[0]) + 1]
    raised = math.log1p(raised_effect_percent / 100)
    for mean in newest:
        away = float(mean) - baseline_log
        if abs(away) >= math.log1p(margin) or abs(away) >= abs(away - raised):
            return False
    return True
