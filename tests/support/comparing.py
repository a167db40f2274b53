"""Comparisons of plain values."""

from collections.abc import Sequence
from typing import Any

import msgspec

from benchctl.stats.compare import Comparison, Side, compare_sides
from benchctl.stats.metrics import metric


def compare(  # noqa: PLR0913 - what is said of two sides, by name
    baseline_values: Sequence[float],
    contender_values: Sequence[float],
    *,
    higher_is_better: bool,
    margin: float,
    paired: bool = False,
    judged: bool = True,
    names: tuple[str, str] = ("baseline", "contender"),
    units: tuple[Sequence[int], Sequence[int]] = ((), ()),
    signed: bool = False,
    additive: bool = False,
    compared_as: Any = "ratio",
    **options: Any,
) -> Comparison:
    """Compare one value a fork, block by block, as throughput or as service time."""
    kind = metric("throughput" if higher_is_better else "service_time")
    asked = msgspec.structs.replace(kind, margin=margin, compared_as=compared_as, zeros=additive)
    sides = [
        msgspec.structs.replace(Side.plain(list(values), own, additive=additive), label=name, signed=signed)
        for values, own, name in zip((baseline_values, contender_values), units, names, strict=True)
    ]
    return compare_sides(asked, *sides, paired=paired, judged=judged, **{"replicate": "fork", **options})
