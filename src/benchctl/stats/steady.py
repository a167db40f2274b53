"""Had a task settled while it was measured? Judged from how far each fork drifted between its thirds."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from scipy.stats import t

State = Literal["steady", "not steady", "unknown"]

_LEAST_DRIFT = math.log(1.05)
_LEAST_DRIFT_OF_ONE = math.log(1.10)
_CONFIDENCE = 0.95


class Steadiness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the drift within forks says.

    Attributes:
        state: `unknown` when no fork had the six samples that a drift needs.
        drift: mean over forks of ln(median of the last third / of the first); None when unknown.
        low, high: its 95 % t-interval over forks; None with one fork.
        text: in which direction and how far, for a state of `not steady`; empty otherwise.
    """

    state: State
    drift: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""


def steadiness(drifts: Sequence[float | None]) -> Steadiness:
    """Judge one task of one variant.

    Not steady is a mean drift above 5 % whose interval excludes 0; with one fork, a drift above 10 %.

    Args:
        drifts: per fork, ln(median service time of the last third / of the first); None where unknown.
    """
    known = np.asarray([drift for drift in drifts if drift is not None], dtype=np.float64)
    if known.size == 0:
        return Steadiness("unknown")
    mean = float(known.mean())
    if known.size == 1:
        moved, low, high = abs(mean) > _LEAST_DRIFT_OF_ONE, None, None
    else:
        half = float(t.ppf((1 + _CONFIDENCE) / 2, known.size - 1) * known.std(ddof=1) / math.sqrt(known.size))
        low, high = mean - half, mean + half
        moved = abs(mean) > _LEAST_DRIFT and not low <= 0 <= high
    if not moved:
        return Steadiness("steady", mean, low, high)
    return Steadiness("not steady", mean, low, high, _describe(mean))


def _describe(drift: float) -> str:
    if drift < 0:
        return f"still getting faster: last third {-100 * math.expm1(drift):.0f} % faster than the first"
    return f"getting slower: last third {100 * math.expm1(drift):.0f} % slower than the first"
