"""Adjustment of p-values when several tasks are looked at."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from benchctl.results.model import RunRecord

Method = Literal["benjamini-hochberg", "holm"]


def sequential(runs: Iterable[RunRecord]) -> bool:
    """Return whether any run was looked at more than once: by its stop rule, or before more was added."""
    return any(run.looks > 1 or (run.plan.stop is not None and run.plan.stop.looks_on) for run in runs)


def adjusted_p(p_values: Sequence[float], method: Method) -> list[float]:
    """Adjust the p-values of one family, in the same order; to be compared with the level itself.

    `benjamini-hochberg` bounds the share of false findings, `holm` the chance of any.
    """
    if not p_values:
        return []
    if method == "holm":
        return holm(p_values)
    # It takes most of a second to load, which reports of single forks need not wait for.
    from scipy.stats import false_discovery_control  # noqa: PLC0415 - see above

    return [float(p) for p in false_discovery_control(np.asarray(p_values, dtype=np.float64))]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (Scandinavian Journal of Statistics 6, 1979)."""
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    factors = np.arange(raw.size, 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(raw[order] * factors))
    adjusted = np.empty_like(raw)
    adjusted[order] = stepped
    return [float(p) for p in adjusted]
