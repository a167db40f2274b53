"""Values of many nights as series, read from the nights' runs, what differs between runs, and the screens."""

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from benchctl.errors import BenchctlError
from benchctl.nightly.records import Direction, NightRecord, SeriesKey
from benchctl.results.likeness import deciding
from benchctl.results.model import RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.results.store import RunFolder, RunStore
from benchctl.stats.compare import as_percent
from benchctl.stats.inference import Floats, Integers, Mask
from benchctl.stats.metrics import Metric, challenge_title, metrics_of, places, task_at
from benchctl.track.model import Track

_GIB: Final = 2**30
# Digests say little in full.
_DIGEST: Final = 12
_HOST: Final = (
    "hostname", "kernel", "distribution", "cpu_model", "cpus", "governor", "virtualization", "python",
    "benchctl", "benchctl_commit", "libcurl",
)  # fmt: skip
_NO_CHANGE: Final = frozenset({"name", "variant", "verified_by", "added_modules", "start"})


@dataclass(frozen=True, eq=False)
class Series:
    """A value of many nights: an entry a fork, by night, then fork. Nights without one are not there."""

    key: SeriesKey
    unit: str
    higher_is_better: bool
    nights: Integers  # number of the night of each entry, shape (n,), int64
    values: Floats  # in the unit, positive and finite, shape (n,), float64
    # Whether values may be 0 as well, so that a night is the arithmetic mean of its forks.
    additive: bool = False


def read_runs(
    store: RunStore, nights: Iterable[NightRecord], unreadable: Callable[[str], None]
) -> tuple[dict[int, RunRecord], list[Series]]:
    """Read the runs of nights, which are in order, one after the other: they hold all values of every fork.

    Returns:
        Number of the night -> its run, without forks; and series, sorted by key. `unreadable` is called with
        the reason for each run that is skipped.
    """
    runs: dict[int, RunRecord] = {}
    found: dict[SeriesKey, tuple[Metric, list[int], list[float]]] = {}
    for night in nights:
        if not night.run:
            continue
        try:
            run = RunFolder(store.root / night.run).load()
        except BenchctlError as err:
            unreadable(f"night {night.number} has no values: {err.message}")
            continue
        for key, metric, value in fork_values(run):
            _, numbers, values = found.setdefault(key, (metric, [], []))
            numbers.append(night.number)
            values.append(value)
        runs[night.number] = msgspec.structs.replace(run, forks=())
    return runs, [
        Series(
            key,
            metric.unit,
            metric.higher_is_better,
            np.array(numbers, np.int64),
            np.array(values, np.float64),
            metric.kind.additive,
        )
        for key, (metric, numbers, values) in sorted(found.items(), key=lambda item: item[0])
    ]


def fork_values(run: RunRecord) -> Iterator[tuple[SeriesKey, Metric, float]]:
    """Yield the values of every finished fork, fork by fork; none that tables do not show."""
    plan = run.plan
    names = task_names(plan)
    for spec in plan.variants:
        for fork in run.compared(spec.name):
            shown = {(part.schedule, part.task): part for part in fork.summaries if part.reported}
            for place in (place for place in names if place in shown):
                for metric in metrics_of(plan, task_at(plan, place)):
                    value = metric.value(shown[place])
                    if value is None or not math.isfinite(value):
                        continue
                    if value > 0 or (value == 0 and metric.kind.additive):
                        key = SeriesKey(spec.name, *names[place], metric.key)
                        yield key, metric.counting(shown[place].unit), value


def task_names(plan: Plan) -> dict[Place, tuple[str, str]]:
    """Return (title of the challenge, label of the task) of every place, no two the same."""
    return {place: (challenge_title(plan, place[0]), task_at(plan, place).label) for place in places(plan)}


def era_of(run: RunRecord, track: Track) -> str:
    """Return a digest of what has to be the same for nights to be compared.

    The host, the documents, and everything of the plan that decides figures; not its variants, whose
    changes are what nightly runs are for, and not benchctl's version, which is a change like others. Of the
    track, the indices and the operations that the plan uses count.
    """
    challenges = (*run.plan.warmup_challenges, *run.plan.schedules)
    operations = track.with_challenges(*challenges).operations
    used = {task.operation for challenge in challenges for task in challenge.schedule}
    decisive = {
        **deciding(run.plan),
        # Where a track lies decides nothing.
        "track": (track.indices, track.data_streams, track.templates),
        "track_digest": {name: operations[name] for name in sorted(used & operations.keys())},
        "host": run.environment.fingerprint,
        "workers": run.plan.workers,
        "left out": sorted(run.left_out_of_pollution),
    }
    return hashlib.sha256(msgspec.json.encode(decisive, order="deterministic")).hexdigest()[:16]


