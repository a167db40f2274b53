"""Completions over time -> rates in cells of one length for all forks of a task."""

import math
from collections.abc import Iterable

import numpy as np

from benchctl.stats.arrays import Floats
from benchctl.stats.task_shape import Flow, TaskShape

_MOST_CELLS = 120
_LEAST_CELLS = 5
_REQUESTS_A_CELL = 5


def common_cell(shapes: Iterable[TaskShape]) -> float:
    """A length that suits all of them, seconds: short enough to see changes, long enough for some requests.

    Args:
        shapes: of the forks; at least one.
    """
    return max(_cell(shape) for shape in shapes)


def _cell(shape: TaskShape) -> float:
    flow, operations = shape.flow, shape.samples + shape.warmup
    cells = min(max(operations // _REQUESTS_A_CELL, _LEAST_CELLS), _MOST_CELLS)
    wanted_s = (flow.end_s - flow.begin_s) / cells
    return max(flow.cell_s, 2.0 ** math.ceil(math.log2(max(wanted_s, flow.cell_s))))


def rates(flow: Flow, cell_s: float) -> tuple[Floats, Floats]:
    """Units a second, in cells of a given length.

    The task hardly ever begins and ends where cells do: the first and the last one count for the time that
    they cover, and go with their neighbour when that is less than half a cell.

    Args:
        flow: of one fork.
        cell_s: length, seconds; that of the flow's own cells times a power of two.

    Returns:
        The middle of each cell, seconds from the beginning of the measured window; and its rate. Shape (n,).
    """
    factor = round(cell_s / flow.cell_s)
    numbers = (np.arange(flow.units.size) + flow.first) // factor
    units = np.bincount(numbers - numbers[0], weights=flow.units)
    edges = (numbers[0] + np.arange(units.size + 1)) * cell_s
    edges[0], edges[-1] = flow.begin_s, flow.end_s
    inner = np.ones(units.size, dtype=bool)  # which cells begin something of their own
    if units.size > 1 and edges[1] - edges[0] < cell_s / 2:
        inner[1] = False
    if units.size > 1 and edges[-1] - edges[-2] < cell_s / 2:
        inner[-1] = False
    firsts = np.flatnonzero(inner)
    edges = np.append(edges[firsts], edges[-1])
    lengths = np.diff(edges)
    sums = np.add.reduceat(units, firsts)
    per_s = np.divide(sums, lengths, out=np.zeros(sums.shape), where=lengths > 0)
    return (edges[:-1] + edges[1:]) / 2, per_s
