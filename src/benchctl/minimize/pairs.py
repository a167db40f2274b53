"""What runs say about an effect: values side by side, block by block, as log ratios that grow with it."""

import math
from collections.abc import Sequence

import msgspec

from benchctl.errors import BenchctlError
from benchctl.results.minimize import Decision, Effect
from benchctl.results.model import RunRecord
from benchctl.stats.metrics import Metric, block_values, collect, task_at
from benchctl.stats.sequential import estimate

_MOST_FAILURES = 2


class Values(msgspec.Struct, frozen=True):
    """Of the blocks that both sides finished, in order: the metric's values."""

    contender: tuple[float, ...]
    reference: tuple[float, ...]


def values_of(records: Sequence[RunRecord], effect: Effect, metric: Metric) -> Values:
    """Read them from runs.

    Args:
        records: the schedule's; behind it the fresh node's, unless variants are compared.
        effect: whose sides they are.
        metric: of the values.
    """
    whole = records[0]
    place = (0, len(whole.plan.schedules[0].schedule) - 1)
    task = task_at(whole.plan, place)
    contender = collect({"": whole.compared(effect.variant)}, place, task)[""]
    if effect.against:
        reference = collect({"": whole.compared(effect.against)}, place, task)[""]
    else:
        reference = collect({"": records[1].compared(effect.variant)}, (0, 0), task)[""]
    both = [
        (left, right)
        for left, right in zip(*block_values(metric, contender, reference), strict=True)
        if left > 0 and right > 0
    ]
    return Values(tuple(left for left, _ in both), tuple(right for _, right in both))


def log_ratios(values: Values | Decision, effect: Effect, metric: Metric) -> tuple[float, ...]:
    """ln(contender / reference), turned so that more of the effect is more."""
    sign = -1.0 if (effect.direction == "slower") == metric.higher_is_better else 1.0
    return tuple(
        sign * math.log(left / right) for left, right in zip(values.contender, values.reference, strict=True)
    )


def percent_of(log_ratio: float, effect: Effect, metric: Metric) -> float:
    """A log ratio of those, as contender / reference - 1 in percent."""
    sign = -1.0 if (effect.direction == "slower") == metric.higher_is_better else 1.0
    return 100 * math.expm1(sign * log_ratio)


def interval_percent(
    pairs: Sequence[float], effect: Effect, metric: Metric
) -> tuple[float | None, float | None, float | None]:
    """Effect, lower and upper end of its 95 % interval, percent; None what cannot be told."""
    if not pairs:
        return None, None, None
    found = estimate(pairs)
    mean = percent_of(found.mean, effect, metric)
    if not math.isfinite(found.low):
        return mean, None, None
    low, high = sorted(percent_of(end, effect, metric) for end in (found.low, found.high))
    return mean, low, high


def failure(records: Sequence[RunRecord]) -> str:
    """Why nothing more is to be expected of these runs; empty while there is hope."""
    for record in records:
        failed = [fork for fork in record.forks if fork.status == "failed"]
        if len(failed) >= _MOST_FAILURES:
            return f"{len(failed)} forks failed, the last: {failed[-1].reason}"
    return ""


def all_begun(records: Sequence[RunRecord]) -> bool:
    """Whether no block is left to be measured, whatever became of its forks."""
    return all(len({fork.block for fork in record.forks}) >= record.plan.forks for record in records)


def seconds_of(records: Sequence[RunRecord]) -> float:
    """That their forks took, failed ones included."""
    return sum(fork.wall_s for record in records for fork in record.forks)


def require_values(values: Values, task: str) -> None:
    """A target that was never answered shows nothing.

    Raises:
        BenchctlError: no block has a value.
    """
    if not values.contender:
        raise BenchctlError(
            f"task '{task}' has no figure in any block: its requests failed, or it is unsupported",
            hint="try it first with: benchctl run",
        )