def changes(before: RunRecord, now: RunRecord, variant: str = "") -> tuple[str, ...]:
    """Return what differs between two runs: host, benchctl and track, then one variant, or all of them."""
    texts = [*_differences("", _place(before), _place(now))]
    labels = dict.fromkeys(spec.name for run in (before, now) for spec in run.plan.variants)
    for label in (variant,) if variant else labels:
        texts += _differences(f"{label}: ", _variant(before, label), _variant(now, label))
    return tuple(texts)


def same_engine(before: RunRecord, now: RunRecord, label: str) -> bool:
    """Return whether two runs measured the same under a label: it cannot have got slower by itself."""
    one, other = _variant(before, label), _variant(now, label)
    names = ("engine", "version", "jvm_flags", "settings", "build", "archive_sha256", "jdk")
    return all(one.get(name) == other.get(name) for name in names)


def _place(run: RunRecord) -> dict[str, Any]:
    """Return what a run was made on and with."""
    source = run.plan.track_source
    return {
        **{name: getattr(run.environment, name) for name in _HOST},
        # Kernels reserve a little more or less from boot to boot.
        "memory": f"{round(run.environment.memory_bytes / _GIB)} GiB",
        "track": source and f"{source.track} of {source.repository}",
        "commit of the track": source and source.changed,
    }


def _variant(run: RunRecord, label: str) -> dict[str, Any]:
    """Return what a variant is: as was asked for, and what its node said in its place."""
    spec = next((spec for spec in run.plan.variants if spec.name == label), None)
    facts = next((engine for engine in run.engines if engine.variant == label), None)
    parts = {} if spec is None else msgspec.structs.asdict(spec)
    parts |= {} if facts is None else msgspec.structs.asdict(facts)
    if facts is not None:
        parts["modules"] = sorted(facts.modules)
    if label in run.indices:
        parts["prepared index"] = run.indices[label].key
    return {name: value for name, value in parts.items() if name not in _NO_CHANGE}


def _differences(whose: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what came and went as `es: version 8.11.0 → 8.12.0`."""
    for name in (name for name in now if name in before and before[name] != now[name]):
        what = f"{whose}{name.replace('_', ' ')}"
        was, became = _words(before[name]), _words(now[name])
        gone = [text for text in was if text not in became]
        come = [text for text in became if text not in was]
        if gone or come:
            yield f"{what} {' '.join(gone) or 'none'} \N{RIGHTWARDS ARROW} {' '.join(come) or 'none'}"
        else:
            yield f"{what} in another order"


def _words(value: object) -> list[str]:
    """Return the parts of a value; long digests are shortened."""
    if isinstance(value, Mapping):
        return [f"{name}={' '.join(_words(part))}" for name, part in sorted(value.items())]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _words(part)]
    text = "" if value is None else str(value)
    is_digest = len(text) > _DIGEST and all(char in "0123456789abcdef" for char in text)
    return [text[:_DIGEST] if is_digest else text] if text else []


# Logarithms of equal values differ by rounding alone.
_NO_SPREAD = 1e-9

# A series night by night: the mean of ln over a night's forks, their spread and number.


@dataclass(frozen=True, eq=False)
class Nights:
    """An entry a night that has a value, by number; everything in natural logarithms."""

    numbers: Integers  # of the nights, ascending, shape (n,)
    means: Floats  # over the night's forks, shape (n,); minus infinity of a night in which all of them were 0
    squares: Floats  # sum of squared deviations of the forks from their night's mean, shape (n,)
    counts: Integers  # forks, at least 1, shape (n,)
    higher_is_better: bool

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
    """Summarise a series night by night, vectorised."""
    starts = np.flatnonzero(np.diff(series.nights, prepend=series.nights[0] - 1))
    counts = np.diff(starts, append=series.nights.size)
    points = series.values if series.additive else np.log(series.values)
    means = np.add.reduceat(points, starts) / counts
    away = points - np.repeat(means, counts)
    if series.additive:
        # Of values that may be 0: ln of their mean, plus how far each is from it as a share of it.
        repeated = np.repeat(means, counts)
        away = np.divide(away, repeated, out=np.zeros_like(away), where=repeated > 0)
        means = np.log(means, out=np.full_like(means, -np.inf), where=means > 0)
    squares = np.add.reduceat(away**2, starts)
    return Nights(series.nights[starts], means, squares, counts, series.higher_is_better)


def mean_of(members: Sequence[Nights]) -> Nights:
    """Return the mean of several series, night by night; nights as units, without their forks."""
    numbers, place = np.unique(np.concatenate([member.numbers for member in members]), return_inverse=True)
    sums = np.bincount(place, np.concatenate([member.means for member in members]), minlength=numbers.size)
    means = sums / np.bincount(place, minlength=numbers.size)
    counts = np.ones(numbers.size, np.int64)
    return Nights(numbers, means, np.zeros(numbers.size), counts, members[0].higher_is_better)


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
            direction="faster" if (sign > 0) == nights.higher_is_better else "slower",
            effect_log=effect,
            low_log=effect - reach,
            high_log=effect + reach,
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
        float(share[best]),
    )


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
