"""Forecasts: forks until a verdict and the least difference found, from what is known of effect and spread.

One model answers all of it. The SD of a coming run is uncertain: what was measured says so by its degrees of
freedom, and between runs it varies by a factor that is lognormal about 1. The effect of a run under way
follows from its estimate and the prior of the mixture t-test, N(0, 1) on the standardised effect. Verdicts
are those of `stats.compare.judge`. A fixed number of forks is integrated over quantiles; a run that ends
when it is decided is simulated from a fixed seed.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
from scipy.special import chdtri, ndtr

from benchctl.results.model import FORKS_FOR_VERDICT, Looks
from benchctl.results.plan import FIRST_LOOK
from benchctl.spec import MOST_FORKS
from benchctl.stats.arrays import Floats, Mask
from benchctl.stats.inference import critical

POWER: Final = 0.8
UNBOUNDED: Final = 100_000
"""Forks a side beyond which none are looked for."""
LEAST_CHANCE: Final = 0.1
"""Predictive chance of a verdict under which it is called out of reach."""
BETWEEN_RUNS: Final = 0.27
"""SD of the logarithm by which the fork SDs of two runs of one task differ: ratios of .58 to 1.7."""

_LEVEL = 0.05
_RANGE = 0.8
_PATHS = 1000
_CLASSES = 24
_LEAST_DF = 1 - 1e-9  # of what is computed in floats, too
_SEED = 20_240_301
_LEAST_SD = 1e-9  # logarithms: where nothing varied, the coming run varies by next to nothing


class Spread(msgspec.Struct, frozen=True):
    """SD of natural logarithms, of differences within pairs or of forks, and how well it is known."""

    sd: float
    df: float  # of the chi-square that its estimate follows; infinite where it is given

    @property
    def of_coming_run(self) -> "Spread":
        """The SD of a run to come, judging by earlier ones: known less well, as it varies between runs."""
        # The logarithm of an SD by a chi-square has the variance 1/(2 df), and a mean that is 1/(2 df) off:
        # of the two variances, only the estimate's shifts the mean.
        added = 2 * BETWEEN_RUNS**2
        return Spread(self.sd * math.exp(-added / 2), 1 / (1 / self.df + added))

    def quantiles(self, shares: Floats) -> Floats:
        """Return the SDs that the true one lies below with the given chances."""
        sd = max(self.sd, _LEAST_SD)
        if math.isinf(self.df):
            return np.full_like(shares, sd)
        return np.asarray(sd * np.sqrt(self.df / chdtri(self.df, shares)))


class Rule(msgspec.Struct, frozen=True):
    """The verdict rule in force for a row."""

    margin: float  # natural logarithm of 1 + the difference that does not matter
    paired: bool
    looks: Looks = 1  # the last one decides; with None every one does, after every block from the fifth on
    # What p is multiplied by for the other rows of its family: m / (k + 1) by Benjamini and Hochberg, where k
    # of m rows are significant already.
    weight: float = 1.0
    stretch: float = 1.0  # as of `Comparison`

    @property
    def sides(self) -> int:
        """Samples that the spread is estimated from: the differences, or both sides."""
        return 1 if self.paired else 2

    def first_look(self, done: int = 0) -> int:
        """Return the forks a side at the next look."""
        return max(done + 1, FIRST_LOOK if self.looks is None else FORKS_FOR_VERDICT)

    def critical(self, forks: float, level: float = _LEVEL) -> float:
        """Return the t that p equals the level at, two-sided; infinite while there is none."""
        df = self.sides * (forks - 1)
        if df < _LEAST_DF:
            return math.inf
        return critical(level, df, forks / self.sides, self.looks)


class Estimate(msgspec.Struct, frozen=True):
    """Interim result of a run, in natural logarithms."""

    effect: float
    spread: Spread
    forks: int  # a side

    def shrunk(self, rule: Rule) -> float:
        """Return the mean of the effect given the run: the mixture t-test's prior draws it towards 0.

        Beside a verdict that ended a run, the plain estimate lies too far from 0 on average.
        """
        units = self.forks / rule.sides
        return self.effect * units / (units + 1)


class Forecast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forks a side, or pairs, that a verdict takes; None for more than `within`."""

    forks: int | None  # for 80% power by a plan; the median for a run under way
    # `low`, `high`: the 80% range.
    low: int | None
    high: int | None
    within: int
    chance: float  # of a verdict within so many

    @property
    def within_reach(self) -> bool:
        """True if a verdict is still possible."""
        return self.chance >= LEAST_CHANCE

    @property
    def sort_key(self) -> tuple[float, float]:
        """Sort key: fewer forks first."""
        return math.inf if self.forks is None else self.forks, -self.chance

    @property
    def text(self) -> str:
        """In words: `12 (5 to 30)`, `over 45 (20 or more)`."""
        over = f"over {self.within:,}"
        if self.low is None:
            return over
        high = over if self.high is None else f"{self.high:,}"
        if self.forks is None:
            return f"{over} ({self.low:,} or more)"
        return f"{self.forks:,}" if self.low == self.high else f"{self.forks:,} ({self.low:,} to {high})"


