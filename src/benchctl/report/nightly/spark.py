"""A history as one small line: an inline SVG that is there without any script."""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

_PAD = 3.0
# A change smaller than this fills only part of the height: noise should look like noise.
_LEAST_SPAN = 0.1


def sparkline(
    numbers: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    *,
    span: tuple[int, int],
    label: str,
    position: int,
    marked: Collection[int] = (),
    size: tuple[int, int] = (150, 30),
) -> Markup:
    """Draw one.

    Args:
        numbers: of the nights with a value, ascending.
        values: of them, positive.
        span: numbers of the nights at the left and the right edge; others are left out.
        label: what is seen, in words.
        position: of the variant's style.
        marked: nights that get a mark: those that raised an alarm.
        size: width and height, pixels.
    """
    inside = (numbers >= span[0]) & (numbers <= span[1])
    numbers, values = numbers[inside], values[inside]
    if numbers.size == 0:
        return Markup('<span class="nothing">no value</span>')
    xs, ys = _places(numbers, values, span, size)
    gaps = np.flatnonzero(np.diff(numbers) > 1) + 1
    parts = [_path(x, y) for x, y in zip(np.split(xs, gaps), np.split(ys, gaps), strict=True)]
    dots = [(xs[place], ys[place]) for place, number in enumerate(numbers.tolist()) if number in marked]
    return Markup(
        '<svg class="spark v{position}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'preserveAspectRatio="none" role="img" aria-label="{label}"><path d="{path}"/>{dots}{last}</svg>'
    ).format(
        position=position,
        width=size[0],
        height=size[1],
        label=label,
        path="".join(parts),
        dots=Markup().join(_dot(x, y, "alarm", 3.2) for x, y in dots),
        last=_dot(xs[-1], ys[-1], "last", 2.2),
    )


def _places(
    numbers: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    span: tuple[int, int],
    size: tuple[int, int],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    width, height = (edge - 2 * _PAD for edge in size)
    xs = _PAD + (numbers - span[0]) / max(1, span[1] - span[0]) * width
    logs = np.log(values)
    low, high = float(logs.min()), float(logs.max())
    wanted = max(high - low, _LEAST_SPAN)
    bottom = (low + high - wanted) / 2
    return xs, _PAD + (1 - (logs - bottom) / wanted) * height


def _path(xs: npt.NDArray[np.float64], ys: npt.NDArray[np.float64]) -> str:
    """A stroke through neighbours; a night by itself becomes a point."""
    points = " ".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))
    return f"M{points}" if xs.size > 1 else f"M{points}h.01"


def _dot(x: float, y: float, kind: str, radius: float) -> Markup:
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(
        kind, float(x), float(y), radius
    )
