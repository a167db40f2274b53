"""Series for tests, from one list of values a night."""

import math
from collections.abc import Sequence

import numpy as np

from benchctl.nightly.model import Series, SeriesKey

KEY = SeriesKey(variant="es", challenge="big5", task="range", metric="service_time.p50")


def series(
    nights: Sequence[Sequence[float]],
    *,
    first: int = 1,
    key: SeriesKey = KEY,
    higher_is_better: bool = False,
) -> Series:
    """One list of values a night; an empty one is a missing night."""
    entries = [
        (number, fork, value)
        for number, values in enumerate(nights, start=first)
        for fork, value in enumerate(values, start=1)
    ]
    return Series(
        key=key,
        unit="ms",
        higher_is_better=higher_is_better,
        nights=np.array([entry[0] for entry in entries], np.int64),
        forks=np.array([entry[1] for entry in entries], np.int64),
        values=np.array([entry[2] for entry in entries], np.float64),
    )


def drawn(
    levels: Sequence[float],
    *,
    seed: int,
    night_sd: float = 0.02,
    fork_sd: float = 0.0,
    forks: int = 1,
    key: SeriesKey = KEY,
) -> Series:
    """One level in natural logarithms a night, over 10 ms."""
    rng = np.random.default_rng(seed)
    means = math.log(10) + np.array(levels) + rng.normal(0, night_sd, len(levels))
    values = np.exp(means[:, None] + rng.normal(0, fork_sd, (len(levels), forks)))
    return series(values.tolist(), key=key)