def power(effect: float, spread: Spread, rule: Rule, forks: int) -> float:
    """Return the chance that a fixed number of forks a side finds an effect, above 0, in its direction.

    Found is `faster` or `slower` for an effect beyond the margin. One within it can only be called
    `different`, or lie beyond by chance: found is then what is significant.
    """
    error, bound = _bounds(spread, rule, forks)
    return _power(effect, error, bound, rule.margin)


def forks_to_find(effect: float, spread: Spread, rule: Rule, most: int | None = None) -> Forecast:
    """Return the forks a side that find an effect with 80% power.

    Args:
        effect: natural logarithm of the ratio, above 0.
        spread: of the coming run.
        rule: the verdict rule.
        most: forks a side that there can be; by default those of a run until it is decided where the rule
            looks after every block, else without a bound that matters.

    Raises:
        ValueError: If the effect is not positive.
    """
    if not effect > 0:
        raise ValueError(f"effect must be positive, not {effect}")
    if rule.looks is None:
        return _sequential_plan(effect, spread, rule, most or MOST_FORKS)
    return _fixed_plan(effect, spread, rule, most or UNBOUNDED)


def least_effect(spread: Spread, rule: Rule, forks: float) -> float:
    """Return the effect that so many forks a side find with 80% power; infinite where they find none."""
    error, bound = _bounds(spread, rule, forks)
    if not np.isfinite(bound).all():
        return math.inf
    significant = _solved(error, bound)
    return significant if significant <= rule.margin else _solved(error, np.maximum(bound, rule.margin))


def forks_to_verdict(found: Estimate, rule: Rule, most: int) -> Forecast:
    """Return the further forks a side until a run under way has any verdict.

    If the rule does not look after every block, this one decides: the fewest forks from which on each path
    stays decided.

    Args:
        found: the run so far.
        rule: the verdict rule.
        most: forks a side in all that there can be.
    """
    done, within = found.forks, most - found.forks
    if within < 1:
        return Forecast(None, None, None, 0, 0.0)
    rng = np.random.default_rng(_SEED)
    sds = _sds(found.spread, rng)
    units = done / rule.sides
    effects = found.shrunk(rule) + sds / math.sqrt(units + 1) * rng.standard_normal(_PATHS)
    squares = found.spread.sd**2 * (done - 1)
    means, errors = _paths(effects, sds, rule, most, rng, (done, found.effect, squares))
    found_t, equal_t = _criticals(rule, done, most)
    decided = np.abs(means) >= found_t * errors
    decided |= np.abs(means) + equal_t * errors < rule.margin / rule.stretch
    if rule.looks is not None:
        decided = np.flip(np.logical_and.accumulate(np.flip(decided, 1), axis=1), 1)
    return _first(decided, within)


def _bounds(spread: Spread, rule: Rule, forks: float) -> tuple[Floats, Floats]:
    """True standard errors, shape (1, draws), and estimates that are significant, shape (errors, draws)."""
    df, units = rule.sides * (forks - 1), forks / rule.sides
    if df < _LEAST_DF:
        return np.ones((1, 1)), np.full((1, 1), math.inf)
    draws = 1 if math.isinf(spread.df) else _CLASSES
    true = spread.quantiles(_shares(draws)) / math.sqrt(units)
    estimated = np.sqrt(chdtri(df, _shares(_CLASSES)) / df)
    t = rule.critical(forks, _LEVEL / rule.weight)
    return true[None, :], t * estimated[:, None] * true[None, :]


def _power(effect: float, error: Floats, bound: Floats, margin: float) -> float:
    beyond = np.maximum(bound, margin) if effect > margin else bound
    return float(ndtr((effect - beyond) / error).mean())


def _solved(error: Floats, bound: Floats) -> float:
    """Return the effect of 80% power by bisection; power grows with it."""
    low, high = 0.0, float(bound.max() + 4 * error.max())
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if ndtr((middle - bound) / error).mean() < POWER else (low, middle)
    return high


@lru_cache
def _shares(count: int) -> Floats:
    """The midpoints of equally likely classes, as chances."""
    return np.asarray((np.arange(count) + 0.5) / count)


def _fixed_plan(effect: float, spread: Spread, rule: Rule, most: int) -> Forecast:
    def fewest(known: Spread) -> int | None:
        forks = _fewest(lambda forks: power(effect, known, rule, forks) < POWER, FORKS_FOR_VERDICT, most)
        return None if power(effect, known, rule, forks) < POWER else forks

    ends = spread.quantiles(np.asarray(((1 - _RANGE) / 2, (1 + _RANGE) / 2)))
    low, high = (fewest(Spread(float(sd), math.inf)) for sd in ends)
    return Forecast(fewest(spread), low, high, most, power(effect, spread, rule, most))


def _fewest(too_few: Callable[[int], bool], least: int, most: int) -> int:
    """Return the fewest forks from `least` on that are not too few, or `most`."""
    low, high = least - 1, least
    while high < most and too_few(high):
        low, high = high, 2 * high
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_few(middle) else (low, middle)
    return high


def _sequential_plan(effect: float, spread: Spread, rule: Rule, most: int) -> Forecast:
    rng = np.random.default_rng(_SEED)
    sds = _sds(spread, rng)
    means, errors = _paths(np.full(_PATHS, effect), sds, rule, most, rng)
    found_t, _ = _criticals(rule, 0, most)
    decided = means >= np.maximum(found_t * errors, rule.margin if effect > rule.margin else 0.0)
    return _first(decided, most, POWER)


def _sds(spread: Spread, rng: np.random.Generator) -> Floats:
    return spread.quantiles(rng.permutation(_shares(_PATHS)))


def _paths(
    effects: Floats,
    sds: Floats,
    rule: Rule,
    most: int,
    rng: np.random.Generator,
    start: tuple[int, float, float] = (0, 0.0, 0.0),
) -> tuple[Floats, Floats]:
    """Estimate and standard error at every look, shape (paths, looks); from forks, effect, squares a side."""
    done, mean, squares = start
    first = rule.first_look(done)
    forks = np.arange(done + 1, most + 1)
    estimates = np.zeros((_PATHS, forks.size))
    variances = np.zeros((_PATHS, forks.size))
    for side in range(rule.sides):
        # Of two sides, the first one lies at 0.
        shift, begun = (effects, mean) if side == rule.sides - 1 else (np.zeros(_PATHS), 0.0)
        values = shift[:, None] + sds[:, None] * rng.standard_normal((_PATHS, forks.size))
        means = (done * begun + np.cumsum(values, axis=1)) / forks
        total = squares + done * begun**2 + np.cumsum(values**2, axis=1) - forks * means**2
        variances += total / np.maximum(forks - 1, 1) / forks
        estimates += means if side == rule.sides - 1 else -means
    looks = forks >= first
    return estimates[:, looks], np.sqrt(np.maximum(variances[:, looks], 0.0))


def _criticals(rule: Rule, done: int, most: int) -> tuple[Floats, Floats]:
    """The t that is significant, and that of the interval that shows equality, at every look."""
    looks = range(rule.first_look(done), most + 1)
    criticals = np.asarray([rule.critical(forks, _LEVEL / rule.weight) for forks in looks])
    return criticals, np.asarray([rule.critical(forks, 2 * _LEVEL) for forks in looks])


def _first(decided: Mask, within: int, share: float = 0.5) -> Forecast:
    """Summarise when paths are first decided; `decided` ends at the last look.

    The range is the shortest that holds 80% of the paths, one end of which may be "later".
    """
    ever, later = decided.any(axis=1), within + 1
    looked = later - decided.shape[1] + decided.argmax(axis=1) if decided.size else later
    took = np.sort(np.where(ever, looked, later))
    kept = math.ceil(_RANGE * _PATHS)
    start = int(np.argmin(took[kept - 1 :] - took[: _PATHS - kept + 1]))
    places = (math.ceil(share * _PATHS) - 1, start, start + kept - 1)
    forks, low, high = (None if took[place] == later else int(took[place]) for place in places)
    return Forecast(forks, low, high, within, float(ever.mean()))
